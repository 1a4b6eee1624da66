/// What the broker side is told by config/. Keys, defaults and ranges are Kafka's unless a comment names a difference.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.h"
#include "storage/options.h"

namespace tidemark::daemon {

/// One socket that clients connect to, and the name under which they find it again (advertised.listeners).
struct Listener {
    std::string name = "PLAINTEXT";
    std::string host = "";                     ///< "" and "0.0.0.0": every address
    std::uint16_t port = 9092;                 ///< 0: the system chooses, Server::listeners() tells
    std::string advertised_host = "";          ///< "": the host, or the machine's name when that is a wildcard
    std::uint16_t advertised_port = 0;         ///< 0: the port
};

struct Limits {
    std::int32_t request_bytes_max = 104'857'600;          ///< socket.request.max.bytes
    std::int64_t queued_bytes_max = -1;                    ///< queued.max.request.bytes, over all connections; -1: none
    std::size_t requests_in_flight_max = 64;               ///< of one connection; Kafka's is 1
    std::int64_t answer_bytes_in_flight_max = 16 << 20;    ///< of one connection, before it is read no further
    std::int32_t connections_max = std::numeric_limits<std::int32_t>::max();         ///< max.connections
    std::int32_t connections_per_ip_max = std::numeric_limits<std::int32_t>::max();  ///< max.connections.per.ip
    std::map<std::string, std::int32_t> connections_per_ip_overrides = {};           ///< max.connections.per.ip.overrides
    std::int64_t idle_ms_max = 600'000;                    ///< connections.max.idle.ms
    std::int32_t fetch_bytes_max = 57'671'680;             ///< fetch.max.bytes
    std::int32_t fetch_sessions_max = 1000;                ///< max.incremental.fetch.session.cache.slots
    std::int64_t fetch_session_evict_ms = 120'000;         ///< min.incremental.fetch.session.eviction.ms
    std::int32_t partitions_per_answer_max = 2000;         ///< max.request.partition.size.limit
    std::int64_t slice_held_ms_max = 60'000;               ///< D26: how long a deleted segment may still be read from

    friend bool operator==(const Limits&, const Limits&) = default;
};

struct Options {
    std::vector<Listener> listeners = {Listener{}};
    /// What DescribeQuorum shows as this node's CONTROLLER endpoint; nobody listens there.
    std::optional<Listener> controller_listener = {};
    std::optional<std::string> rack = {};                  ///< broker.rack
    int network_threads = 0;                               ///< event loops; 0: one per processor. num.network.threads
    int disk_threads = 8;                                  ///< num.io.threads: what may wait for the disk
    int backlog = 50;                                      ///< socket.listen.backlog.size
    int send_buffer_bytes = 102'400;                       ///< socket.send.buffer.bytes; -1: the system's
    int receive_buffer_bytes = 102'400;                    ///< socket.receive.buffer.bytes; -1: the system's
    Limits limits = {};
    storage::Durability durability = storage::Durability::acks_all;   ///< D10
    bool auto_create_topics = true;                        ///< auto.create.topics.enable
    bool delete_topics = true;                             ///< delete.topic.enable
    bool verify_transactions = true;                       ///< transaction.partition.verification.enable
    /// The loops' lag is measured so often. The watchdog is told while every loop runs at most `stalled_ms` late.
    std::int64_t loop_beat_ms = 1000;
    std::int64_t loop_stalled_ms = 20'000;
};

}  // namespace tidemark::daemon
