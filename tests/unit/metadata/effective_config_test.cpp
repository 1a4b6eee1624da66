// Layers of settings: what holds, where it comes from (as a broker by Apache Kafka 4.4 answered), what it means to a log.
#include "metadata/effective_config.h"

#include <gmock/gmock.h>

namespace tidemark::metadata {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t minute = 60'000, hour = 3'600'000, week = 168 * hour;

ConfigLayers file_layers(ConfigMap file) { return {.broker = {}, .cluster = {}, .file = std::move(file)}; }

std::string text_of(const std::vector<ConfigSynonym>& synonyms) {
    std::string text;
    for (const auto& synonym : synonyms) text += "(" + std::to_string(static_cast<int>(synonym.source)) + " " + synonym.name + "=" + synonym.value.value_or("null") + ")";
    return text;
}

const DescribedConfig& entry(const std::vector<DescribedConfig>& all, std::string_view name) {
    static const DescribedConfig none;
    for (const auto& config : all) {
        if (config.name == name) return config;
    }
    ADD_FAILURE() << name << " is not described";
    return none;
}

TEST(LogConfig, IsKafkasWithoutAnySetting) {
    const auto config = log_config({}, {});
    EXPECT_EQ(config, storage::LogConfig{});
}

/// B33: -1 is unlimited, 0 is everything, milliseconds beat minutes beat hours, the topic beats the broker.
TEST(LogConfig, RetentionTimeOfTheStrongestUnit) {
    struct Case {
        ConfigMap file;
        ConfigMap topic;
        std::optional<std::int64_t> expected;
    };
    const std::string longest = "9223372036854775807";
    const Case cases[] = {
        {{}, {}, week},
        {{{"log.retention.hours", "1"}}, {}, hour},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "2"}}, {}, 2 * minute},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "2"}, {"log.retention.ms", "3"}}, {}, 3},
        {{{"log.retention.hours", "-1"}}, {}, std::nullopt},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "-1"}}, {}, std::nullopt},
        {{{"log.retention.ms", "-1"}}, {}, std::nullopt},
        {{{"log.retention.ms", "-5"}}, {}, std::nullopt},
        {{{"log.retention.hours", "2147483647"}}, {}, 2147483647 * hour},
        {{{"log.retention.ms", longest}}, {}, std::numeric_limits<std::int64_t>::max()},
        {{{"log.retention.ms", "-1"}}, {{"retention.ms", "5"}}, 5},
        {{{"log.retention.ms", "7"}}, {{"retention.ms", "-1"}}, std::nullopt},
        {{{"log.retention.ms", "7"}}, {{"retention.ms", "0"}}, 0},
        {{}, {{"retention.ms", longest}}, std::numeric_limits<std::int64_t>::max()},
        {{{"log.retention.ms", "7"}}, {{"retention.ms", "seven"}}, 7},   // an invalid override does not count
    };
    for (const Case& c : cases) {
        EXPECT_EQ(log_config(file_layers(c.file), c.topic).retention_ms, c.expected) << testing::PrintToString(c.file) << testing::PrintToString(c.topic);
    }
}

TEST(LogConfig, RetentionBytes) {
    EXPECT_EQ(log_config(file_layers({{"log.retention.bytes", "10"}}), {}).retention_bytes, 10);
    EXPECT_EQ(log_config(file_layers({{"log.retention.bytes", "10"}}), {{"retention.bytes", "-1"}}).retention_bytes, std::nullopt);
    EXPECT_EQ(log_config(file_layers({{"log.retention.bytes", "10"}}), {{"retention.bytes", "0"}}).retention_bytes, 0);
}

TEST(LogConfig, RollsAndFlushesByTheStrongestKey) {
    EXPECT_EQ(log_config(file_layers({{"log.roll.hours", "2"}}), {}).segment_ms, 2 * hour);
    EXPECT_EQ(log_config(file_layers({{"log.roll.hours", "2"}, {"log.roll.ms", "9"}}), {}).segment_ms, 9);
    EXPECT_EQ(log_config(file_layers({{"log.roll.jitter.hours", "1"}}), {}).segment_jitter_ms, hour);
    EXPECT_EQ(log_config(file_layers({{"log.flush.scheduler.interval.ms", "11"}}), {}).flush_ms, 11);
    EXPECT_EQ(log_config(file_layers({{"log.flush.scheduler.interval.ms", "11"}, {"log.flush.interval.ms", "12"}}), {}).flush_ms, 12);
    EXPECT_EQ(log_config(file_layers({{"log.flush.interval.ms", "12"}}), {{"flush.ms", "13"}}).flush_ms, 13);
}

