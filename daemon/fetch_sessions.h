/// KIP-227: the partitions of a consumer's fetches are remembered, so that a request names only what changed and an answer
/// only what has news.
///
/// FetchSession is plain state; FetchSessions finds, makes and evicts them. wire-behaviour 8.3.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"
#include "base/uuid.h"
#include "protocol/error_code.h"

namespace tidemark::daemon {

/// How a request names a partition: by topic id from version 13 on, by name before; the other is empty.
struct FetchKey {
    Uuid topic_id = {};
    std::string topic = {};
    std::int32_t partition = 0;
    friend bool operator==(const FetchKey&, const FetchKey&) = default;
};

/// What a request asks of one partition.
struct FetchPartition {
    FetchKey key = {};
    Offset offset{};
    std::int64_t bytes_max = 0;
    LeaderEpoch current_leader_epoch = no_leader_epoch;
    LeaderEpoch last_fetched_epoch = no_leader_epoch;
};

/// What an answer says of one partition, as far as it decides whether it must be said.
struct FetchNews {
    protocol::ErrorCode error = protocol::ErrorCode::none;
    Offset high_watermark{-1};
    Offset log_start_offset{-1};
    bool has_records = false;
    bool diverging = false;
};

}  // namespace tidemark::daemon

template <>
struct std::hash<tidemark::daemon::FetchKey> {
    std::size_t operator()(const tidemark::daemon::FetchKey& key) const noexcept {
        return (std::hash<tidemark::Uuid>{}(key.topic_id) ^ std::hash<std::string>{}(key.topic)) * 31 + static_cast<std::size_t>(key.partition);
    }
};

namespace tidemark::daemon {

/// The partitions of one session, in the order in which they are fetched.
/// Threads: whoever holds it through FetchSessions::use().
class FetchSession {
public:
    FetchSession(std::int32_t id, bool by_id) : id_(id), by_id_(by_id) {}

    std::int32_t id() const { return id_; }
    /// Made by a request that names topics by id.
    bool by_id() const { return by_id_; }
    /// What the next request must carry.
    std::int32_t next_epoch() const { return next_epoch_; }
    void advance_epoch() { next_epoch_ = epoch_after(next_epoch_); }
    /// 1 follows 2147483647.
    static std::int32_t epoch_after(std::int32_t epoch);
    std::size_t size() const { return by_key_.size(); }

    /// Adds it at the end, or gives one that is there new parameters; its place and what was told of it stay.
    void set(const FetchPartition&);
    void forget(const FetchKey&);
    std::vector<FetchPartition> partitions() const;

    /// Whether the next incremental answer must name it; what it says is then remembered as told. Partitions that are not
    /// in the session any more have no news.
    bool tell(const FetchKey&, const FetchNews&);
    /// Records were sent: others come first next time, so that a large answer starves nobody.
    void move_to_end(const FetchKey&);

private:
    struct Entry {
        FetchPartition partition = {};
        Offset told_high_watermark{-1};
        Offset told_log_start_offset{-1};
    };
    const std::int32_t id_;
    const bool by_id_;
    std::int32_t next_epoch_ = 1;
    std::list<Entry> entries_;
    std::unordered_map<FetchKey, std::list<Entry>::iterator> by_key_;
};

/// How a fetch relates to a session, decided before it reads.
struct FetchContext {
    enum class Kind : std::uint8_t {
        sessionless,   ///< answer everything, session id 0
        create,        ///< answer everything; created() says under which id
        incremental,   ///< answer what has news
        refused,       ///< answer `error` alone
    };
    Kind kind = Kind::sessionless;
    protocol::ErrorCode error = protocol::ErrorCode::none;
    std::int32_t session_id = 0;                  ///< incremental
    bool by_id = false;
    std::vector<FetchPartition> partitions = {};  ///< to be read, in this order
};

/// Threads: all members from any thread. Sessions are not bound to a connection.
class FetchSessions {
public:
    struct Options {
        std::int32_t sessions_max = 1000;         ///< max.incremental.fetch.session.cache.slots
        std::int64_t evict_ms = 120'000;          ///< min.incremental.fetch.session.eviction.ms
    };
    struct Request {
        std::int32_t session_id = 0;
        std::int32_t epoch = -1;
        bool by_id = false;                       ///< version 13 and above
        std::vector<FetchPartition> partitions = {};
        std::vector<FetchKey> forgotten = {};
    };
    struct Stats {
        std::size_t sessions = 0, partitions = 0;
        std::uint64_t evicted = 0;
    };

    explicit FetchSessions(Options options) : options_(options) {}

    FetchContext begin(Request, Timestamp now) EXCLUDES(mutex_);
    /// A session for these partitions and what was told of them; 0 when there is no slot for it. `now`: as in begin().
    std::int32_t create(const std::vector<std::pair<FetchPartition, FetchNews>>&, bool by_id, bool follower, Timestamp now) EXCLUDES(mutex_);
    /// For each partition that was read whether an incremental answer names it. Remembers that it did, and moves those
    /// with records to the end. A session that has gone meanwhile names all.
    std::vector<bool> tell(std::int32_t session_id, const std::vector<std::pair<FetchKey, FetchNews>>&) EXCLUDES(mutex_);

    void set_options(Options) EXCLUDES(mutex_);
    Stats stats() const EXCLUDES(mutex_);

private:
    struct Slot {
        FetchSession session;
        Timestamp created, used;
        bool follower = false;
    };
    bool make_room_for(std::size_t partitions, bool follower, Timestamp now) REQUIRES(mutex_);
    void remove(std::int32_t id) REQUIRES(mutex_);

    mutable Mutex mutex_;
    Options options_ GUARDED_BY(mutex_);
    std::unordered_map<std::int32_t, Slot> slots_ GUARDED_BY(mutex_);
    std::size_t partitions_ GUARDED_BY(mutex_) = 0;
    std::uint64_t evicted_ GUARDED_BY(mutex_) = 0;
    std::mt19937_64 random_ GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace tidemark::daemon
