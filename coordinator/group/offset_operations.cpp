#include "coordinator/group/offset_operations.h"

#include <algorithm>

#include "base/log.h"
#include "base/utf16.h"
#include "coordinator/errors.h"
#include "metadata/image.h"

namespace tidemark::coordinator {

namespace {

/// Of records that need not go together: tombstones of expiry, of deleted topics.
constexpr std::size_t batch_records_max = 1000;

Result<> write_in_batches(Context& context, std::span<const Record> records) {
    while (!records.empty()) {
        const auto count = std::min(batch_records_max, records.size());
        TM_TRYV(context.write(records.first(count)));
        records = records.subspan(count);
    }
    return {};
}

bool is_too_long(std::string_view metadata, std::int32_t units_max) {
    const auto limit = static_cast<std::size_t>(std::max(units_max, 0));
    return metadata.size() > limit && utf16_units(metadata) > limit;   // never more units than bytes
}

/// Both commits are the same list in different types; `by_id` from the version on that names topics by id.
template <class Response, class Request>
class Commit {
public:
    using AnswerTopic = typename decltype(Response::topics)::value_type;
    using AnswerPartition = typename decltype(AnswerTopic::partitions)::value_type;

    Commit(const metadata::Image& image, Request& request, bool by_id) : image_(image), request_(request), by_id_(by_id) { look_up(); }

    /// What exists and is to be judged by the group.
    const std::vector<CommittedPartition>& partitions() const { return partitions_; }

    void refuse(ErrorCode code) {
        for (const auto& [topic, partition] : places_) response.topics[topic].partitions[partition].error_code = code;
    }

    std::vector<Record> records(std::int32_t metadata_units_max, Timestamp now, std::optional<Timestamp> expires) {
        std::vector<Record> records;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const auto& [topic, partition] = places_[i];
            auto& from = request_.topics[topic].partitions[partition];
            auto metadata = std::move(from.committed_metadata).value_or("");
            if (is_too_long(metadata, metadata_units_max)) {
                response.topics[topic].partitions[partition].error_code = ErrorCode::offset_metadata_too_large;
                continue;
            }
            const protocol::OffsetCommitKey key{.group = request_.group_id, .topic = std::string{partitions_[i].topic}, .partition = from.partition_index};
            records.push_back(record_of(key,
                                        protocol::OffsetCommitValue{.offset = from.committed_offset,
                                                                    .leader_epoch = from.committed_leader_epoch,
                                                                    .metadata = std::move(metadata),
                                                                    .commit_timestamp = now.value,
                                                                    .expire_timestamp = expires.value_or(no_timestamp).value,
                                                                    .topic_id = partitions_[i].topic_id},
                                        expires ? 1 : 4));
        }
        return records;
    }

    /// Those that were accepted could not be written.
    void fail_accepted(ErrorCode code) {
        for (const auto& [topic, partition] : places_) {
            auto& answer = response.topics[topic].partitions[partition];
            if (answer.error_code == ErrorCode::none) answer.error_code = code;
        }
    }

    Response response;

private:
    void look_up() {
        for (std::size_t t = 0; t < request_.topics.size(); ++t) {
            const auto& asked = request_.topics[t];
            auto& answer = response.topics.emplace_back();
            answer.name = asked.name;
            answer.topic_id = asked.topic_id;
            const auto* topic = by_id_ ? image_.find(asked.topic_id) : image_.find(asked.name);
            for (std::size_t p = 0; p < asked.partitions.size(); ++p) {
                const auto index = asked.partitions[p].partition_index;
                auto& partition = answer.partitions.emplace_back();
                partition.partition_index = index;
                if (topic == nullptr && by_id_) partition.error_code = ErrorCode::unknown_topic_id;
                else if (topic == nullptr || !topic->partitions.contains(index)) partition.error_code = ErrorCode::unknown_topic_or_partition;
                else {
                    partitions_.push_back({.topic_id = topic->id, .topic = topic->name, .partition = index});
                    places_.emplace_back(t, p);
                }
            }
        }
    }

    const metadata::Image& image_;
    Request& request_;
    const bool by_id_;
    std::vector<CommittedPartition> partitions_;
    std::vector<std::pair<std::size_t, std::size_t>> places_;   // where each of them stands in request and response
};

bool names_nobody(const MemberClaim& claim) { return claim.member_id.empty() && claim.epoch < 0 && !claim.instance_id; }

}  // namespace

// --- commits -------------------------------------------------------------------------------------------------------------

