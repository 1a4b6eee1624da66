// tidemark_load: flags. One subcommand per function of modes.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/load/modes.h"

namespace {

using namespace tidemark;
using namespace tidemark::bench;

const std::map<std::string, std::int16_t> acks_names{{"0", 0}, {"1", 1}, {"all", -1}, {"-1", -1}};
const std::map<std::string, record::Codec> codec_names{
    {"none", record::Codec::none}, {"gzip", record::Codec::gzip}, {"snappy", record::Codec::snappy}, {"lz4", record::Codec::lz4}, {"zstd", record::Codec::zstd}};

/// What all subcommands share.
struct Flags {
    std::string broker = "127.0.0.1:9092";
    bool json = false;
    std::vector<std::string> configs;
    int status = 0;

    void show(Result<Report> report) {
        if (!report) {
            std::fprintf(stderr, "tidemark_load: %s\n", report.error().message().c_str());
            status = 1;
            return;
        }
        print(*report, json ? OutputFormat::json : OutputFormat::text);
    }
    Address address() const {
        auto parsed = Address::parse(broker);
        if (!parsed) throw CLI::ValidationError("--broker", parsed.error().context);
        return *parsed;
    }
    std::map<std::string, std::string> topic_configs() const {
        std::map<std::string, std::string> out;
        for (const auto& text : configs) {
            const auto equals = text.find('=');
            if (equals == std::string::npos) throw CLI::ValidationError("--config", "not key=value: " + text);
            out[text.substr(0, equals)] = text.substr(equals + 1);
        }
        return out;
    }
};

void add_broker(CLI::App* command, Flags& flags) {
    command->add_option("--broker", flags.broker, "host:port")->capture_default_str();
    command->add_flag("--json", flags.json, "one line of JSON instead of text");
}

void add_run(CLI::App* command, RunOptions& run) {
    command->add_option("--warm-up", run.warm_up_seconds, "seconds before anything is measured")->capture_default_str();
    command->add_option("--seconds", run.seconds, "how long to measure")->capture_default_str();
    command->add_option("--bytes", run.bytes, "measure until so many bytes are done instead")->transform(CLI::AsSizeValue(false));
    command->add_option("--pid", run.broker_pid, "the broker's process, for its CPU time and memory");
}

void add_topic(CLI::App* command, TopicOptions& topic, Flags& flags) {
    command->add_option("--topic", topic.name, "created when missing")->capture_default_str();
    command->add_option("--partitions", topic.partitions)->capture_default_str()->check(CLI::PositiveNumber);
    command->add_option("--config", flags.configs, "key=value for a topic that is created");
}

void add_batch(CLI::App* command, BatchShape& batch) {
    command->add_option("--record-bytes", batch.record_bytes, "of each value")->capture_default_str()->check(CLI::NonNegativeNumber);
    command->add_option("--batch-bytes", batch.batch_bytes, "of each batch before compression")->capture_default_str()->check(CLI::PositiveNumber);
    command->add_option("--batch-records", batch.records, "of each batch, instead of --batch-bytes")->check(CLI::PositiveNumber);
    command->add_option("--codec", batch.codec)->transform(CLI::CheckedTransformer(codec_names));
}

void add_fetch(CLI::App* command, FetchOptions& fetch) {
    command->add_option("--max-wait-ms", fetch.max_wait_ms)->capture_default_str();
    command->add_option("--min-bytes", fetch.min_bytes)->capture_default_str();
    command->add_option("--fetch-bytes", fetch.bytes_max, "of one answer")->capture_default_str();
    command->add_option("--partition-bytes", fetch.partition_bytes_max, "of one partition in an answer")->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Drives a Kafka broker with prebuilt requests and says what came of it."};
    app.require_subcommand(1);
    Flags flags;

    TopicOptions create_options;
    auto* create = app.add_subcommand("create", "create a topic and wait for its leaders");
    add_broker(create, flags);
    add_topic(create, create_options, flags);
    create->callback([&] {
        create_options.configs = flags.topic_configs();
        const auto created = [&]() -> Result<> {
            TM_TRY(auto connection, Connection::open(flags.address()));
            return ensure_topic(connection, create_options);
        }();
        if (created) return;
        std::fprintf(stderr, "tidemark_load: %s\n", created.error().message().c_str());
        flags.status = 1;
    });

    ProduceOptions produce_options;
    auto* produce_command = app.add_subcommand("produce", "send batches as fast as they are taken, or at a rate");
    add_broker(produce_command, flags);
    add_run(produce_command, produce_options.run);
    add_topic(produce_command, produce_options.topic, flags);
    add_batch(produce_command, produce_options.batch);
    produce_command->add_option("--acks", produce_options.acks)->transform(CLI::CheckedTransformer(acks_names));
    produce_command->add_option("--connections", produce_options.connections, "a thread each; they share the partitions")->capture_default_str()->check(CLI::PositiveNumber);
    produce_command->add_option("--depth", produce_options.depth, "requests in flight per connection")->capture_default_str()->check(CLI::PositiveNumber);
    produce_command->add_option("--rate", produce_options.records_per_second, "records per second over all connections");
    produce_command->callback([&] {
        produce_options.run.broker = flags.address();
        produce_options.topic.configs = flags.topic_configs();
        flags.show(produce(produce_options));
    });

    ConsumeOptions consume_options;
    consume_options.run.seconds = 86400;
    auto* fetch_command = app.add_subcommand("fetch", "read a topic from its beginning to its end");
    add_broker(fetch_command, flags);
    add_run(fetch_command, consume_options.run);
    add_fetch(fetch_command, consume_options.fetch);
    fetch_command->add_option("--topic", consume_options.topic)->capture_default_str();
    fetch_command->add_option("--partitions", consume_options.partitions)->capture_default_str()->check(CLI::PositiveNumber);
    fetch_command->add_option("--connections", consume_options.connections)->capture_default_str()->check(CLI::PositiveNumber);
    fetch_command->add_option("--rounds", consume_options.rounds, "how often")->capture_default_str()->check(CLI::PositiveNumber);
    fetch_command->callback([&] {
        consume_options.run.broker = flags.address();
        flags.show(consume(consume_options));
    });

    TailOptions tail_options;
    tail_options.produce.topic.name = "tail";
    tail_options.produce.records_per_second = 1000;
    tail_options.produce.batch.records = 1;
    auto* tail_command = app.add_subcommand("tail", "long polls at the end of a partition that grows at a rate: from sending to receiving");
    add_broker(tail_command, flags);
    add_run(tail_command, tail_options.produce.run);
    add_fetch(tail_command, tail_options.fetch);
    add_batch(tail_command, tail_options.produce.batch);
    tail_command->add_option("--topic", tail_options.produce.topic.name)->capture_default_str();
    tail_command->add_option("--config", flags.configs, "key=value for a topic that is created");
    tail_command->add_option("--acks", tail_options.produce.acks)->transform(CLI::CheckedTransformer(acks_names));
    tail_command->add_option("--rate", tail_options.produce.records_per_second, "records per second")->capture_default_str();
    tail_command->add_option("--consumers", tail_options.consumers)->capture_default_str();
    tail_command->callback([&] {
        tail_options.produce.run.broker = flags.address();
        tail_options.produce.topic.configs = flags.topic_configs();
        flags.show(tail(tail_options));
    });

    IdleOptions idle_options;
    auto* idle_command = app.add_subcommand("idle", "open connections and leave them alone");
    add_broker(idle_command, flags);
    idle_command->add_option("--connections", idle_options.connections)->capture_default_str()->check(CLI::NonNegativeNumber);
    idle_command->add_option("--seconds", idle_options.seconds)->capture_default_str();
    idle_command->add_option("--pid", idle_options.broker_pid, "the broker's process, for its CPU time and memory");
    idle_command->callback([&] {
        idle_options.broker = flags.address();
        flags.show(idle(idle_options));
    });

    ReadyOptions ready_options;
    auto* ready_command = app.add_subcommand("ready", "wait until a starting broker serves, and say how long that took");
    add_broker(ready_command, flags);
    ready_command->add_option("--topic", ready_options.topic, "whose partitions must all answer");
    ready_command->add_option("--partitions", ready_options.partitions);
    ready_command->add_option("--since-ns", ready_options.since_ns, "the monotonic clock's time to count from");
    ready_command->add_option("--give-up", ready_options.give_up_seconds)->capture_default_str();
    ready_command->callback([&] {
        ready_options.broker = flags.address();
        flags.show(ready(ready_options));
    });

    CompactOptions compact_options;
    auto* compact_command = app.add_subcommand("compact", "write random keys, delete some, and see that compaction leaves exactly what it must");
    compact_command->add_option("--broker", flags.broker, "host:port")->capture_default_str();
    compact_command->add_option("--topic", compact_options.topic)->capture_default_str();
    compact_command->add_option("--partitions", compact_options.partitions)->capture_default_str()->check(CLI::PositiveNumber);
    compact_command->add_option("--messages", compact_options.messages)->capture_default_str()->check(CLI::PositiveNumber);
    compact_command->add_option("--keys", compact_options.keys, "of each partition")->capture_default_str()->check(CLI::PositiveNumber);
    compact_command->add_option("--delete-percent", compact_options.delete_percent)->capture_default_str()->check(CLI::Range(0, 100));
    compact_command->add_option("--batch-records", compact_options.batch_records)->capture_default_str()->check(CLI::PositiveNumber);
    compact_command->add_option("--codec", compact_options.codec)->transform(CLI::CheckedTransformer(codec_names));
    compact_command->add_option("--left-max", compact_options.left_max, "share of the messages that may be left in the end")->capture_default_str();
    compact_command->add_option("--give-up", compact_options.give_up_seconds, "seconds of waiting for that")->capture_default_str();
    compact_command->add_option("--seed", compact_options.seed)->capture_default_str();
    compact_command->add_option("--config", flags.configs, "key=value for a topic that is created");
    compact_command->callback([&] {
        compact_options.broker = flags.address();
        compact_options.topic_configs = flags.topic_configs();
        if (const auto done = compact(compact_options); !done) {
            std::fprintf(stderr, "tidemark_load: %s\n", done.error().message().c_str());
            flags.status = 1;
        }
    });

    VerifyOptions verify_options;
    auto* verify_command = app.add_subcommand("verify", "write counting numbers through kills of the broker and see that none is lost; orders on standard input: status, check, stop");
    verify_command->add_option("--broker", flags.broker, "host:port")->capture_default_str();
    verify_command->add_option("--topic", verify_options.topic)->capture_default_str();
    verify_command->add_option("--partitions", verify_options.partitions)->capture_default_str()->check(CLI::PositiveNumber);
    verify_command->add_option("--writers", verify_options.writers)->capture_default_str()->check(CLI::PositiveNumber);
    verify_command->add_option("--readers", verify_options.readers, "that follow the ends")->capture_default_str();
    verify_command->add_option("--record-bytes", verify_options.record_bytes)->capture_default_str()->check(CLI::Range(8, 1 << 20));
    verify_command->add_option("--batch-records-max", verify_options.batch_records_max)->capture_default_str()->check(CLI::PositiveNumber);
    verify_command->add_option("--in-flight", verify_options.in_flight, "batches per partition")->capture_default_str()->check(CLI::Range(1, 5));
    verify_command->add_option("--rate", verify_options.batches_per_second, "new batches per second of each writer, so that little is to be read back");
    verify_command->add_option("--give-up", verify_options.give_up_seconds, "seconds without any answer")->capture_default_str();
    verify_command->add_option("--seed", verify_options.seed)->capture_default_str();
    verify_command->add_option("--config", flags.configs, "key=value for a topic that is created");
    verify_command->callback([&] {
        verify_options.broker = flags.address();
        verify_options.topic_configs = flags.topic_configs();
        flags.status = verify(verify_options);
    });

    CLI11_PARSE(app, argc, argv);
    return flags.status;
}
