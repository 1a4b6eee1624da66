#include "coordinator/group/consumer/group_draft.h"

#include <optional>
#include <ranges>

#include "coordinator/group/consumer/group_records.h"

namespace tidemark::coordinator {

GroupDraft::~GroupDraft() {
    for (const auto& undo : std::views::reverse(undo_)) undo(group_);
}

GroupDraft::Undo GroupDraft::restore_member(const std::string& id) const {
    const auto* member = group_.find(id);
    if (member == nullptr) return [id](ConsumerGroup& group) { group.erase_member(id); };
    return [before = *member](ConsumerGroup& group) {
        group.put_member(before.id, before.facts);
        group.put_assignment(before.id, before.current);
    };
}

GroupDraft::Undo GroupDraft::restore_target(const std::string& id) const {
    const auto* target = group_.target(id);
    if (target == nullptr) return [id](ConsumerGroup& group) { group.erase_target(id); };
    return [id, before = *target](ConsumerGroup& group) { group.put_target(id, before); };
}

void GroupDraft::put_member(const std::string& id, MemberFacts facts) {
    undo_.push_back(restore_member(id));
    records_.push_back(member_record(group_.id(), id, facts));
    group_.put_member(id, std::move(facts));
}

void GroupDraft::put_assignment(const std::string& id, MemberAssignment assignment) {
    undo_.push_back(restore_member(id));
    records_.push_back(assignment_record(group_.id(), id, assignment));
    group_.put_assignment(id, std::move(assignment));
}

void GroupDraft::put_target(const std::string& id, Partitions partitions) {
    undo_.push_back(restore_target(id));
    records_.push_back(target_record(group_.id(), id, partitions));
    group_.put_target(id, std::move(partitions));
}

void GroupDraft::put_epoch(std::int32_t epoch, std::int64_t metadata_hash) {
    undo_.push_back([before = group_.epoch(), hash = group_.metadata_hash()](ConsumerGroup& group) { group.put_epoch(before, hash); });
    records_.push_back(epoch_record(group_.id(), epoch, metadata_hash));
    group_.put_epoch(epoch, metadata_hash);
}

void GroupDraft::put_assignment_epoch(std::int32_t epoch, Timestamp at) {
    undo_.push_back([before = group_.assignment_epoch(), at_before = group_.assigned_at()](ConsumerGroup& group) { group.put_assignment_epoch(before, at_before); });
    records_.push_back(assignment_epoch_record(group_.id(), epoch, at));
    group_.put_assignment_epoch(epoch, at);
}

void GroupDraft::put_regex(const std::string& pattern, ResolvedRegex resolved) {
    const auto found = group_.regexes().find(pattern);
    const auto before = found == group_.regexes().end() ? std::nullopt : std::optional{found->second};
    undo_.push_back([pattern, before](ConsumerGroup& group) { before ? group.put_regex(pattern, *before) : group.erase_regex(pattern); });
    records_.push_back(regex_record(group_.id(), pattern, resolved));
    group_.put_regex(pattern, std::move(resolved));
}

void GroupDraft::erase_regex(const std::string& pattern) {
    if (const auto found = group_.regexes().find(pattern); found != group_.regexes().end()) {
        undo_.push_back([pattern, before = found->second](ConsumerGroup& group) { group.put_regex(pattern, before); });
    }
    records_.push_back(regex_tombstone(group_.id(), pattern));
    group_.erase_regex(pattern);
}

void GroupDraft::erase_member(const std::string& id) {
    undo_.push_back(restore_member(id));
    undo_.push_back(restore_target(id));
    records_.push_back(assignment_tombstone(group_.id(), id));
    records_.push_back(target_tombstone(group_.id(), id));
    records_.push_back(member_tombstone(group_.id(), id));
    group_.erase_target(id);
    group_.erase_member(id);
}

void GroupDraft::replace_member(const std::string& from, const std::string& to) {
    auto member = *group_.find(from);
    const auto* target = group_.target(from);
    auto partitions = target == nullptr ? Partitions{} : *target;
    erase_member(from);
    member.current.epoch = 0;
    member.current.previous_epoch = 0;
    put_member(to, std::move(member.facts));
    put_target(to, std::move(partitions));
    put_assignment(to, std::move(member.current));
}

}  // namespace tidemark::coordinator