void OffsetOperations::commit(Context& context, protocol::OffsetCommitRequest& request, std::int16_t version, Reply<protocol::OffsetCommitResponse> reply) {
    Commit<protocol::OffsetCommitResponse, protocol::OffsetCommitRequest> commit{*context.image(), request, version >= 10};
    const MemberClaim claim{.member_id = request.member_id, .instance_id = request.group_instance_id, .epoch = request.generation_id_or_member_epoch};
    auto* group = groups_.find(request.group_id);
    auto error = ErrorCode::none;
    if (group != nullptr) error = group->check_commit({.claim = claim, .version = version, .partitions = commit.partitions()});
    else if (claim.epoch >= 0) error = version >= 9 ? ErrorCode::group_id_not_found : ErrorCode::illegal_generation;
    if (error != ErrorCode::none) {
        commit.refuse(error);
        return context.answer(std::move(reply), std::move(commit.response));
    }
    const auto expires = request.retention_time_ms == -1 ? std::nullopt : std::optional{context.now() + request.retention_time_ms};
    const auto records = commit.records(options_->commit_metadata_units_max, context.now(), expires);
    if (const auto written = context.write(records); !written) commit.fail_accepted(coordinator_error(written.error().code));
    if (auto* classic = dynamic_cast<ClassicGroup*>(group); classic != nullptr && !names_nobody(claim)) {
        if (classic->state == ClassicState::stable || classic->state == ClassicState::preparing_rebalance) classic_.touch(context, *classic, claim.member_id);
    }
    context.answer(std::move(reply), std::move(commit.response));
}

void OffsetOperations::commit(Context& context, protocol::TxnOffsetCommitRequest& request, std::int16_t version, std::optional<storage::VerificationId> verification,
                              Reply<protocol::TxnOffsetCommitResponse> reply) {
    Commit<protocol::TxnOffsetCommitResponse, protocol::TxnOffsetCommitRequest> commit{*context.image(), request, version >= 6};
    const MemberClaim claim{.member_id = request.member_id, .instance_id = request.group_instance_id, .epoch = request.generation_id_or_member_epoch};
    const auto* group = groups_.find(request.group_id);
    auto error = ErrorCode::none;
    if (request.group_id.empty()) error = ErrorCode::invalid_group_id;
    else if (group == nullptr && claim.epoch >= 0) error = version >= 6 ? ErrorCode::group_id_not_found : ErrorCode::illegal_generation;
    else if (group != nullptr && !names_nobody(claim)) error = group->check_commit({.claim = claim, .version = version, .transactional = true, .partitions = commit.partitions()});
    if (error == ErrorCode::stale_member_epoch && version < 6) error = ErrorCode::illegal_generation;
    if (error != ErrorCode::none) {
        commit.refuse(error);
        return context.answer(std::move(reply), std::move(commit.response));
    }
    const auto records = commit.records(options_->commit_metadata_units_max, context.now(), std::nullopt);
    const auto written = context.write(records, {.producer_id = request.producer_id, .producer_epoch = request.producer_epoch, .verification = verification});
    if (!written) commit.fail_accepted(coordinator_error(written.error().code));
    context.answer(std::move(reply), std::move(commit.response));
}

// --- OffsetFetch ---------------------------------------------------------------------------------------------------------

void OffsetOperations::fetch(Context& context, const protocol::OffsetFetchRequest::OffsetFetchRequestGroup& request, std::int16_t version, bool require_stable,
                             Reply<protocol::OffsetFetchResponse::OffsetFetchResponseGroup> reply) {
    const auto& image = *context.image();
    protocol::OffsetFetchResponse::OffsetFetchResponseGroup response{.group_id = request.group_id};
    const auto* group = groups_.find(request.group_id);
    if (group != nullptr) response.error_code = group->check_fetch({.member_id = request.member_id.value_or(""), .epoch = request.member_epoch});
    if (response.error_code != ErrorCode::none) return context.answer(std::move(reply), std::move(response));

    const auto answer_one = [&](const std::string& topic, std::int32_t partition, const Uuid& asked_id) {
        protocol::OffsetFetchResponse::OffsetFetchResponsePartitions answer{.partition_index = partition, .committed_offset = -1};
        if (group == nullptr) return answer;
        if (require_stable && offsets_.is_unstable(request.group_id, topic, partition)) {
            answer.error_code = ErrorCode::unstable_offset_commit;
            return answer;
        }
        const auto* stored = offsets_.find(request.group_id, topic, partition);
        // A topic that was made anew under its old name does not go on where the old one was.
        const bool is_other = stored != nullptr && !asked_id.is_zero() && !stored->topic_id.is_zero() && stored->topic_id != asked_id;
        if (stored == nullptr || is_other) return answer;
        answer.committed_offset = stored->offset;
        answer.committed_leader_epoch = stored->leader_epoch;
        answer.metadata = stored->metadata;
        return answer;
    };
    if (!request.topics) {
        const auto* topics = group != nullptr ? offsets_.of_group(request.group_id) : nullptr;
        if (topics == nullptr) return context.answer(std::move(reply), std::move(response));
        for (const auto& [name, partitions] : *topics) {
            const auto* known = image.find(name);
            if (version >= 10 && known == nullptr) continue;
            const auto id = version >= 10 ? known->id : Uuid{};
            auto& topic = response.topics.emplace_back();
            topic.name = name;
            topic.topic_id = id;
            for (const auto& [partition, stored] : partitions) topic.partitions.push_back(answer_one(name, partition, id));
        }
        return context.answer(std::move(reply), std::move(response));
    }
    for (const auto& asked : *request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.name = asked.name;
        topic.topic_id = asked.topic_id;
        const auto* known = version >= 10 ? image.find(asked.topic_id) : nullptr;
        for (const auto partition : asked.partition_indexes) {
            if (version < 10) topic.partitions.push_back(answer_one(asked.name, partition, Uuid{}));
            else if (known != nullptr) topic.partitions.push_back(answer_one(known->name, partition, known->id));
            else topic.partitions.push_back({.partition_index = partition, .committed_offset = -1, .error_code = ErrorCode::unknown_topic_id});
        }
    }
    context.answer(std::move(reply), std::move(response));
}

