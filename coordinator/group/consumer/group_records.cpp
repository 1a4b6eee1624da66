#include "coordinator/group/consumer/group_records.h"

#include <algorithm>

#include "coordinator/group/consumer/consumer_group.h"
#include "protocol/messages/consumer_group_current_member_assignment_key.h"
#include "protocol/messages/consumer_group_current_member_assignment_value.h"
#include "protocol/messages/consumer_group_member_metadata_key.h"
#include "protocol/messages/consumer_group_member_metadata_value.h"
#include "protocol/messages/consumer_group_metadata_key.h"
#include "protocol/messages/consumer_group_metadata_value.h"
#include "protocol/messages/consumer_group_partition_metadata_key.h"
#include "protocol/messages/consumer_group_regular_expression_key.h"
#include "protocol/messages/consumer_group_regular_expression_value.h"
#include "protocol/messages/consumer_group_target_assignment_member_key.h"
#include "protocol/messages/consumer_group_target_assignment_member_value.h"
#include "protocol/messages/consumer_group_target_assignment_metadata_key.h"
#include "protocol/messages/consumer_group_target_assignment_metadata_value.h"

namespace tidemark::coordinator {

using namespace protocol;

namespace {

using AssignmentValue = ConsumerGroupCurrentMemberAssignmentValue;

std::vector<AssignmentValue::TopicPartitions> to_value(const HeldPartitions& held) {
    std::vector<AssignmentValue::TopicPartitions> result;
    for (const auto& [topic, partitions] : held) {
        auto& entry = result.emplace_back();
        entry.topic_id = topic;
        entry.assignment_epochs.emplace();
        for (const auto& [partition, epoch] : partitions) {
            entry.partitions.push_back(partition);
            entry.assignment_epochs->push_back(epoch);
        }
    }
    return result;
}

/// Records before KIP-1251 do not say when a partition was assigned: then it was at the member's epoch, as far as anyone knows.
HeldPartitions from_value(const std::vector<AssignmentValue::TopicPartitions>& entries, std::int32_t member_epoch) {
    HeldPartitions result;
    for (const auto& entry : entries) {
        const auto known = entry.assignment_epochs && entry.assignment_epochs->size() == entry.partitions.size();
        auto& partitions = result[entry.topic_id];
        for (std::size_t i = 0; i < entry.partitions.size(); ++i) partitions[entry.partitions[i]] = known ? (*entry.assignment_epochs)[i] : std::max(member_epoch, 0);
    }
    std::erase_if(result, [](const auto& entry) { return entry.second.empty(); });
    return result;
}

MemberState state_of(std::int8_t number) {
    return number >= 0 && number <= 2 ? static_cast<MemberState>(number) : MemberState::unknown;
}

MemberFacts facts_of(ConsumerGroupMemberMetadataValue value) {
    MemberFacts facts{.instance_id = std::move(value.instance_id),
                      .rack_id = std::move(value.rack_id),
                      .client_id = std::move(value.client_id),
                      .client_host = std::move(value.client_host),
                      .topics = std::move(value.subscribed_topic_names),
                      .regex = value.subscribed_topic_regex.value_or(""),
                      .rebalance_timeout_ms = value.rebalance_timeout_ms,
                      .assignor = std::move(value.server_assignor),
                      .classic = {}};
    std::ranges::sort(facts.topics);
    if (value.classic_member_metadata) {
        facts.classic.emplace().session_timeout_ms = value.classic_member_metadata->session_timeout_ms;
        for (auto& protocol : value.classic_member_metadata->supported_protocols) facts.classic->protocols.push_back({std::move(protocol.name), std::move(protocol.metadata)});
    }
    return facts;
}

}  // namespace

Record member_record(const std::string& group, const std::string& member, const MemberFacts& facts) {
    ConsumerGroupMemberMetadataValue value;
    value.instance_id = facts.instance_id;
    value.rack_id = facts.rack_id;
    value.client_id = facts.client_id;
    value.client_host = facts.client_host;
    value.subscribed_topic_names = facts.topics;
    value.subscribed_topic_regex = facts.regex;
    value.rebalance_timeout_ms = facts.rebalance_timeout_ms;
    value.server_assignor = facts.assignor;
    value.classic_member_metadata = std::nullopt;
    if (facts.classic) {
        auto& classic = value.classic_member_metadata.emplace();
        classic.session_timeout_ms = facts.classic->session_timeout_ms;
        for (const auto& protocol : facts.classic->protocols) {
            auto& entry = classic.supported_protocols.emplace_back();
            entry.name = protocol.name;
            entry.metadata = protocol.metadata;
        }
    }
    return record_of(ConsumerGroupMemberMetadataKey{.group_id = group, .member_id = member}, value, 0);
}

Record member_tombstone(const std::string& group, const std::string& member) { return tombstone_of(ConsumerGroupMemberMetadataKey{.group_id = group, .member_id = member}); }

Record assignment_record(const std::string& group, const std::string& member, const MemberAssignment& assignment) {
    AssignmentValue value;
    value.member_epoch = assignment.epoch;
    value.previous_member_epoch = assignment.previous_epoch;
    value.state = static_cast<std::int8_t>(assignment.state);
    value.assigned_partitions = to_value(assignment.assigned);
    value.partitions_pending_revocation = to_value(assignment.pending_revocation);
    return record_of(ConsumerGroupCurrentMemberAssignmentKey{.group_id = group, .member_id = member}, value, 0);
}

Record assignment_tombstone(const std::string& group, const std::string& member) {
    return tombstone_of(ConsumerGroupCurrentMemberAssignmentKey{.group_id = group, .member_id = member});
}

Record target_record(const std::string& group, const std::string& member, const Partitions& partitions) {
    ConsumerGroupTargetAssignmentMemberValue value;
    for (const auto& [topic, numbers] : partitions) {
        auto& entry = value.topic_partitions.emplace_back();
        entry.topic_id = topic;
        entry.partitions = numbers;
    }
    return record_of(ConsumerGroupTargetAssignmentMemberKey{.group_id = group, .member_id = member}, value, 0);
}

Record target_tombstone(const std::string& group, const std::string& member) {
    return tombstone_of(ConsumerGroupTargetAssignmentMemberKey{.group_id = group, .member_id = member});
}

Record epoch_record(const std::string& group, std::int32_t epoch, std::int64_t metadata_hash) {
    ConsumerGroupMetadataValue value;
    value.epoch = epoch;
    value.metadata_hash = metadata_hash;
    return record_of(ConsumerGroupMetadataKey{.group_id = group}, value, 0);
}

Record assignment_epoch_record(const std::string& group, std::int32_t epoch, Timestamp at) {
    ConsumerGroupTargetAssignmentMetadataValue value;
    value.assignment_epoch = epoch;
    value.assignment_timestamp = at.value;
    return record_of(ConsumerGroupTargetAssignmentMetadataKey{.group_id = group}, value, 0);
}

Record regex_record(const std::string& group, const std::string& pattern, const ResolvedRegex& resolved) {
    ConsumerGroupRegularExpressionValue value;
    value.topics = resolved.topics;
    value.version = resolved.image.value;
    value.timestamp = resolved.at.value;
    return record_of(ConsumerGroupRegularExpressionKey{.group_id = group, .regular_expression = pattern}, value, 0);
}

Record regex_tombstone(const std::string& group, const std::string& pattern) {
    return tombstone_of(ConsumerGroupRegularExpressionKey{.group_id = group, .regular_expression = pattern});
}

std::vector<Record> records_of(const ConsumerGroup& group) {
    std::vector<Record> records;
    for (const auto& [id, member] : group.members()) records.push_back(member_record(group.id(), id, member.facts));
    for (const auto& [pattern, resolved] : group.regexes()) records.push_back(regex_record(group.id(), pattern, resolved));
    records.push_back(epoch_record(group.id(), group.epoch(), group.metadata_hash()));
    for (const auto& [id, target] : group.targets()) records.push_back(target_record(group.id(), id, target));
    records.push_back(assignment_epoch_record(group.id(), group.assignment_epoch(), group.assigned_at()));
    for (const auto& [id, member] : group.members()) records.push_back(assignment_record(group.id(), id, member.current));
    return records;
}

void ConsumerGroup::add_tombstones(std::vector<Record>& to) const {
    for (const auto& [member, entry] : members_) to.push_back(assignment_tombstone(id(), member));
    for (const auto& [member, target] : targets_) to.push_back(target_tombstone(id(), member));
    to.push_back(tombstone_of(ConsumerGroupTargetAssignmentMetadataKey{.group_id = id()}));
    for (const auto& [member, entry] : members_) to.push_back(member_tombstone(id(), member));
    for (const auto& [pattern, resolved] : regexes_) to.push_back(regex_tombstone(id(), pattern));
    // Nothing writes values of this type any more, but an older broker may have.
    to.push_back(tombstone_of(ConsumerGroupPartitionMetadataKey{.group_id = id()}));
    to.push_back(tombstone_of(ConsumerGroupMetadataKey{.group_id = id()}));
}

// --- the way back ------------------------------------------------------------------------------------------------------

namespace {

struct Replay {
    Bytes key_bytes;
    const std::optional<Bytes>& value_bytes;
    const ConsumerGroupPlace& place;

