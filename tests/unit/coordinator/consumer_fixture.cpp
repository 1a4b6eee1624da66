#include "tests/unit/coordinator/consumer_fixture.h"

#include "protocol/messages/group_metadata_value.h"
#include "protocol/messages/heartbeat_request.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/sync_group_request.h"

namespace tidemark::coordinator {

namespace {

/// The answer that has come, or a failure: nothing here waits.
template <class Response, class Ask>
Response answer_of(Ask ask) {
    std::optional<Response> answer;
    ask(Reply<Response>{[&](Coded<Response> coded) {
        EXPECT_TRUE(coded.has_value());
        if (coded) answer = *coded;
    }});
    EXPECT_TRUE(answer.has_value()) << "no answer yet";
    return answer.value_or(Response{});
}

void replay_all(std::span<const Record> records, ConsumerGroups& consumer, ClassicGroups& classic) {
    for (const auto& record : records) {
        const auto type = *protocol::record_type_of(record.key);
        const ReplayedRecord replayed{.key = record.key, .value = record.value ? std::optional<Bytes>{*record.value} : std::nullopt};
        Result<> result;
        if (is_consumer_group_record(type)) {
            result = consumer.replay(type, replayed);
        } else if (type == protocol::GroupMetadataKey::record_type) {
            const auto key = *protocol::read_key<protocol::GroupMetadataKey>(record.key);
            const auto value = record.value ? std::optional{*protocol::read_value<protocol::GroupMetadataValue>(*record.value)} : std::nullopt;
            result = classic.replay(key.group, value ? &*value : nullptr);
        }
        ASSERT_TRUE(result.has_value()) << result.error().message();
    }
}

}  // namespace

std::string types(const std::vector<Record>& records) {
    std::string text;
    for (const auto& record : records) {
        if (!text.empty()) text += ' ';
        if (!record.value) text += '~';
        text += std::to_string(*protocol::record_type_of(record.key));
    }
    return text;
}

Uuid ConsumerCoordinator::put_topic(const std::string& name, int partitions) {
    const auto* known = image_->find(name);
    metadata::Topic topic{.name = name, .id = known != nullptr ? known->id : Uuid::random(), .partitions = {}};
    for (int i = 0; i < partitions; ++i) topic.partitions[i].replicas = {1};
    put_image([&](metadata::Image& image) { image.topics[name] = image.topics_by_id[topic.id] = std::make_shared<metadata::Topic>(topic); });
    return topic.id;
}

void ConsumerCoordinator::delete_topic(const std::string& name) {
    put_image([&](metadata::Image& image) {
        image.topics_by_id.erase(image.topics[name]->id);
        image.topics.erase(name);
    });
}

Result<> ConsumerCoordinator::write(std::span<const Record> records, const WriteOptions& how) {
    if (fail_writes) return *fail_writes;
    written.insert(written.end(), records.begin(), records.end());
    last_written.insert(last_written.end(), records.begin(), records.end());
    if (how.replay) replay_all(records, consumer, classic);
    return {};
}

ConsumerCoordinator::Response ConsumerCoordinator::send(const Request& request, std::int16_t version) {
    last_written.clear();
    auto response = answer_of<Response>([&](auto reply) { consumer.heartbeat(*this, {.id = "client", .host = "/127.0.0.1"}, request, version, reply); });
    check();
    return response;
}

ConsumerCoordinator::Response ConsumerCoordinator::join(const std::string& member_id, std::vector<std::string> topics) {
    Request request;
    request.group_id = group_id;
    request.member_id = member_id;
    request.rebalance_timeout_ms = 5000;
    request.subscribed_topic_names = std::move(topics);
    request.topic_partitions.emplace();
    return send(request);
}

ConsumerCoordinator::Response ConsumerCoordinator::beat(const std::string& member_id, std::int32_t epoch, std::optional<Partitions> owned) {
    Request request;
    request.group_id = group_id;
    request.member_id = member_id;
    request.member_epoch = epoch;
    if (owned) {
        request.topic_partitions.emplace();
        for (const auto& [topic, partitions] : *owned) {
            auto& entry = request.topic_partitions->emplace_back();
            entry.topic_id = topic;
            entry.partitions = partitions;
        }
    }
    return send(request);
}

ConsumerCoordinator::Response ConsumerCoordinator::leave(const std::string& member_id, std::int32_t epoch, std::optional<std::string> instance) {
    Request request;
    request.group_id = group_id;
    request.member_id = member_id;
    request.member_epoch = epoch;
    request.instance_id = std::move(instance);
    return send(request);
}

protocol::JoinGroupResponse ConsumerCoordinator::classic_join(const protocol::JoinGroupRequest& request, std::int16_t version) {
    last_written.clear();
    const Client client{.id = "client", .host = "/127.0.0.1"};
    auto response = answer_of<protocol::JoinGroupResponse>([&](auto reply) {
        if (groups.find_as<ConsumerGroup>(group_id) != nullptr) return consumer.join(*this, client, request, version, reply);
        auto copy = request;
        classic.join(*this, client, copy, version, {}, reply);
    });
    check();
    return response;
}

protocol::SyncGroupResponse ConsumerCoordinator::classic_sync(const protocol::SyncGroupRequest& request, std::int16_t version) {
    last_written.clear();
    auto response = answer_of<protocol::SyncGroupResponse>([&](auto reply) {
        if (groups.find_as<ConsumerGroup>(group_id) != nullptr) return consumer.sync(*this, request, reply);
        auto copy = request;
        classic.sync(*this, copy, version, reply);
    });
    check();
    return response;
}

ErrorCode ConsumerCoordinator::classic_beat(const std::string& member_id, std::int32_t generation) {
    last_written.clear();
    const protocol::HeartbeatRequest request{.group_id = group_id, .generation_id = generation, .member_id = member_id};
    const auto response = answer_of<protocol::HeartbeatResponse>([&](auto reply) {
        if (groups.find_as<ConsumerGroup>(group_id) != nullptr) return consumer.heartbeat(*this, request, reply);
        classic.heartbeat(*this, request, reply);
    });
    check();
    return response.error_code;
}

protocol::LeaveGroupResponse ConsumerCoordinator::classic_leave(const std::vector<std::string>& members) {
    last_written.clear();
    protocol::LeaveGroupRequest request;
    request.group_id = group_id;
    for (const auto& id : members) request.members.emplace_back().member_id = id;
    auto response = answer_of<protocol::LeaveGroupResponse>([&](auto reply) { consumer.leave(*this, request, reply); });
    check();
    return response;
}

const ConsumerGroup& ConsumerCoordinator::group() const {
    const auto* found = groups.find_as<ConsumerGroup>(group_id);
    if (found == nullptr) throw std::runtime_error("there is no consumer group");
    return *found;
}

const ConsumerMember& ConsumerCoordinator::member(const std::string& id) const {
    const auto* found = group().find(id);
    if (found == nullptr) throw std::runtime_error("no member " + id);
    return *found;
}

void ConsumerCoordinator::check() const {
    GroupTable shadow;
    ClassicGroups shadow_classic{shadow, shared_options};
    ConsumerGroups shadow_consumer{shadow, shadow_classic, shared_options};
    replay_all(written, shadow_consumer, shadow_classic);
    for (const auto& [id, group] : groups) {
        if (group->type() != GroupType::consumer) continue;
        const auto* replayed = shadow.find_as<ConsumerGroup>(id);
        ASSERT_NE(replayed, nullptr) << id;
        EXPECT_TRUE(*replayed == dynamic_cast<const ConsumerGroup&>(*group)) << id << " is not what its records say";
    }
    for (const auto& [id, group] : shadow) {
        EXPECT_TRUE(group->type() != GroupType::consumer || groups.find_as<ConsumerGroup>(id) != nullptr) << id << " is in the log only";
    }
}

void ConsumerCoordinator::restart() {
    while (groups.begin() != groups.end()) {
        const auto id = groups.begin()->first;
        if (const auto* group = groups.find_as<ConsumerGroup>(id)) consumer.let_go(*group);
        groups.erase(id);
    }
    replay_all(written, consumer, classic);
    consumer.loaded(*this);
    classic.loaded(*this);
}

}  // namespace tidemark::coordinator