TEST(LogConfig, EveryTopicKeyArrives) {
    const auto config = log_config({}, {{"cleanup.policy", "compact"},
                                        {"compression.type", "zstd"},
                                        {"compression.zstd.level", "7"},
                                        {"compression.gzip.level", "5"},
                                        {"compression.lz4.level", "3"},
                                        {"delete.retention.ms", "1"},
                                        {"file.delete.delay.ms", "2"},
                                        {"flush.messages", "3"},
                                        {"flush.ms", "4"},
                                        {"index.interval.bytes", "5"},
                                        {"log.retention.mintimestamp", "6"},
                                        {"max.compaction.lag.ms", "70"},
                                        {"max.decompressed.message.bytes", "8"},
                                        {"max.message.bytes", "9"},
                                        {"message.timestamp.after.max.ms", "10"},
                                        {"message.timestamp.before.max.ms", "11"},
                                        {"message.timestamp.type", "LogAppendTime"},
                                        {"min.cleanable.dirty.ratio", "0.25"},
                                        {"min.compaction.lag.ms", "12"},
                                        {"preallocate", "true"},
                                        {"retention.bytes", "13"},
                                        {"retention.ms", "14"},
                                        {"segment.bytes", "1048577"},
                                        {"segment.index.bytes", "16"},
                                        {"segment.jitter.ms", "17"},
                                        {"segment.ms", "18"}});
    storage::LogConfig expected;
    expected.compacts = true;
    expected.deletes = false;
    expected.compression = {.codec = record::Codec::zstd, .gzip_level = 5, .lz4_level = 3, .zstd_level = 7};
    expected.delete_retention_ms = 1;
    expected.file_delete_delay_ms = 2;
    expected.flush_messages = 3;
    expected.flush_ms = 4;
    expected.index_interval_bytes = 5;
    expected.retention_min_timestamp = Timestamp{6};
    expected.max_compaction_lag_ms = 70;
    expected.max_decompressed_message_bytes = 8;
    expected.max_message_bytes = 9;
    expected.timestamp_after_max_ms = 10;
    expected.timestamp_before_max_ms = 11;
    expected.timestamp_type = record::TimestampType::log_append_time;
    expected.min_cleanable_dirty_ratio = 0.25;
    expected.min_compaction_lag_ms = 12;
    expected.preallocate = true;
    expected.retention_bytes = 13;
    expected.retention_ms = 14;
    expected.segment_bytes = 1048577;
    expected.segment_index_bytes = 16;
    expected.segment_jitter_ms = 17;
    expected.segment_ms = 18;
    EXPECT_EQ(config, expected);
}

TEST(LogConfig, PoliciesAndTheMinimumTimestamp) {
    EXPECT_TRUE(log_config({}, {{"cleanup.policy", "delete,compact"}}).compacts);
    EXPECT_TRUE(log_config({}, {{"cleanup.policy", "delete,compact"}}).deletes);
    EXPECT_FALSE(log_config({}, {{"cleanup.policy", ""}}).deletes);
    EXPECT_FALSE(log_config({}, {{"cleanup.policy", ""}}).compacts);
    EXPECT_EQ(log_config({}, {{"log.retention.mintimestamp", "0"}}).retention_min_timestamp, std::nullopt);   // 0 is none
    EXPECT_EQ(log_config({}, {{"internal.segment.bytes", "1000"}}).segment_bytes, 1000);
    EXPECT_EQ(log_config({}, {{"compression.type", "uncompressed"}}).compression.codec, record::Codec::none);
    EXPECT_EQ(log_config({}, {{"compression.type", "producer"}}).compression.codec, std::nullopt);
}

