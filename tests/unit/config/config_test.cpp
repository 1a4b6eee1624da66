#include "config/config.h"

#include <gmock/gmock.h>

namespace tidemark::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Loaded load_text(std::string text, std::vector<std::string> overrides = {}) {
    return load({.file_name = "t.yaml", .file_text = std::move(text), .overrides = std::move(overrides)});
}

std::vector<std::string> lines(const std::vector<Mistake>& mistakes) {
    std::vector<std::string> all;
    for (const auto& mistake : mistakes) all.push_back(mistake.line());
    return all;
}

TEST(Load, TheBuiltInFileIsAll) {
    const auto loaded = load({.file_name = built_in_name, .file_text = std::string(built_in_file()), .overrides = {}});
    ASSERT_THAT(lines(loaded.mistakes), IsEmpty());
    EXPECT_THAT(loaded.config.storage.log_dirs, ElementsAre("data"));
    EXPECT_EQ(loaded.config.node_id, 1);
    ASSERT_EQ(loaded.config.daemon.listeners.size(), 1u);
    EXPECT_EQ(loaded.config.daemon.listeners[0].port, 9092);
    EXPECT_EQ(loaded.config.http.listener, (HostPort{"127.0.0.1", 9404}));
    // What nobody set is what the structs say themselves.
    EXPECT_EQ(loaded.config.cleaner, cleaner::CleanerOptions{});
    EXPECT_EQ(loaded.config.retention, retention::RetentionOptions{});
    EXPECT_EQ(loaded.config.daemon.limits, daemon::Limits{});
    EXPECT_EQ(loaded.config.storage.durability, storage::Durability::acks_all);
}

