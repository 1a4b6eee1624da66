/// Changes to one consumer group, made step by step, with the records that say them. Steps see what earlier ones did. Until
/// keep() the group is as it was as soon as the draft goes out of scope: an operation that is refused half-way, or whose
/// records could not be written, has changed nothing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/group/consumer/consumer_group.h"
#include "coordinator/record.h"

namespace tidemark::coordinator {

class GroupDraft {
public:
    /// `records`: those that come before in the same batch.
    explicit GroupDraft(ConsumerGroup& group, std::vector<Record> records = {}) : group_(group), records_(std::move(records)) {}
    ~GroupDraft();
    GroupDraft(const GroupDraft&) = delete;
    GroupDraft& operator=(const GroupDraft&) = delete;

    const ConsumerGroup& group() const { return group_; }
    const std::vector<Record>& records() const { return records_; }
    /// For records that end the group altogether.
    std::vector<Record>& records() { return records_; }
    void keep() { undo_.clear(); }

    void put_member(const std::string& id, MemberFacts);
    void put_assignment(const std::string& id, MemberAssignment);
    void put_target(const std::string& id, Partitions);
    void put_epoch(std::int32_t epoch, std::int64_t metadata_hash);
    void put_assignment_epoch(std::int32_t epoch, Timestamp);
    void put_regex(const std::string& pattern, ResolvedRegex);
    void erase_regex(const std::string& pattern);
    /// With its assignment and its target.
    void erase_member(const std::string& id);
    /// `to` takes over everything that `from` is and has, at epoch 0 (KIP-345 in KIP-848).
    void replace_member(const std::string& from, const std::string& to);

private:
    using Undo = std::function<void(ConsumerGroup&)>;
    Undo restore_member(const std::string& id) const;
    Undo restore_target(const std::string& id) const;

    ConsumerGroup& group_;
    std::vector<Record> records_;
    std::vector<Undo> undo_;   // in the order of the steps
};

}  // namespace tidemark::coordinator
