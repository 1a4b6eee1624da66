/// A group coordinator of one partition over a journal in memory, with a clock that the test moves.
///
///   TestGroups groups{{.initial_rebalance_delay_ms = 0}};
///   auto join = groups.join({.member = "", .version = 3});
///   EXPECT_EQ(join->generation_id, 1);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/group/group_coordinator.h"
#include "coordinator/internal_topics.h"
#include "metadata/image.h"
#include "protocol/messages/group_metadata_key.h"
#include "tests/support/coordinator/memory_journal.h"

namespace tidemark::test {

using namespace coordinator;
using protocol::ErrorCode;
using namespace std::chrono_literals;

/// An answer that may not be there yet.
template <class Response>
class Asked {
public:
    Reply<Response> reply() {
        return [state = state_](Coded<Response> answered) {
            EXPECT_FALSE(state->has_value()) << "answered twice";
            *state = std::move(answered);
        };
    }
    bool waits() const { return !state_->has_value(); }
    /// none, unless the coordinator failed to answer.
    ErrorCode failure() const { return waits() || (*state_)->has_value() ? ErrorCode::none : (*state_)->error().code; }
    const Response& operator*() const {
        TM_ASSERT(!waits() && (*state_)->has_value());
        return ***state_;
    }
    const Response* operator->() const { return &**this; }

private:
    std::shared_ptr<std::optional<Coded<Response>>> state_ = std::make_shared<std::optional<Coded<Response>>>();
};

struct JoinArgs {
    std::string group = "g";
    std::string member = {};
    std::optional<std::string> instance = {};
    std::vector<std::pair<std::string, std::string>> protocols = {{"range", "meta"}};
    std::string type = "consumer";
    std::int32_t session_ms = 10'000, rebalance_ms = 5000;
    std::int16_t version = 9;
};

struct SyncArgs {
    std::string group = "g";
    std::string member = {};
    std::int32_t generation = 1;
    std::vector<std::pair<std::string, std::string>> assignments = {};
    std::optional<std::string> instance = {};
    std::optional<std::string> type = "consumer", protocol = "range";
    std::int16_t version = 5;
};

struct CommitArgs {
    std::string group = "g";
    std::string member = {};
    std::int32_t generation = -1;
    std::int64_t offset = 0;
    std::string topic = "data";
    std::int32_t partition = 0;
    std::optional<std::string> metadata = "";
    std::optional<std::string> instance = {};
    std::int64_t retention_ms = -1;
    std::int16_t version = 9;
    ProducerId producer = no_producer_id;                   ///< set: TxnOffsetCommit, of that version
};

struct FetchedOffset {
    std::int64_t offset = -1;
    ErrorCode error = ErrorCode::none;
    std::string metadata = {};
    friend bool operator==(const FetchedOffset&, const FetchedOffset&) = default;
};

class TestGroups {
public:
    explicit TestGroups(GroupOptions options = {}, std::shared_ptr<MemoryJournal> written = nullptr) : options_(std::move(options)) {
        journal = written ? std::move(written) : std::make_shared<MemoryJournal>();
        auto formatted = std::make_shared<metadata::Image>();
        formatted->features["group.version"] = 1;
        show(std::move(formatted));
        add_topic(std::string{group_topic}, 1);
        add_topic("data", 3);
        add_topic("other", 1);
        open();
    }

    ManualClock clock;
    std::shared_ptr<MemoryJournal> journal;
    /// Loads and requests wait until run_jobs(): after restart() the partition is loading.
    bool hold_jobs = false;
    void run_jobs() {
        hold_jobs = false;
        while (!jobs_.empty()) {
            for (auto& job : std::exchange(jobs_, {})) job();
        }
    }
    GroupCoordinator& operator*() { return *coordinator_; }
    GroupCoordinator* operator->() { return coordinator_.get(); }

    /// Stops, and loads what the journal holds.
    void restart(std::optional<GroupOptions> options = {}) {
        if (options) options_ = *options;
        open();
    }
    /// Moves the clock, at most a step at a time, as the daemon's timer would see it.
    void advance(std::chrono::milliseconds by, std::chrono::milliseconds step = 100ms) {
        for (auto left = by; left > 0ms; left -= step) {
            clock.advance(std::min(left, step));
            coordinator_->tick();
        }
    }