TEST(Load, FillsTheOptionsInKafkasUnits) {
    const auto loaded = load_text(R"(
log:
  dirs: [/a, /b]
  cleaner: {threads: 2, dedupe.buffer.size: 256MiB, backoff.ms: 1s, schedule: dirtiest, io.max.bytes.per.second: 50MB}
  retention.check.interval.ms: 1m
  clock.jump.max.ms: 2h
  recovery.damaged: truncate
durability: page-cache
num.network.threads: 5
socket.request.max.bytes: 10MiB
max.connections.per.ip.overrides: "10.0.0.1:5, example:7"
)");
    ASSERT_THAT(lines(loaded.mistakes), IsEmpty());
    const auto& config = loaded.config;
    EXPECT_THAT(config.storage.log_dirs, ElementsAre("/a", "/b"));
    EXPECT_EQ(config.storage.durability, storage::Durability::page_cache);
    EXPECT_EQ(config.daemon.durability, storage::Durability::page_cache);
    EXPECT_FALSE(config.storage.differences.keep_damaged_tail);
    EXPECT_EQ(config.cleaner.threads, 2);
    EXPECT_EQ(config.cleaner.dedupe_buffer_bytes, 256 << 20);
    EXPECT_EQ(config.cleaner.backoff_ms, 1000);
    EXPECT_FALSE(config.cleaner.differences.deadline_schedule);
    EXPECT_EQ(config.cleaner.io_bytes_per_second_max, 50e6);
    EXPECT_EQ(config.retention.check_interval_ms, 60'000);
    EXPECT_EQ(config.retention.clock_jump_max_ms, 7'200'000);
    EXPECT_EQ(config.daemon.network_threads, 5);
    EXPECT_EQ(config.daemon.limits.request_bytes_max, 10 << 20);
    EXPECT_EQ(config.daemon.limits.connections_per_ip_overrides, (std::map<std::string, std::int32_t>{{"10.0.0.1", 5}, {"example", 7}}));
    EXPECT_EQ(config.file.at("log.cleaner.backoff.ms"), "1000");
}

TEST(Load, TheCommandLineStandsAboveTheFile) {
    const auto loaded = load_text("log.dirs: /a\nlog.cleaner.threads: 2\n", {"log.dirs=/b", "log.cleaner.backoff.ms=3s", "log.dirs=/c"});
    ASSERT_THAT(lines(loaded.mistakes), IsEmpty());
    EXPECT_THAT(loaded.config.storage.log_dirs, ElementsAre("/c"));
    EXPECT_EQ(loaded.config.cleaner.backoff_ms, 3000);
    EXPECT_EQ(loaded.config.cleaner.threads, 2);
    EXPECT_EQ(origin_of(loaded.settings, "log.dirs").text(), "--set");
    EXPECT_EQ(origin_of(loaded.settings, "log.cleaner.threads").text(), "t.yaml:2");
    EXPECT_EQ(origin_of(loaded.settings, "node.id").text(), "default");
}

TEST(Load, AllMistakesAtOnceEachWithItsPlace) {
    const auto loaded = load_text(R"(log.dirs: /a
log.clener.threads: 1
retention.ms: 5
log.segment.bytes: 12
log.retention.ms: 7 GiB
listeners: SSL://:9093
authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer
log.cleaner.min.compaction.lag.ms: 10
log.cleaner.max.compaction.lag.ms: 5
)", {"durability=sometimes", "nonsense", "http.listener=9404"});
    const auto text = lines(loaded.mistakes);
    EXPECT_THAT(text, Contains("t.yaml:2:1: there is no setting log.clener.threads; did you mean log.cleaner.threads?"));
    EXPECT_THAT(text, Contains("t.yaml:3:1: retention.ms is a topic's setting; the broker's default for it is log.retention.ms, log.retention.minutes or log.retention.hours"));
    EXPECT_THAT(text, Contains("t.yaml:4:20: Invalid value 12 for configuration log.segment.bytes: Value must be at least 1048576"));
    EXPECT_THAT(text, Contains("t.yaml:5:19: log.retention.ms: 'GiB' is no unit here; there are ms, s, m, h, d, w"));
    EXPECT_THAT(text, Contains(HasSubstr("t.yaml:6:12: listeners: SSL://:9093 wants SSL, and only PLAINTEXT is offered yet")));
    EXPECT_THAT(text, Contains(HasSubstr("t.yaml:7:24: authorizer.class.name: there is no authorizer yet")));
    EXPECT_THAT(text, Contains(HasSubstr("log.cleaner.min.compaction.lag.ms (10) > log.cleaner.max.compaction.lag.ms (5)")));
    EXPECT_THAT(text, Contains(HasSubstr("--set: Invalid value sometimes for configuration durability")));
    EXPECT_THAT(text, Contains("--set: 'nonsense' is not key=value"));
    EXPECT_THAT(text, Contains("--set: http.listener: '9404' is not host:port"));
    EXPECT_EQ(text.size(), 10u);
}

TEST(Load, RefusesWhatThisDaemonIsNot) {
    for (const auto* text : {"log.cleaner.threads: 1\n", "{log.dirs: a, process.roles: broker}\n", "{log.dirs: a, broker.id: 1, node.id: 2}\n", "{log.dirs: a, metadata.log.dir: b}\n",
                             "{log.dirs: a, log.retention.ms: 0}\n", "{log.dirs: a, max.connections.per.ip.overrides: x}\n", "{log.dirs: a, listeners: \"\"}\n"})
        EXPECT_THAT(load_text(text).mistakes, Not(IsEmpty())) << text;
    EXPECT_THAT(lines(load_text("{log.dir: a, metadata.log.dir: a, broker.id: 7}\n").mistakes), IsEmpty());
    EXPECT_EQ(load_text("{log.dir: a, broker.id: 7}\n").config.node_id, 7);
}

TEST(Load, WarnsOfKeysWithoutEffect) {
    const auto loaded = load_text("log.dirs: a\nbackground.threads: 3\nqueued.max.requests: 100\n");
    EXPECT_THAT(lines(loaded.mistakes), IsEmpty());
    EXPECT_THAT(lines(loaded.warnings), Contains("t.yaml:3:1: queued.max.requests is accepted for compatibility and has no effect"));
}

TEST(EffectiveYaml, ShowsValuesWithTheirOriginAndReadsBack) {
    const auto loaded = load_text("log.dirs: /a\nlog.retention.ms: 1d\n", {"listeners=PLAINTEXT://127.0.0.1:1"});
    const auto yaml = effective_yaml(loaded.settings);
    EXPECT_THAT(yaml, HasSubstr("log.retention.ms: 86400000"));
    EXPECT_THAT(yaml, HasSubstr("# t.yaml:2"));
    EXPECT_THAT(yaml, HasSubstr("# --set"));
    EXPECT_THAT(yaml, HasSubstr("# admin.socket: (not set)"));
    const auto again = load({.file_name = "again", .file_text = yaml, .overrides = {}});
    EXPECT_THAT(lines(again.mistakes), IsEmpty());
    EXPECT_EQ(again.config.cleaner, loaded.config.cleaner);
    EXPECT_EQ(again.config.daemon.listeners[0].port, 1);
    EXPECT_EQ(metadata::broker_text({{}, {}, again.config.file}, "log.retention.ms"), "86400000");
}

}  // namespace
}  // namespace tidemark::config