TEST(ConfigLayers, TakeFromTheImageOnlyWhatMayChangeThere) {
    Image image;
    image.configs[{ResourceType::broker, "1"}] = {{"log.retention.ms", "5"}, {"listeners", "PLAINTEXT://:1"}, {"num.partitions", "7"}, {"log.cleaner.threads", "many"}, {"foo.bar", "x"}};
    image.configs[{ResourceType::broker, ""}] = {{"log.retention.ms", "6"}, {"listeners", "PLAINTEXT://:2"}, {"log.roll.ms", "8"}};
    image.configs[{ResourceType::broker, "2"}] = {{"log.roll.ms", "9"}};
    const auto layers = config_layers(image, 1, {{"log.retention.ms", "7"}});
    EXPECT_THAT(layers.broker, ElementsAre(std::pair("foo.bar", "x"), std::pair("listeners", "PLAINTEXT://:1"), std::pair("log.retention.ms", "5")));
    EXPECT_THAT(layers.cluster, ElementsAre(std::pair("log.retention.ms", "6"), std::pair("log.roll.ms", "8")));
    EXPECT_EQ(broker_integer(layers, "log.retention.ms"), 5);
    EXPECT_EQ(broker_integer(layers, "log.roll.ms"), 8);
    EXPECT_EQ(broker_integer(layers, "num.partitions"), 1);
    EXPECT_EQ(broker_value(layers, "log.dirs"), std::nullopt);
    EXPECT_EQ(broker_string(layers, "compression.type"), "producer");
    EXPECT_TRUE(broker_boolean(layers, "auto.create.topics.enable"));
    EXPECT_EQ(broker_fraction(layers, "log.cleaner.min.cleanable.ratio"), 0.5);
    EXPECT_THAT(broker_list(layers, "log.cleanup.policy"), ElementsAre("delete"));
}

// What Apache Kafka 4.4.0 answered, with log.retention.hours=100 in its file and the overrides below.
class Described : public testing::Test {
protected:
    const ConfigLayers layers_{.broker = {{"log.retention.ms", "500000"}},
                               .cluster = {{"log.retention.ms", "600000"}, {"log.roll.ms", "9999999"}, {"log.cleanup.policy", "delete,compact"}},
                               .file = {{"log.retention.hours", "100"}, {"offsets.topic.replication.factor", "1"}}};
};

TEST_F(Described, TopicWithAllLevels) {
    const auto topic = describe_topic(layers_, {{"cleanup.policy", ""}, {"segment.ms", "5000"}});
    EXPECT_EQ(topic.size(), 38u);   // Kafka's 37 and log.retention.mintimestamp
    const auto& retention = entry(topic, "retention.ms");
    EXPECT_EQ(retention.value, "500000");
    EXPECT_EQ(retention.source, ConfigSource::dynamic_broker);
    EXPECT_EQ(text_of(retention.synonyms), "(2 log.retention.ms=500000)(3 log.retention.ms=600000)(4 log.retention.hours=100)(5 log.retention.hours=168)");
    const auto& segment = entry(topic, "segment.ms");
    EXPECT_EQ(segment.value, "5000");
    EXPECT_EQ(segment.source, ConfigSource::topic);
    EXPECT_EQ(text_of(segment.synonyms), "(1 segment.ms=5000)(3 log.roll.ms=9999999)(5 log.roll.hours=168)");
    const auto& policy = entry(topic, "cleanup.policy");
    EXPECT_EQ(policy.value, "");
    EXPECT_EQ(policy.source, ConfigSource::topic);
    EXPECT_EQ(text_of(policy.synonyms), "(1 cleanup.policy=)(3 log.cleanup.policy=delete,compact)(5 log.cleanup.policy=delete)");
    const auto& untouched = entry(topic, "segment.bytes");
    EXPECT_EQ(untouched.value, "1073741824");
    EXPECT_EQ(untouched.source, ConfigSource::default_config);
    EXPECT_FALSE(untouched.read_only);
    EXPECT_EQ(text_of(untouched.synonyms), "(5 log.segment.bytes=1073741824)");
    EXPECT_THAT(entry(topic, "remote.storage.enable").synonyms, IsEmpty());
}

TEST_F(Described, TopicWithDefaultsOnlyListsNoOtherUnit) {
    const auto topic = describe_topic({}, {});
    EXPECT_EQ(entry(topic, "retention.ms").value, "604800000");
    EXPECT_EQ(entry(topic, "retention.ms").source, ConfigSource::default_config);
    EXPECT_THAT(entry(topic, "retention.ms").synonyms, IsEmpty());   // since log.retention.ms itself has no value
}