    void add_topic(const std::string& name, std::int32_t partitions) {
        auto topic = std::make_shared<metadata::Topic>(metadata::Topic{.name = name, .id = Uuid::random(), .partitions = {}});
        for (std::int32_t i = 0; i < partitions; ++i) topic->partitions[i].leader = 1;
        auto next = std::make_shared<metadata::Image>(*image_);
        ++next->offset;
        next->topics[name] = topic;
        next->topics_by_id[topic->id] = topic;
        show(std::move(next));
    }
    void delete_topic(const std::string& name) {
        auto next = std::make_shared<metadata::Image>(*image_);
        ++next->offset;
        next->topics_by_id.erase(next->topics.at(name)->id);
        next->topics.erase(name);
        show(std::move(next));
    }
    Uuid topic_id(const std::string& name) const { return image_->find(name)->id; }

    // --- requests ----------------------------------------------------------------------------------------------------

    Asked<protocol::JoinGroupResponse> join(const JoinArgs& args) {
        protocol::JoinGroupRequest request{.group_id = args.group,
                                           .session_timeout_ms = args.session_ms,
                                           .rebalance_timeout_ms = args.rebalance_ms,
                                           .member_id = args.member,
                                           .group_instance_id = args.instance,
                                           .protocol_type = args.type};
        for (const auto& [name, metadata] : args.protocols) request.protocols.push_back({.name = name, .metadata = to_vector(as_bytes(metadata))});
        Asked<protocol::JoinGroupResponse> asked;
        coordinator_->join({.id = "client", .host = "/127.0.0.1"}, std::move(request), args.version, asked.reply());
        return asked;
    }
    Asked<protocol::SyncGroupResponse> sync(const SyncArgs& args) {
        protocol::SyncGroupRequest request{.group_id = args.group,
                                           .generation_id = args.generation,
                                           .member_id = args.member,
                                           .group_instance_id = args.instance,
                                           .protocol_type = args.version >= 5 ? args.type : std::nullopt,
                                           .protocol_name = args.version >= 5 ? args.protocol : std::nullopt};
        for (const auto& [member, assignment] : args.assignments) request.assignments.push_back({.member_id = member, .assignment = to_vector(as_bytes(assignment))});
        Asked<protocol::SyncGroupResponse> asked;
        coordinator_->sync(std::move(request), args.version, asked.reply());
        return asked;
    }
    ErrorCode heartbeat(const std::string& member, std::int32_t generation, std::optional<std::string> instance = {}, const std::string& group = "g") {
        Asked<protocol::HeartbeatResponse> asked;
        coordinator_->heartbeat({.group_id = group, .generation_id = generation, .member_id = member, .group_instance_id = std::move(instance)}, asked.reply());
        return asked.failure() != ErrorCode::none ? asked.failure() : asked->error_code;
    }
    std::vector<ErrorCode> leave(const std::vector<std::pair<std::string, std::optional<std::string>>>& members, const std::string& group = "g") {
        protocol::LeaveGroupRequest request{.group_id = group};
        for (const auto& [id, instance] : members) request.members.push_back({.member_id = id, .group_instance_id = instance});
        Asked<protocol::LeaveGroupResponse> asked;
        coordinator_->leave(std::move(request), asked.reply());
        EXPECT_EQ(asked->error_code, ErrorCode::none);
        std::vector<ErrorCode> codes;
        for (const auto& member : asked->members) codes.push_back(member.error_code);
        return codes;
    }
    ErrorCode commit(const CommitArgs& args) {
        if (args.producer != no_producer_id) {
            protocol::TxnOffsetCommitRequest request{.transactional_id = "t", .group_id = args.group, .producer_id = args.producer, .producer_epoch = 0,
                                                     .generation_id_or_member_epoch = args.generation, .member_id = args.member, .group_instance_id = args.instance};
            fill(request.topics.emplace_back(), args, args.version >= 6);
            Asked<protocol::TxnOffsetCommitResponse> asked;
            coordinator_->commit(std::move(request), args.version, std::nullopt, asked.reply());
            return asked.failure() != ErrorCode::none ? asked.failure() : asked->topics.front().partitions.front().error_code;
        }
        auto asked = commit_later(args);
        return asked.failure() != ErrorCode::none ? asked.failure() : asked->topics.front().partitions.front().error_code;
    }
    Asked<protocol::OffsetCommitResponse> commit_later(const CommitArgs& args) {
        protocol::OffsetCommitRequest request{.group_id = args.group, .generation_id_or_member_epoch = args.generation, .member_id = args.member,
                                              .group_instance_id = args.instance, .retention_time_ms = args.retention_ms};
        fill(request.topics.emplace_back(), args, args.version >= 10);
        Asked<protocol::OffsetCommitResponse> asked;
        coordinator_->commit(std::move(request), args.version, asked.reply());
        return asked;
    }
    FetchedOffset fetch(const std::string& group = "g", const std::string& topic = "data", std::int32_t partition = 0, bool stable = false) {
        protocol::OffsetFetchRequest::OffsetFetchRequestGroup request{.group_id = group};
        request.topics->push_back({.name = topic, .partition_indexes = {partition}});
        const auto answer = fetch_group(request, 9, stable);
        if (answer.error_code != ErrorCode::none) return {.error = answer.error_code};
        const auto& found = answer.topics.front().partitions.front();
        return {.offset = found.committed_offset, .error = found.error_code, .metadata = found.metadata.value_or("(null)")};
    }
    protocol::OffsetFetchResponse::OffsetFetchResponseGroup fetch_group(const protocol::OffsetFetchRequest::OffsetFetchRequestGroup& request, std::int16_t version, bool stable = false) {
        Asked<std::vector<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>> asked;
        coordinator_->fetch({request}, version, stable, asked.reply());
        return asked->front();
    }
    std::size_t offsets_of(const std::string& group = "g", bool stable = false) {
        std::size_t count = 0;
        for (const auto& topic : fetch_group({.group_id = group, .topics = std::nullopt}, 9, stable).topics) count += topic.partitions.size();
        return count;
    }
    protocol::DescribeGroupsResponse::DescribedGroup describe(const std::string& group = "g", std::int16_t version = 6) {
        Asked<std::vector<protocol::DescribeGroupsResponse::DescribedGroup>> asked;
        coordinator_->describe({group}, version, asked.reply());
        return asked->front();
    }
    std::string state(const std::string& group = "g") { return describe(group).group_state; }
    /// "g:Empty:classic" and so on, sorted.
    std::vector<std::string> list(const std::vector<std::string>& states = {}, const std::vector<std::string>& types = {}) {
        Asked<protocol::ListGroupsResponse> asked;
        coordinator_->list({.states_filter = states, .types_filter = types}, asked.reply());
        std::vector<std::string> groups;
        for (const auto& group : asked->groups) groups.push_back(group.group_id + ":" + group.group_state + ":" + group.group_type);
        std::ranges::sort(groups);
        return groups;
    }
    ErrorCode delete_group(const std::string& group = "g") {
        Asked<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>> asked;
        coordinator_->delete_groups({group}, asked.reply());
        return asked->front().error_code;
    }
    void end_transaction(ProducerId producer, bool commit) {
        Asked<GroupCoordinator::MarkerWritten> asked;
        coordinator_->write_marker(0, {.producer_id = producer, .producer_epoch = 0, .commit = commit}, asked.reply());
        EXPECT_EQ(asked->error, ErrorCode::none);
    }

