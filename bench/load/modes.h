/// The modes of tidemark_load, one .cpp each. Every one returns the program's exit status and has printed its result.
#pragma once

#include "bench/load/broker.h"
#include "bench/load/run.h"
#include "bench/load/workload.h"

namespace tidemark::bench {

struct ProduceOptions {
    RunOptions run;
    TopicOptions topic;
    BatchShape batch;
    std::int16_t acks = -1;
    std::size_t connections = 1;
    std::size_t depth = 5;          ///< requests in flight per connection; without meaning for acks=0
    double records_per_second = 0;  ///< over all connections; 0: as fast as it goes
};
/// Sends prebuilt batches. With a rate, a request's latency counts from the moment at which its turn came, so a broker
/// that stalls is charged for everything that had to wait.
Result<Report> produce(const ProduceOptions&);

struct ConsumeOptions {
    RunOptions run;
    std::string topic = "load";
    std::int32_t partitions = 1;
    std::size_t connections = 1;    ///< the partitions are dealt out to them
    FetchOptions fetch;
    std::int32_t rounds = 1;        ///< from the beginning to the end, so many times
};
/// Reads from the beginning up to the end that there was at the start. A latency is that of one fetch.
Result<Report> consume(const ConsumeOptions&);

struct TailOptions {
    ProduceOptions produce;         ///< one partition, one connection, a rate
    std::size_t consumers = 1;
    FetchOptions fetch;
};
/// Consumers that wait with long polls at the end of a partition to which one producer writes at a rate. A latency is that from a
/// record's turn to be sent until a consumer has it.
Result<Report> tail(const TailOptions&);

struct IdleOptions {
    Address broker;
    std::size_t connections = 10000;
    double seconds = 10;
    int broker_pid = 0;
};
/// Opens connections, has each answered once, and leaves them alone; the report is about the broker meanwhile.
Result<Report> idle(const IdleOptions&);

struct ReadyOptions {
    Address broker;
    std::string topic = {};         ///< empty: any metadata answer will do
    std::int32_t partitions = 0;    ///< of the topic, each of which must answer for its end offset
    std::int64_t since_ns = 0;      ///< on the monotonic clock; 0: now
    double give_up_seconds = 300;
};
/// Asks again and again until a broker that is starting serves; the report's seconds are those from `since_ns` on.
Result<Report> ready(const ReadyOptions&);

struct VerifyOptions {
    Address broker;
    std::string topic = "counted";
    std::int32_t partitions = 8;
    std::size_t writers = 2;
    std::size_t readers = 1;
    std::int32_t record_bytes = 512;
    std::int32_t batch_records_max = 100;  ///< each batch has 1 to so many, by chance
    std::size_t in_flight = 5;             ///< batches per partition; brokers remember five
    double batches_per_second = 0;         ///< new ones, of each writer; 0: as fast as it goes
    double give_up_seconds = 60;           ///< without any answer
    std::uint64_t seed = 1;
    std::map<std::string, std::string> topic_configs = {};
};
/// Writes counting numbers as an idempotent producer with acks=all, through kills of the broker, while others read them; takes
/// orders on standard input, answers each with one line of JSON:
///   status   how much has been acknowledged, read, sent again
///   check    reads every partition from its beginning: no number is missing, none is there twice, none out of order,
///            and all that had been acknowledged before are there
///   stop     lets what is in flight be acknowledged, then checks that exactly the acknowledged numbers are there; ends
/// The end of standard input is a stop. The exit status is 1 when anything was wrong.
int verify(const VerifyOptions&);

struct CompactOptions {
    Address broker;
    std::string topic = "compacted";
    std::int32_t partitions = 4;
    std::int64_t messages = 1'000'000;
    std::int64_t keys = 10'000;            ///< of each partition
    std::int32_t delete_percent = 10;      ///< of the messages
    std::int32_t batch_records = 200;
    record::Codec codec = record::Codec::none;
    double left_max = 0.5;                 ///< share of the messages that may be left in the end
    double give_up_seconds = 300;
    std::uint64_t seed = 1;
    std::map<std::string, std::string> topic_configs = {};
};
/// Writes random keys to a compacted topic, deletes some, and reads everything back again and again until the broker has removed
/// enough: each time every key must have its last value, and no deleted one may be back. Prints a line of JSON.
Result<> compact(const CompactOptions&);

}  // namespace tidemark::bench
