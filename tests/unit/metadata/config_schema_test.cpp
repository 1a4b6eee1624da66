// The tables of keys, and Kafka's judgement of values (config_values.txt, by tests/interop/metadata/ConfigValues.java).
#include "metadata/config_schema.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

namespace tidemark::metadata {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
        if (c == '\t') fields.emplace_back();
        else fields.back() += c;
    }
    return fields;
}

std::string unescaped(std::string text) {
    for (std::size_t at = 0; (at = text.find('\\', at)) != std::string::npos; ++at) {
        const char c = at + 1 < text.size() ? text[at + 1] : '\\';
        text.replace(at, 2, 1, c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c);
    }
    return text;
}

std::optional<ConfigScope> scope_named(const std::string& name) {
    if (name == "broker") return ConfigScope::broker;
    if (name == "topic") return ConfigScope::topic;
    if (name == "group") return ConfigScope::group;
    if (name == "client-metrics") return ConfigScope::client_metrics;
    return std::nullopt;
}

TEST(ConfigSchema, JudgesValuesAsKafkaDoes) {
    std::ifstream file("tests/unit/metadata/config_values.txt");   // tests run in the source root
    ASSERT_TRUE(file);
    int lines = 0;
    for (std::string line; std::getline(file, line); ++lines) {
        SCOPED_TRACE(line);
        const auto field = split(line);
        ASSERT_EQ(field.size(), 5u);
        const ConfigKey* key = find_config_key(*scope_named(field[0]), field[1]);
        ASSERT_NE(key, nullptr);
        const auto value = parse_config_value(*key, unescaped(field[2]));
        ASSERT_EQ(value.has_value(), field[3] == "ok") << (value.has_value() ? "" : value.error().context);
        EXPECT_EQ(value.has_value() ? value->text : value.error().context, unescaped(field[4]));
    }
    EXPECT_GT(lines, 150);
}

TEST(ConfigSchema, HasKafkasKeysWithTheirTypesDefaultsAndModes) {
    std::ifstream file("tests/unit/metadata/config_keys.txt");
    ASSERT_TRUE(file);
    std::map<std::string, int> listed;
    // D20, and what a broker alone need not be told.
    const std::map<std::string, std::string> other_defaults{{"offsets.topic.replication.factor", "=1"}, {"transaction.state.log.replication.factor", "=1"},
                                                            {"transaction.state.log.min.isr", "=1"},    {"node.id", "=1"},
                                                            {"process.roles", "=broker,controller"},    {"controller.listener.names", "=CONTROLLER"}};
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("#")) continue;
        SCOPED_TRACE(line);
        const auto field = split(line);   // scope, key, type, default, valid values, internal, mode
        ASSERT_EQ(field.size(), 7u);
        const ConfigKey* key = find_config_key(*scope_named(field[0]), field[1]);
        ASSERT_NE(key, nullptr);
        EXPECT_FALSE(key->ours);
        constexpr std::string_view types[] = {"BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"};
        EXPECT_EQ(types[static_cast<int>(key->type) - 1], field[2]);
        const std::string ours = key->default_value ? "=" + std::string(*key->default_value) : "null";
        const auto other = other_defaults.find(field[1]);
        EXPECT_EQ(ours, other == other_defaults.end() ? field[3] : other->second);
        EXPECT_EQ(key->internal, field[5] == "true");
        const std::string mode = key->mode == UpdateMode::read_only ? "read-only" : key->mode == UpdateMode::per_broker ? "per-broker" : "cluster-wide";
        EXPECT_EQ(field[0] == "broker" ? mode : "read-only", field[6]);
        if (!key->internal && !key->dynamic_only) ++listed[field[0]];
    }
    EXPECT_EQ(listed["broker"], 350);
    EXPECT_EQ(listed["topic"], 37);
}

TEST(ConfigSchema, TablesAreSortedAndSound) {
    for (const auto scope : {ConfigScope::broker, ConfigScope::topic, ConfigScope::group, ConfigScope::client_metrics}) {
        std::string_view last;
        for (const ConfigKey& key : config_keys(scope)) {
            SCOPED_TRACE(key.name);
            EXPECT_LT(last, key.name);
            last = key.name;
            EXPECT_EQ(find_config_key(scope, key.name), &key);
            EXPECT_FALSE(key.documentation.empty());
            if (key.default_value) {
                const auto value = parse_config_value(key, *key.default_value);
                // Kafka's own default lists nothing where it allows no empty list only for keys that must be set.
                ASSERT_TRUE(value.has_value()) << value.error().context;
                EXPECT_EQ(value->text, *key.default_value);
            }
        }
    }
}

TEST(ConfigSchema, TopicKeysHaveTheirBrokerKeys) {
    const auto names = [](std::string_view key) {
        std::vector<std::string> found;
        for (const auto& synonym : broker_synonyms(key)) found.push_back(std::string(synonym.broker_key) + "*" + std::to_string(synonym.factor));
        return found;
    };
    EXPECT_THAT(names("retention.ms"), ElementsAre("log.retention.ms*1", "log.retention.minutes*60000", "log.retention.hours*3600000"));
    EXPECT_THAT(names("segment.ms"), ElementsAre("log.roll.ms*1", "log.roll.hours*3600000"));
    EXPECT_THAT(names("max.message.bytes"), ElementsAre("message.max.bytes*1"));
    EXPECT_THAT(names("log.retention.mintimestamp"), IsEmpty());
    EXPECT_THAT(names("remote.storage.enable"), IsEmpty());
    // Each of them exists.
    for (const ConfigKey& key : config_keys(ConfigScope::topic)) {
        for (const auto& synonym : broker_synonyms(key.name)) EXPECT_NE(find_config_key(ConfigScope::broker, synonym.broker_key), nullptr) << key.name;
    }
    EXPECT_THAT(equivalent_broker_keys("log.retention.minutes"), ElementsAre("log.retention.ms", "log.retention.minutes", "log.retention.hours"));
    EXPECT_THAT(equivalent_broker_keys("num.partitions"), ElementsAre("num.partitions"));
    EXPECT_EQ(group_broker_synonym("consumer.session.timeout.ms"), "group.consumer.session.timeout.ms");
    EXPECT_EQ(group_broker_synonym("streams.assignor.name"), "group.streams.assignors");
    EXPECT_EQ(group_broker_synonym("share.auto.offset.reset"), std::nullopt);
}

TEST(ConfigSchema, PrintsDoublesAsJava) {
    EXPECT_EQ(java_double_text(0.5), "0.5");
    EXPECT_EQ(java_double_text(1), "1.0");
    EXPECT_EQ(java_double_text(0.001), "0.001");
    EXPECT_EQ(java_double_text(0.0009), "9.0E-4");
    EXPECT_EQ(java_double_text(9999999), "9999999.0");
    EXPECT_EQ(java_double_text(10000000), "1.0E7");
    EXPECT_EQ(java_double_text(1.7976931348623157e308), "1.7976931348623157E308");
    EXPECT_EQ(java_double_text(-1234.5), "-1234.5");
    EXPECT_EQ(java_double_text(0), "0.0");
}

TEST(ConfigSchema, SuggestsWhatLooksAlike) {
    EXPECT_THAT(similar_config_keys(ConfigScope::broker, "log.retention.hour"), testing::Contains("log.retention.hours"));
    EXPECT_EQ(similar_config_keys(ConfigScope::topic, "cleanup.polcy").at(0), "cleanup.policy");
    EXPECT_THAT(similar_config_keys(ConfigScope::topic, "zzzzzzzz"), IsEmpty());
}

}  // namespace
}  // namespace tidemark::metadata
