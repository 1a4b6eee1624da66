/// The records of consumer groups, types 3 to 8 and 16 (group-coordinator 3): what a group is, as they say it.
#pragma once

#include <functional>
#include <string>

#include "coordinator/group/consumer/member.h"
#include "coordinator/group/consumer/topic_regex.h"
#include "coordinator/record.h"

namespace tidemark::coordinator {

class ConsumerGroup;

Record member_record(const std::string& group, const std::string& member, const MemberFacts&);
Record member_tombstone(const std::string& group, const std::string& member);
Record assignment_record(const std::string& group, const std::string& member, const MemberAssignment&);
Record assignment_tombstone(const std::string& group, const std::string& member);
Record target_record(const std::string& group, const std::string& member, const Partitions&);
Record target_tombstone(const std::string& group, const std::string& member);
Record epoch_record(const std::string& group, std::int32_t epoch, std::int64_t metadata_hash);
Record assignment_epoch_record(const std::string& group, std::int32_t epoch, Timestamp);
Record regex_record(const std::string& group, const std::string& pattern, const ResolvedRegex&);
Record regex_tombstone(const std::string& group, const std::string& pattern);

/// All records of the group as it is, in the order of its making.
std::vector<Record> records_of(const ConsumerGroup&);
/// Where a load finds and puts the groups that records name.
struct ConsumerGroupPlace {
    /// Null when there is none of that name and `create` is false. Errors: corrupt when a group of another kind is there.
    std::function<Result<ConsumerGroup*>(const std::string& group, bool create)> find;
    std::function<void(const std::string& group)> erase;
};

/// Whether replay_consumer_group() is for records of this type.
bool is_consumer_group_record(std::int16_t type);

/// Applies one record of a load. Errors: corrupt, unsupported (a value of a later version), corrupt for tombstones in an order
/// that nobody writes.
Result<> replay_consumer_group(std::int16_t type, Bytes key, const std::optional<Bytes>& value, const ConsumerGroupPlace&);

}  // namespace tidemark::coordinator
