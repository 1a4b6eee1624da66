// OffsetCommit (8) versions 2 to 10, OffsetFetch (9) 1 to 10, OffsetDelete (47) 0: group-coordinator 5.
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"
#include "protocol/messages/offset_commit_request.h"
#include "protocol/messages/offset_commit_response.h"
#include "protocol/messages/offset_delete_request.h"
#include "protocol/messages/offset_delete_response.h"
#include "protocol/messages/offset_fetch_request.h"
#include "protocol/messages/offset_fetch_response.h"

namespace tidemark::daemon::handlers {

using namespace protocol;

void offset_commit(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<OffsetCommitRequest>();
    if (!request) return;
    // The answer's frame, in case there is nothing but an error to fill it with.
    OffsetCommitResponse unanswered;
    for (const auto& asked : request->topics) {
        auto& topic = unanswered.topics.emplace_back();
        topic.name = asked.name;
        topic.topic_id = asked.topic_id;
        for (const auto& partition : asked.partitions) topic.partitions.push_back({.partition_index = partition.partition_index});
    }
    auto refusal = [unanswered = std::move(unanswered)](ErrorCode code) {
        auto response = unanswered;
        for (auto& topic : response.topics) {
            for (auto& partition : topic.partitions) partition.error_code = code;
        }
        return response;
    };
    broker.coordinators().groups().commit(*std::move(request), call->version(), reply_to<OffsetCommitResponse>(call, std::move(refusal)));
}

namespace {

using Groups = std::vector<OffsetFetchResponse::OffsetFetchResponseGroup>;

/// Before version 8 a request has one group, whose parts stand at the top.
OffsetFetchRequest::OffsetFetchRequestGroup only_group(OffsetFetchRequest& request) {
    OffsetFetchRequest::OffsetFetchRequestGroup group{.group_id = std::move(request.group_id), .topics = std::nullopt};
    if (!request.topics) return group;
    group.topics.emplace();
    for (auto& topic : *request.topics) {
        auto& asked = group.topics->emplace_back();
        asked.name = std::move(topic.name);
        asked.partition_indexes = std::move(topic.partition_indexes);
    }
    return group;
}

/// Version 1 has no place for a group's error but its partitions.
OffsetFetchResponse of_only_group(Groups groups, std::int16_t version, const OffsetFetchRequest::OffsetFetchRequestGroup& asked) {
    OffsetFetchResponse response;
    auto& group = groups.front();
    response.error_code = group.error_code;
    for (auto& topic : group.topics) {
        auto& at = response.topics.emplace_back();
        at.name = std::move(topic.name);
        for (auto& partition : topic.partitions) {
            at.partitions.push_back({.partition_index = partition.partition_index,
                                     .committed_offset = partition.committed_offset,
                                     .committed_leader_epoch = partition.committed_leader_epoch,
                                     .metadata = std::move(partition.metadata),
                                     .error_code = partition.error_code});
        }
    }
    if (version >= 2 || group.error_code == ErrorCode::none || !asked.topics) return response;
    for (const auto& topic : *asked.topics) {
        auto& at = response.topics.emplace_back();
        at.name = topic.name;
        for (const auto partition : topic.partition_indexes) at.partitions.push_back({.partition_index = partition, .committed_offset = -1, .error_code = group.error_code});
    }
    return response;
}

}  // namespace

void offset_fetch(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<OffsetFetchRequest>();
    if (!request) return;
    const auto version = call->version();
    auto groups = version >= 8 ? std::move(request->groups) : std::vector{only_group(*request)};
    const auto asked = version < 2 ? groups.front() : OffsetFetchRequest::OffsetFetchRequestGroup{};
    broker.coordinators().groups().fetch(std::move(groups), version, request->require_stable, [call, version, asked](coordinator::Coded<Groups> answered) {
        asio::dispatch(call->executor(), [call, version, asked, answered = std::move(answered)]() mutable {
            for (const auto& group : *answered) call->count(group.error_code);
            if (version < 8) return call->finish(of_only_group(*std::move(answered), version, asked));
            call->finish(OffsetFetchResponse{.groups = *std::move(answered)});
        });
    });
}

void offset_delete(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<OffsetDeleteRequest>();
    if (!request) return;
    broker.coordinators().groups().delete_offsets(*std::move(request), reply_to<OffsetDeleteResponse>(call, [](ErrorCode code) { return OffsetDeleteResponse{.error_code = code}; }));
}

}  // namespace tidemark::daemon::handlers