// --- what removes offsets ------------------------------------------------------------------------------------------------

void OffsetOperations::remove(Context& context, const protocol::OffsetDeleteRequest& request, Reply<protocol::OffsetDeleteResponse> reply) {
    const auto& image = *context.image();
    protocol::OffsetDeleteResponse response;
    const auto* group = groups_.find(request.group_id);
    response.error_code = group == nullptr ? ErrorCode::group_id_not_found : group->check_offset_delete();
    if (response.error_code != ErrorCode::none) return context.answer(std::move(reply), std::move(response));

    std::vector<Record> tombstones;
    for (const auto& asked : request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.name = asked.name;
        const auto* known = image.find(asked.name);
        const bool subscribed = known != nullptr && group->is_subscribed(asked.name);
        for (const auto& [index, unknown_tags] : asked.partitions) {
            auto error = ErrorCode::none;
            if (known == nullptr || !known->partitions.contains(index)) error = ErrorCode::unknown_topic_or_partition;
            else if (subscribed) error = ErrorCode::group_subscribed_to_topic;
            topic.partitions.push_back({.partition_index = index, .error_code = error});
            if (error != ErrorCode::none) continue;
            if (offsets_.find(request.group_id, asked.name, index) == nullptr && !offsets_.is_unstable(request.group_id, asked.name, index)) continue;
            tombstones.push_back(tombstone_of(protocol::OffsetCommitKey{.group = request.group_id, .topic = asked.name, .partition = index}));
        }
    }
    if (const auto written = context.write(tombstones); !written) response = {.error_code = coordinator_error(written.error().code)};
    context.answer(std::move(reply), std::move(response));
}

void OffsetOperations::expire(Context& context) {
    std::vector<std::string> ids;   // groups come and go while tombstones are replayed
    for (const auto& [id, group] : groups_) ids.push_back(id);
    for (const auto& id : ids) {
        if (auto* group = groups_.find(id)) expire(context, *group);
    }
}

void OffsetOperations::expire(Context& context, Group& group) {
    const auto expiry = group.offset_expiry();
    const auto& id = group.id();
    std::vector<Record> tombstones;
    bool all = !offsets_.has_pending(id);
    static const Offsets::Topics no_topics;
    const auto* topics = offsets_.of_group(id);
    for (const auto& [topic, partitions] : topics != nullptr ? *topics : no_topics) {
        const bool spared = expiry.base == OffsetExpiry::Base::never || group.is_subscribed(topic);
        for (const auto& [partition, stored] : partitions) {
            const auto base = expiry.base == OffsetExpiry::Base::since ? expiry.since : stored.committed;
            const bool is_over = stored.expires ? context.now() >= *stored.expires : context.now() - base >= options_->offsets_retention_ms;
            if (spared || !is_over || offsets_.is_unstable(id, topic, partition)) all = false;
            else tombstones.push_back(tombstone_of(protocol::OffsetCommitKey{.group = id, .topic = topic, .partition = partition}));
        }
    }
    const auto offsets_expired = tombstones.size();
    if (all && group.is_empty()) group.add_tombstones(tombstones);
    const bool is_gone = tombstones.size() != offsets_expired;
    if (const auto written = write_in_batches(context, tombstones); !written) return log_warning("group {}: offsets could not be expired: {}", id, written.error().message());
    if (offsets_expired != 0) log_info("expired {} offsets of a group{}", offsets_expired, is_gone ? ", and the group" : "");
}

void OffsetOperations::forget_deleted_topics(Context& context, const metadata::Image& before) {
    if (offsets_.empty()) return;
    std::vector<std::pair<std::string_view, Uuid>> deleted;
    for (const auto& [name, topic] : before.topics) {
        if (context.image()->find(topic->id) == nullptr) deleted.emplace_back(name, topic->id);
    }
    if (deleted.empty()) return;
    std::vector<Record> tombstones;
    const auto groups = offsets_.groups();
    for (const auto& [name, topic_id] : deleted) {
        for (const auto& group_id : groups) offsets_.add_tombstones(group_id, std::string(name), topic_id, tombstones);
    }
    // What stays is not shown to who asks by topic id, and goes when it expires.
    if (const auto written = write_in_batches(context, tombstones); !written) return log_warning("offsets of deleted topics stay: {}", written.error().message());
    if (!tombstones.empty()) log_info("removed {} offsets of deleted topics", tombstones.size());
}

}  // namespace tidemark::coordinator
