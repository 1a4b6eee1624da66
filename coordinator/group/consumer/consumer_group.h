/// A consumer group of KIP-848 as its records say it is, with the indexes that questions about it need.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/group/consumer/member.h"
#include "coordinator/group/consumer/topic_regex.h"
#include "coordinator/group/group.h"

namespace tidemark::coordinator {

/// Life:    made when a first member joins or a record names it; every change is the meaning of one record (group_draft.h
///          makes changes and records together, replay.h makes changes from records).
/// Threads: its state machine's.
class ConsumerGroup final : public Group {
public:
    enum class State : std::uint8_t { empty, assigning, reconciling, stable };
    static constexpr std::int32_t first_epoch = 1;   ///< of a group and its assignment before anything was decided

    explicit ConsumerGroup(std::string id) : Group(std::move(id)) {}

    GroupType type() const override { return GroupType::consumer; }
    std::string_view state_name() const override;
    std::string protocol_type() const override { return "consumer"; }
    bool is_empty() const override { return members_.empty(); }
    std::size_t member_count() const override { return members_.size(); }
    ErrorCode check_commit(const CommitCheck&) const override;
    ErrorCode check_fetch(const MemberClaim&) const override;
    ErrorCode check_offset_delete() const override { return ErrorCode::none; }
    bool is_subscribed(std::string_view topic) const override;
    OffsetExpiry offset_expiry() const override { return {.base = OffsetExpiry::Base::commit_time, .since = {}}; }
    void add_tombstones(std::vector<Record>& to) const override;

    State state() const;
    std::int32_t epoch() const { return epoch_; }
    std::int64_t metadata_hash() const { return metadata_hash_; }
    std::int32_t assignment_epoch() const { return assignment_epoch_; }
    /// When the target was computed; 0: not by an assignor, so it may be computed anew at once.
    Timestamp assigned_at() const { return assigned_at_; }

    const std::map<std::string, ConsumerMember>& members() const { return members_; }
    const ConsumerMember* find(const std::string& member_id) const;
    const ConsumerMember* find_static(const std::string& instance_id) const;
    /// Nothing when it has none yet.
    const Partitions* target(const std::string& member_id) const;
    const std::map<std::string, Partitions>& targets() const { return targets_; }
    const std::map<std::string, ResolvedRegex>& regexes() const { return regexes_; }

    /// How many members subscribe by this expression.
    std::int32_t subscribers_by_regex(const std::string& pattern) const;
    const std::map<std::string, std::int32_t, std::less<>>& subscribed_regexes() const { return regex_subscribers_; }
    /// Every topic that a member subscribes to by name or by a resolved expression.
    std::vector<std::string> subscribed_topics() const;
    /// What this member subscribes to, by name and by expression; sorted.
    std::vector<std::string> subscribed_topics(const ConsumerMember&) const;
    /// Every member subscribes to the same topics, by Kafka's rule (group-coordinator 6.8).
    bool same_subscription() const;

    /// Some member has it, or still has to give it up.
    bool is_held(const Uuid& topic, std::int32_t partition) const;
    /// Its target holds a partition that it does not have and somebody else has.
    bool waits_for_others(const ConsumerMember&) const;

    std::int32_t classic_members() const { return classic_members_; }
    /// Every classic member knows one of these protocols, and always the same.
    bool classic_members_support(const std::vector<std::string>& protocols) const;
    /// The assignor that most members ask for; nothing when none does.
    std::optional<std::string> preferred_assignor() const;

    // --- changes, each the meaning of one record ----------------------------------------------------------------------

    void put_member(const std::string& id, MemberFacts);                 // type 5
    void erase_member(const std::string& id);
    void put_assignment(const std::string& id, MemberAssignment);        // type 8
    void erase_assignment(const std::string& id);
    void put_target(const std::string& id, Partitions);                  // type 7
    void erase_target(const std::string& id) { targets_.erase(id); }
    void put_epoch(std::int32_t epoch, std::int64_t metadata_hash);      // type 3
    void put_assignment_epoch(std::int32_t epoch, Timestamp at);         // type 6
    void put_regex(const std::string& pattern, ResolvedRegex);           // type 16
    void erase_regex(const std::string& pattern) { regexes_.erase(pattern); }

    // --- what is not in records ---------------------------------------------------------------------------------------

    /// Offset of the image that metadata_hash() was last compared with; nothing after a load.
    std::optional<Offset> hash_checked_at;
    /// A resolution of all expressions is due, or was done: when, and with which image.
    bool regex_resolution_wanted = false;
    ResolvedRegex last_resolution;

    /// Records and their consequences are equal; what is not in records is not compared.
    friend bool operator==(const ConsumerGroup&, const ConsumerGroup&);

private:
    using Counts = std::map<std::string, std::int32_t, std::less<>>;

    void count(const ConsumerMember&, int by);
    void count_held(const HeldPartitions&, int by);

    std::int32_t epoch_ = first_epoch;
    std::int64_t metadata_hash_ = 0;
    std::int32_t assignment_epoch_ = first_epoch;
    Timestamp assigned_at_{0};
    std::map<std::string, ConsumerMember> members_;
    std::map<std::string, Partitions> targets_;
    std::map<std::string, ResolvedRegex> regexes_;

    // Indexes over members_.
    std::unordered_map<std::string, std::string> static_members_;            // instance id → member id
    Counts topic_subscribers_, regex_subscribers_, assignor_votes_, classic_protocols_;
    std::int32_t classic_members_ = 0;
    std::unordered_map<Uuid, std::map<std::int32_t, std::int32_t>> held_;    // by how many; more than one only in passing
};

}  // namespace tidemark::coordinator