    template <class Key>
    Result<Key> key() const { return read_key<Key>(key_bytes); }
    /// The group that a value belongs to, or that a tombstone may still find.
    Result<ConsumerGroup*> group(const std::string& id) const { return place.find(id, value_bytes.has_value()); }

    Result<> member() const {
        TM_TRY(const auto key, this->key<ConsumerGroupMemberMetadataKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(auto value, read_value<ConsumerGroupMemberMetadataValue>(*value_bytes));
            group->put_member(key.member_id, facts_of(std::move(value)));
            return {};
        }
        const auto* member = group == nullptr ? nullptr : group->find(key.member_id);
        if (member == nullptr) return {};
        if (member->current != MemberAssignment{}) return Error{Errc::corrupt, key.group_id + ": member " + key.member_id + " is removed before its assignment"};
        if (group->target(key.member_id) != nullptr) return Error{Errc::corrupt, key.group_id + ": member " + key.member_id + " is removed before its target"};
        group->erase_member(key.member_id);
        return {};
    }

    Result<> assignment() const {
        TM_TRY(const auto key, this->key<ConsumerGroupCurrentMemberAssignmentKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(const auto value, read_value<AssignmentValue>(*value_bytes));
            group->put_assignment(key.member_id, {.epoch = value.member_epoch,
                                                  .previous_epoch = value.previous_member_epoch,
                                                  .state = state_of(value.state),
                                                  .assigned = from_value(value.assigned_partitions, value.member_epoch),
                                                  .pending_revocation = from_value(value.partitions_pending_revocation, value.member_epoch)});
        } else if (group != nullptr) {
            group->erase_assignment(key.member_id);
        }
        return {};
    }