TEST_F(Described, Broker) {
    const auto broker = describe_broker({.broker = {{"foo.bar", "5"}, {"leader.replication.throttled.rate", "1000"}, {"log.retention.ms", "500000"}},
                                         .cluster = layers_.cluster,
                                         .file = layers_.file});
    const std::size_t ours = static_cast<std::size_t>(std::ranges::count_if(config_keys(ConfigScope::broker), [](const ConfigKey& key) { return key.ours; }));
    EXPECT_EQ(broker.size(), 350 + ours + 2);
    EXPECT_EQ(text_of(entry(broker, "log.retention.ms").synonyms), "(2 log.retention.ms=500000)(3 log.retention.ms=600000)(4 log.retention.hours=100)(5 log.retention.hours=168)");
    EXPECT_FALSE(entry(broker, "log.retention.ms").read_only);
    EXPECT_EQ(entry(broker, "log.retention.hours").source, ConfigSource::static_broker);
    EXPECT_TRUE(entry(broker, "log.retention.hours").read_only);
    EXPECT_EQ(text_of(entry(broker, "log.retention.hours").synonyms), "(4 log.retention.hours=100)(5 log.retention.hours=168)");
    const auto& unknown = entry(broker, "foo.bar");
    EXPECT_EQ(unknown.value, std::nullopt);
    EXPECT_TRUE(unknown.sensitive);
    EXPECT_TRUE(unknown.read_only);
    EXPECT_FALSE(unknown.type_known);
    EXPECT_EQ(text_of(unknown.synonyms), "(2 foo.bar=null)");
    EXPECT_EQ(entry(broker, "leader.replication.throttled.rate").value, "1000");
    EXPECT_FALSE(entry(broker, "leader.replication.throttled.rate").read_only);
    EXPECT_EQ(entry(broker, "ssl.keystore.password").value, std::nullopt);
    EXPECT_TRUE(entry(broker, "ssl.keystore.password").sensitive);
    EXPECT_TRUE(std::ranges::is_sorted(broker, {}, &DescribedConfig::name));
}

TEST_F(Described, ClusterDefaultListsOnlyItsOwn) {
    const auto cluster = describe_cluster_default(layers_);
    std::vector<std::string> lines;
    for (const auto& config : cluster) lines.push_back(config.name + "=" + config.value.value_or("null") + " " + text_of(config.synonyms));
    EXPECT_THAT(lines, ElementsAre("log.cleanup.policy=delete,compact (3 log.cleanup.policy=delete,compact)", "log.retention.ms=600000 (3 log.retention.ms=600000)",
                                   "log.roll.ms=9999999 (3 log.roll.ms=9999999)"));
}

TEST_F(Described, GroupAndClientMetrics) {
    const auto group = describe_group({}, {{"consumer.heartbeat.interval.ms", "15000"}});
    EXPECT_EQ(group.size(), 21u);
    EXPECT_EQ(entry(group, "consumer.heartbeat.interval.ms").source, ConfigSource::group);
    EXPECT_EQ(text_of(entry(group, "consumer.heartbeat.interval.ms").synonyms), "(8 consumer.heartbeat.interval.ms=15000)(5 group.consumer.heartbeat.interval.ms=5000)");
    EXPECT_EQ(text_of(entry(group, "share.auto.offset.reset").synonyms), "(5 share.auto.offset.reset=latest)");
    EXPECT_EQ(entry(group, "streams.assignor.name").value, "sticky");
    const auto metrics = describe_client_metrics({{"interval.ms", "60000"}});
    EXPECT_EQ(metrics.size(), 3u);
    EXPECT_EQ(entry(metrics, "interval.ms").source, ConfigSource::client_metrics);
    EXPECT_EQ(text_of(entry(metrics, "interval.ms").synonyms), "(7 interval.ms=60000)");
    EXPECT_EQ(entry(metrics, "match").value, "");
    EXPECT_THAT(entry(metrics, "match").synonyms, IsEmpty());
}

TEST(Contradictions, OfBrokerAndTopic) {
    EXPECT_THAT(broker_contradictions({}), IsEmpty());
    EXPECT_THAT(broker_contradictions(file_layers({{"log.retention.ms", "0"}})), ElementsAre("log.retention.ms must be unlimited (-1) or, greater than or equal to 1"));
    EXPECT_THAT(broker_contradictions(file_layers({{"log.retention.hours", "0"}, {"log.retention.minutes", "1"}})), IsEmpty());
    EXPECT_EQ(broker_contradictions(file_layers({{"log.cleaner.dedupe.buffer.size", "1048576"}})).size(), 1u);
    EXPECT_EQ(broker_contradictions(file_layers({{"log.cleaner.min.compaction.lag.ms", "2"}, {"log.cleaner.max.compaction.lag.ms", "1"}})).size(), 1u);
    EXPECT_EQ(topic_contradiction({}, {{"min.compaction.lag.ms", "100"}, {"max.compaction.lag.ms", "10"}}),
              "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)");
    // The broker's side counts as well.
    EXPECT_NE(topic_contradiction(file_layers({{"log.cleaner.max.compaction.lag.ms", "10"}}), {{"min.compaction.lag.ms", "100"}}), std::nullopt);
    EXPECT_EQ(topic_contradiction({}, {{"min.compaction.lag.ms", "10"}, {"max.compaction.lag.ms", "10"}}), std::nullopt);
}

}  // namespace
}  // namespace tidemark::metadata