    // --- what several tests begin with -------------------------------------------------------------------------------

    /// Joins as a dynamic member and, where it has to, with the id that it was given.
    Asked<protocol::JoinGroupResponse> join_new(JoinArgs args = {}) {
        auto first = join(args);
        if (first.waits() || first->error_code != ErrorCode::member_id_required) return first;
        args.member = first->member_id;
        return join(args);
    }
    /// A stable group of `size` members; the ids, the leader first. Needs a delay of 0.
    std::vector<std::string> stable_group(std::size_t size = 1, const JoinArgs& args = {}) {
        std::vector<std::string> ids;
        std::vector<Asked<protocol::JoinGroupResponse>> joins;
        for (std::size_t i = 0; i < size; ++i) {
            joins.push_back(join_new(args));
            for (const auto& id : ids) {   // those who are there already come again
                auto again = args;
                again.member = id;
                joins.push_back(join(again));
            }
            ids.push_back(joins[joins.size() - 1 - ids.size()]->member_id);
        }
        const auto& last = *joins.back();
        EXPECT_EQ(last.error_code, ErrorCode::none);
        std::ranges::partition(ids, [&](const auto& id) { return id == last.leader; });
        generation = last.generation_id;
        std::vector<std::pair<std::string, std::string>> assignments;
        for (const auto& id : ids) assignments.emplace_back(id, "for " + id);
        for (const auto& id : ids) {
            const auto synced = sync({.group = args.group, .member = id, .generation = generation, .assignments = id == last.leader ? assignments : std::vector<std::pair<std::string, std::string>>{}, .type = args.type, .protocol = last.protocol_name});
            EXPECT_EQ(synced->error_code, ErrorCode::none);
        }
        EXPECT_EQ(state(args.group), "Stable");
        return ids;
    }
    std::int32_t generation = 0;                            ///< of the last stable_group()

