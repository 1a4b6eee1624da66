/// The offsets that groups have committed: what records of type 0 and 1 and the markers between them say. Plain data.
///
/// An offset that came inside a transaction is pending until the transaction's marker; then it counts, unless a later plain
/// commit stands there (group-coordinator 3.1).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "base/uuid.h"
#include "coordinator/record.h"
#include "protocol/messages/offset_commit_key.h"
#include "protocol/messages/offset_commit_value.h"

namespace tidemark::coordinator {

struct StoredOffset {
    std::int64_t offset = -1;
    LeaderEpoch leader_epoch = no_leader_epoch;
    std::string metadata;
    Timestamp committed{};
    std::optional<Timestamp> expires;    ///< versions 2 to 4 of OffsetCommit could say so
    Uuid topic_id;                       ///< of the topic at that time; zero: not known
    Offset record_offset{};              ///< of the record in its log
};

/// Threads: its state machine's.
class Offsets {
public:
    using Partitions = std::map<std::int32_t, StoredOffset>;
    using Topics = std::map<std::string, Partitions, std::less<>>;

    /// `value` null: a tombstone, which removes pending offsets of every producer as well.
    void replay(const protocol::OffsetCommitKey&, const protocol::OffsetCommitValue* value, Offset at, ProducerId);
    void end_transaction(ProducerId, bool committed);

    /// Null when nothing is committed.
    const Topics* of_group(const std::string& group_id) const;
    const StoredOffset* find(const std::string& group_id, std::string_view topic, std::int32_t partition) const;
    /// A transaction that is open has an offset for the partition.
    bool is_unstable(const std::string& group_id, const std::string& topic, std::int32_t partition) const;
    bool has_pending(const std::string& group_id) const { return pending_by_group_.contains(group_id); }
    bool empty() const { return committed_.empty() && pending_.empty(); }
    /// With committed or pending offsets.
    std::vector<std::string> groups() const;

    /// Tombstones of everything of a group, committed and pending; `topic`: only those of it that were committed under `topic_id`
    /// or under no id.
    void add_tombstones(const std::string& group_id, std::vector<Record>& to) const;
    void add_tombstones(const std::string& group_id, const std::string& topic, const Uuid& topic_id, std::vector<Record>& to) const;

private:
    struct Place {
        std::string group_id, topic;
        std::int32_t partition = 0;
        friend auto operator<=>(const Place&, const Place&) = default;
    };
    using PartitionsOfTopics = std::map<std::pair<std::string, std::int32_t>, std::set<ProducerId>>;

    void commit(const Place&, StoredOffset);
    void forget_pending(const Place&, ProducerId);

    std::unordered_map<std::string, Topics> committed_;
    std::unordered_map<ProducerId, std::map<Place, StoredOffset>> pending_;
    std::unordered_map<std::string, PartitionsOfTopics> pending_by_group_;
};

}  // namespace tidemark::coordinator
