/// What every kind of group is to its offsets, to lists and to administrators; the kinds are ClassicGroup and ConsumerGroup.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.h"
#include "coordinator/record.h"
#include "coordinator/state_machine.h"

namespace tidemark::coordinator {

enum class GroupType : std::uint8_t { classic, consumer };
/// "classic", "consumer": as ListGroups shows and filters them.
std::string_view to_string(GroupType);

/// Who sent a request, as members remember it.
struct Client {
    std::string id;                  ///< of the request's header
    std::string host;                ///< "/192.0.2.1"
};

/// What a member speaks in the classic protocol; which bytes mean what is between the members.
struct ClassicProtocol {
    std::string name;
    std::vector<std::byte> metadata;
    friend bool operator==(const ClassicProtocol&, const ClassicProtocol&) = default;
};

/// Who a request says it is from.
struct MemberClaim {
    std::string member_id = {};
    std::optional<std::string> instance_id = {};
    std::int32_t epoch = -1;         ///< generation or member epoch; below 0: none
};

/// A partition in a commit.
struct CommittedPartition {
    Uuid topic_id;                   ///< zero when the topic has none
    std::string_view topic;
    std::int32_t partition = 0;
};

struct CommitCheck {
    MemberClaim claim;
    std::int16_t version = 0;        ///< of OffsetCommit or TxnOffsetCommit
    bool transactional = false;      ///< TxnOffsetCommit: its table is group-coordinator 5.3's
    std::span<const CommittedPartition> partitions = {};
};

/// From when on an offset gets older; topics that the group is subscribed to are spared in any case (group-coordinator 5.5).
struct OffsetExpiry {
    enum class Base : std::uint8_t { never, commit_time, since } base = Base::commit_time;
    Timestamp since{};               ///< Base::since: when the group became empty
};

/// Threads: its state machine's. Everything here is a question; what changes a group is its kind's business.
class Group {
public:
    explicit Group(std::string id) : id_(std::move(id)) {}
    virtual ~Group() = default;

    const std::string& id() const { return id_; }
    virtual GroupType type() const = 0;
    /// "Empty", "Stable", "PreparingRebalance", … as DescribeGroups and ListGroups show it.
    virtual std::string_view state_name() const = 0;
    /// ListGroups: "consumer", "connect", "" for a group that never had members.
    virtual std::string protocol_type() const = 0;
    /// It has no members; pending member ids do not count.
    virtual bool is_empty() const = 0;
    virtual std::size_t member_count() const = 0;

    /// What an OffsetCommit or TxnOffsetCommit is answered with as a whole (5.1, 5.3).
    virtual ErrorCode check_commit(const CommitCheck&) const = 0;
    /// OffsetFetch; the claim is empty below version 9 (5.2).
    virtual ErrorCode check_fetch(const MemberClaim&) const = 0;
    /// OffsetDelete as a whole (5.4).
    virtual ErrorCode check_offset_delete() const = 0;
    /// A member subscribes to the topic: it neither expires nor can be deleted.
    virtual bool is_subscribed(std::string_view topic) const = 0;
    virtual OffsetExpiry offset_expiry() const = 0;

    /// What removes the group from the log, in the order that a reader needs (3.1.5). Its offsets are not among it.
    virtual void add_tombstones(std::vector<Record>& to) const = 0;

private:
    const std::string id_;
};

}  // namespace tidemark::coordinator