    Result<> target() const {
        TM_TRY(const auto key, this->key<ConsumerGroupTargetAssignmentMemberKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(const auto value, read_value<ConsumerGroupTargetAssignmentMemberValue>(*value_bytes));
            Partitions partitions;
            for (const auto& topic : value.topic_partitions) {
                if (topic.partitions.empty()) continue;
                auto& numbers = partitions[topic.topic_id] = topic.partitions;
                std::ranges::sort(numbers);
            }
            group->put_target(key.member_id, std::move(partitions));
        } else if (group != nullptr) {
            group->erase_target(key.member_id);
        }
        return {};
    }

    Result<> epoch() const {
        TM_TRY(const auto key, this->key<ConsumerGroupMetadataKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(const auto value, read_value<ConsumerGroupMetadataValue>(*value_bytes));
            group->put_epoch(value.epoch, value.metadata_hash);
            return {};
        }
        if (group == nullptr) return {};
        if (!group->is_empty() || !group->targets().empty() || group->assignment_epoch() != erased_epoch) {
            return Error{Errc::corrupt, key.group_id + ": the group is removed before its members or its target"};
        }
        place.erase(key.group_id);
        return {};
    }

    Result<> assignment_epoch() const {
        TM_TRY(const auto key, this->key<ConsumerGroupTargetAssignmentMetadataKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(const auto value, read_value<ConsumerGroupTargetAssignmentMetadataValue>(*value_bytes));
            group->put_assignment_epoch(value.assignment_epoch, Timestamp{value.assignment_timestamp});
            return {};
        }
        if (group == nullptr) return {};
        if (!group->targets().empty()) return Error{Errc::corrupt, key.group_id + ": the target's epoch is removed before the target"};
        group->put_assignment_epoch(erased_epoch, Timestamp{0});
        return {};
    }

    Result<> regex() const {
        TM_TRY(const auto key, this->key<ConsumerGroupRegularExpressionKey>());
        TM_TRY(auto* group, this->group(key.group_id));
        if (value_bytes) {
            TM_TRY(auto value, read_value<ConsumerGroupRegularExpressionValue>(*value_bytes));
            std::ranges::sort(value.topics);
            group->put_regex(key.regular_expression, {.topics = std::move(value.topics), .image = Offset{value.version}, .at = Timestamp{value.timestamp}});
        } else if (group != nullptr) {
            group->erase_regex(key.regular_expression);
        }
        return {};
    }

    /// Nothing of it is used any more, but it names a group.
    Result<> partition_metadata() const {
        TM_TRY(const auto key, this->key<ConsumerGroupPartitionMetadataKey>());
        TM_TRYV(this->group(key.group_id));
        return {};
    }

    static constexpr std::int32_t erased_epoch = -1;
};

}  // namespace

bool is_consumer_group_record(std::int16_t type) { return (type >= 3 && type <= 8) || type == ConsumerGroupRegularExpressionKey::record_type; }

Result<> replay_consumer_group(std::int16_t type, Bytes key, const std::optional<Bytes>& value, const ConsumerGroupPlace& place) {
    const Replay replay{key, value, place};
    switch (type) {
        case ConsumerGroupMetadataKey::record_type: return replay.epoch();
        case ConsumerGroupPartitionMetadataKey::record_type: return replay.partition_metadata();
        case ConsumerGroupMemberMetadataKey::record_type: return replay.member();
        case ConsumerGroupTargetAssignmentMetadataKey::record_type: return replay.assignment_epoch();
        case ConsumerGroupTargetAssignmentMemberKey::record_type: return replay.target();
        case ConsumerGroupCurrentMemberAssignmentKey::record_type: return replay.assignment();
        case ConsumerGroupRegularExpressionKey::record_type: return replay.regex();
        default: return {};
    }
}

}  // namespace tidemark::coordinator
