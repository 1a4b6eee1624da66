#include "coordinator/group/group_machine.h"

#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "coordinator/errors.h"
#include "coordinator/group/consumer/group_records.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"
#include "protocol/messages/group_metadata_key.h"
#include "protocol/messages/legacy_offset_commit_key.h"
#include "protocol/messages/legacy_offset_commit_value.h"

namespace tidemark::coordinator {

namespace {

bool equal_in_any_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// No filter lets everything through; what is not a state's or type's name matches nothing.
bool passes(const std::vector<std::string>& filter, std::string_view name) {
    return filter.empty() || std::ranges::any_of(filter, [&](const auto& wanted) { return equal_in_any_case(wanted, name); });
}

}  // namespace

GroupMachine::GroupMachine(GroupOptionsPtr options)
    : options_(std::move(options)), classic_(groups_, options_), consumer_(groups_, classic_, options_), offset_operations_(groups_, offsets_, classic_, options_) {}

// --- operations ----------------------------------------------------------------------------------------------------------

void GroupMachine::join(Context& context, const Client& client, protocol::JoinGroupRequest& request, std::int16_t version, Reply<protocol::JoinGroupResponse> reply) {
    const auto* consumer = groups_.find_as<ConsumerGroup>(request.group_id);
    if (consumer != nullptr && !consumer->is_empty()) return consumer_.join(context, client, request, version, std::move(reply));
    std::vector<Record> replaced;
    if (consumer != nullptr) consumer->add_tombstones(replaced);
    classic_.join(context, client, request, version, std::move(replaced), std::move(reply));
}

void GroupMachine::sync(Context& context, protocol::SyncGroupRequest& request, std::int16_t version, Reply<protocol::SyncGroupResponse> reply) {
    if (is_consumer_group(request.group_id)) return consumer_.sync(context, request, std::move(reply));
    classic_.sync(context, request, version, std::move(reply));
}

void GroupMachine::heartbeat(Context& context, const protocol::HeartbeatRequest& request, Reply<protocol::HeartbeatResponse> reply) {
    if (is_consumer_group(request.group_id)) return consumer_.heartbeat(context, request, std::move(reply));
    classic_.heartbeat(context, request, std::move(reply));
}

void GroupMachine::leave(Context& context, const protocol::LeaveGroupRequest& request, Reply<protocol::LeaveGroupResponse> reply) {
    if (is_consumer_group(request.group_id)) return consumer_.leave(context, request, std::move(reply));
    classic_.leave(context, request, std::move(reply));
}

bool GroupMachine::is_consumer_group(const std::string& group_id) const {
    const auto* group = groups_.find_as<ConsumerGroup>(group_id);
    return group != nullptr && !group->is_empty();
}

void GroupMachine::heartbeat(Context& context, const Client& client, const protocol::ConsumerGroupHeartbeatRequest& request, std::int16_t version,
                             Reply<protocol::ConsumerGroupHeartbeatResponse> reply) {
    consumer_.heartbeat(context, client, request, version, std::move(reply));
}

void GroupMachine::describe_consumer_group(Context& context, const std::string& group_id, Reply<protocol::ConsumerGroupDescribeResponse::DescribedGroup> reply) const {
    context.answer(std::move(reply), consumer_.describe(context, group_id));
}

void GroupMachine::list(Context& context, const protocol::ListGroupsRequest& request, Reply<std::vector<protocol::ListGroupsResponse::ListedGroup>> reply) const {
    std::vector<protocol::ListGroupsResponse::ListedGroup> listed;
    for (const auto& [id, group] : groups_) {
        if (!passes(request.states_filter, group->state_name()) || !passes(request.types_filter, to_string(group->type()))) continue;
        listed.push_back({.group_id = id, .protocol_type = group->protocol_type(), .group_state = std::string{group->state_name()}, .group_type = std::string{to_string(group->type())}});
    }
    context.answer(std::move(reply), std::move(listed));
}

void GroupMachine::describe(Context& context, const std::string& group_id, std::int16_t version, Reply<protocol::DescribeGroupsResponse::DescribedGroup> reply) const {
    protocol::DescribeGroupsResponse::DescribedGroup described{.group_id = group_id};
    const auto* found = groups_.find(group_id);
    const auto* group = dynamic_cast<const ClassicGroup*>(found);
    if (group == nullptr) {
        described.group_state = "Dead";
        if (version >= 6) {
            described.error_code = ErrorCode::group_id_not_found;
            described.error_message = found == nullptr ? "Group " + group_id + " not found." : "Group " + group_id + " is not a classic group.";
        }
        return context.answer(std::move(reply), std::move(described));
    }
    const bool stable = group->state == ClassicState::stable;
    described.group_state = group->state_name();
    described.protocol_type = group->protocol_type();
    described.protocol_data = stable ? group->protocol.value_or("") : "";
    for (const auto& [id, member] : group->members) {
        const auto* metadata = stable && group->protocol ? member.metadata_of(*group->protocol) : nullptr;
        described.members.push_back({.member_id = id,
                                     .group_instance_id = member.instance_id,
                                     .client_id = member.client.id,
                                     .client_host = member.client.host,
                                     .member_metadata = metadata != nullptr ? *metadata : std::vector<std::byte>{},
                                     .member_assignment = stable ? member.assignment : std::vector<std::byte>{}});
    }
    context.answer(std::move(reply), std::move(described));
}

/// All that can go, goes in one batch.
void GroupMachine::remove(Context& context, const std::vector<std::string>& group_ids, Reply<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>> reply) {
    std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult> results;
    std::vector<Record> tombstones;
    for (const auto& id : group_ids) {
        auto& result = results.emplace_back();
        result.group_id = id;
        const auto* group = groups_.find(id);
        if (group == nullptr) {
            result.error_code = ErrorCode::group_id_not_found;
            result.error_message = "Group " + id + " not found.";
        } else if (!group->is_empty()) {
            result.error_code = ErrorCode::non_empty_group;
        } else {
            offsets_.add_tombstones(id, tombstones);
            group->add_tombstones(tombstones);
        }
    }
    if (const auto written = context.write(tombstones); !written) {
        for (auto& result : results) {
            if (result.error_code == ErrorCode::none) result.error_code = coordinator_error(written.error().code);
        }
    }
    context.answer(std::move(reply), std::move(results));
}

std::vector<GroupStats> GroupMachine::stats() const {
    std::vector<GroupStats> all;
    all.reserve(groups_.size());
    for (const auto& [id, group] : groups_) {
        auto& stats = all.emplace_back(GroupStats{.id = id, .type = group->type(), .state = std::string{group->state_name()}, .members = group->member_count(), .offsets = {}});
        const auto* topics = offsets_.of_group(id);
        if (topics == nullptr) continue;
        for (const auto& [topic, partitions] : *topics) {
            for (const auto& [partition, stored] : partitions) stats.offsets.push_back({topic, partition, stored.offset});
        }
    }
    return all;
}

// --- the log -------------------------------------------------------------------------------------------------------------

Result<> GroupMachine::replay(const ReplayedRecord& record) {
    using namespace protocol;
    TM_TRY(const auto type, record_type_of(record.key));
    switch (type) {
        case LegacyOffsetCommitKey::record_type: {
            TM_TRY(const auto key, read_key<LegacyOffsetCommitKey>(record.key));
            const OffsetCommitKey as_now{.group = key.group, .topic = key.topic, .partition = key.partition};
            if (!record.value) return replay_offset(as_now, nullptr, record);
            TM_TRY(const auto value, read_value<OffsetCommitValue>(*record.value));
            return replay_offset(as_now, &value, record);
        }
        case OffsetCommitKey::record_type: {
            TM_TRY(const auto key, read_key<OffsetCommitKey>(record.key));
            if (!record.value) return replay_offset(key, nullptr, record);
            TM_TRY(const auto value, read_value<OffsetCommitValue>(*record.value));
            return replay_offset(key, &value, record);
        }
        case GroupMetadataKey::record_type: {
            TM_TRY(const auto key, read_key<GroupMetadataKey>(record.key));
            if (!record.value) return classic_.replay(key.group, nullptr);
            TM_TRY(const auto value, read_value<GroupMetadataValue>(*record.value));
            return classic_.replay(key.group, &value);
        }
        default:
            if (is_consumer_group_record(type)) return consumer_.replay(type, record);
            break;
    }
    // Share and streams groups' (group-coordinator 9), or a later version's.
    static LogLimit limit{60'000};
    if (const auto held = limit.admit(); held >= 0) log_warning("a group record of type {} is skipped ({} more not shown)", type, held);
    return {};
}

Result<> GroupMachine::replay_offset(const protocol::OffsetCommitKey& key, const protocol::OffsetCommitValue* value, const ReplayedRecord& record) {
    // Who commits without being a member has a group all the same: a simple one.
    if (value != nullptr && groups_.find(key.group) == nullptr) {
        groups_.put(std::make_unique<ClassicGroup>(key.group, Timestamp{record.timestamp}));
    }
    offsets_.replay(key, value, record.offset, record.producer_id);
    return {};
}

Result<> GroupMachine::replay(const ReplayedMarker& marker) {
    offsets_.end_transaction(marker.producer_id, marker.committed);
    return {};
}

// --- life, time ----------------------------------------------------------------------------------------------------------

void GroupMachine::loaded(Context& context) {
    classic_.loaded(context);
    consumer_.loaded(context);
    next_expiry_ = context.moment() + Moment{options_->retention_check_interval_ms};
}

void GroupMachine::unloaded(ErrorCode reason) { classic_.unloaded(reason); }

void GroupMachine::image_changed(Context& context, const metadata::ImagePtr& before) { offset_operations_.forget_deleted_topics(context, *before); }

std::optional<Moment> GroupMachine::next_deadline() const {
    auto next = next_expiry_;
    for (const auto timer : {classic_.next_deadline(), consumer_.next_deadline()}) {
        if (timer && (!next || *timer < *next)) next = timer;
    }
    return next;
}

void GroupMachine::tick(Context& context) {
    classic_.tick(context);
    consumer_.tick(context);
    if (!next_expiry_ || context.moment() < *next_expiry_) return;
    offset_operations_.expire(context);
    next_expiry_ = context.moment() + Moment{options_->retention_check_interval_ms};
}

}  // namespace tidemark::coordinator