    /// What the journal holds, one text per batch: "group g gen 1 members 2, offset g data-0 5", "~group g", "commit 7".
    std::vector<std::string> written() const {
        std::vector<std::string> texts;
        record::RecordReader reader;
        for (const auto& bytes : journal->batches) {
            const auto batch = record::BatchView::parse(bytes).value();
            TM_ASSERT(reader.open(batch).has_value());
            std::string text;
            while (const auto record = reader.next().value()) text += (text.empty() ? "" : ", ") + text_of(batch, *record);
            texts.push_back(text);
        }
        return texts;
    }

private:
    void open() {
        const bool hold = std::exchange(hold_jobs, false);   // a stop waits for its jobs
        if (coordinator_) coordinator_->stop();
        hold_jobs = hold;
        coordinator_ = std::make_unique<GroupCoordinator>(
            RuntimeOptions{.topic = std::string{group_topic}},
            RuntimeParts{.clock = clock, .open_journal = [this](const TopicPartition&) { return journal; }, .executor = [this](std::function<void()> job) {
                             if (hold_jobs) jobs_.push_back(std::move(job));
                             else job();
                         }}, options_);
        coordinator_->image_changed(image_, options_);
    }
    void show(std::shared_ptr<const metadata::Image> image) {
        image_ = std::move(image);
        if (coordinator_) coordinator_->image_changed(image_, options_);
    }
    template <class Topic>
    void fill(Topic& topic, const CommitArgs& args, bool by_id) {
        topic.name = args.topic;
        const auto* known = image_->find(args.topic);
        if (by_id && known != nullptr) topic.topic_id = known->id;
        topic.partitions.push_back({.partition_index = args.partition, .committed_offset = args.offset, .committed_metadata = args.metadata});
    }
    static std::string text_of(const record::BatchView& batch, const record::RecordView& record) {
        using namespace protocol;
        if (batch.is_control()) return (record.key->back() == std::byte{1} ? "commit " : "abort ") + std::to_string(batch.producer_id());
        const auto type = record_type_of(*record.key).value();
        const std::string tombstone = record.value ? "" : "~";
        if (type == OffsetCommitKey::record_type) {
            const auto key = read_key<OffsetCommitKey>(*record.key).value();
            const auto value = record.value ? " " + std::to_string(read_value<OffsetCommitValue>(*record.value).value().offset) : "";
            return tombstone + "offset " + key.group + " " + key.topic + "-" + std::to_string(key.partition) + value;
        }
        TM_ASSERT(type == GroupMetadataKey::record_type);
        const auto id = read_key<GroupMetadataKey>(*record.key).value().group;
        if (!record.value) return "~group " + id;
        const auto value = read_value<GroupMetadataValue>(*record.value).value();
        return "group " + id + " gen " + std::to_string(value.generation) + " members " + std::to_string(value.members.size()) + " type " + value.protocol_type + " protocol " + value.protocol.value_or("null");
    }

    GroupOptions options_;
    std::vector<std::function<void()>> jobs_;
    metadata::ImagePtr image_ = std::make_shared<const metadata::Image>();
    std::unique_ptr<GroupCoordinator> coordinator_;
};

}  // namespace tidemark::test
