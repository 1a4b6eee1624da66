#include "metadata/config_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tidemark::metadata {
namespace {

// What a row of config_keys.inc is written with.
enum Flags : unsigned { unused = 0, used = 1, internal = 2, ours = 4, dynamic_only = 8 };

struct Row {
    std::string_view name;
    ConfigType type;
    const char* default_value;
    ConfigRule rule;
    UpdateMode mode;
    unsigned flags;
    std::string_view documentation = {};
};

namespace rows {

using enum ConfigType;
using enum UpdateMode;
using Kind = ConfigRule::Kind;

constexpr const char* null = nullptr;
constexpr ConfigRule any{};
constexpr ConfigRule non_empty{.kind = Kind::non_empty};
constexpr ConfigRule gzip_level{.kind = Kind::gzip_level};
constexpr ConfigRule throttled_replicas{.kind = Kind::throttled_replicas};
constexpr ConfigRule share_offset_reset{.kind = Kind::share_offset_reset};
constexpr ConfigRule at_least(std::int64_t min) { return {.kind = Kind::at_least, .min = min}; }
constexpr ConfigRule between(std::int64_t min, std::int64_t max) { return {.kind = Kind::between, .min = min, .max = max}; }
constexpr ConfigRule fraction(double max) { return {.kind = Kind::fraction, .fraction_max = max}; }
constexpr ConfigRule one_of(std::string_view words) { return {.kind = Kind::one_of, .words = words}; }
constexpr ConfigRule one_of_any_case(std::string_view words) { return {.kind = Kind::one_of_any_case, .words = words}; }
constexpr ConfigRule list_of(std::string_view words, bool empty_allowed) { return {.kind = Kind::list, .words = words, .empty_allowed = empty_allowed}; }

#include "metadata/config_keys.inc"

}  // namespace rows

constexpr std::string_view not_used = "Accepted for compatibility with Apache Kafka; not used.";

std::vector<ConfigKey> keys_of(std::span<const Row> table) {
    std::vector<ConfigKey> keys;
    keys.reserve(table.size());
    for (const Row& row : table) {
        ConfigKey key;
        key.name = row.name;
        key.type = row.type;
        if (row.default_value != nullptr) key.default_value = row.default_value;
        key.rule = row.rule;
        key.mode = row.mode;
        key.used = (row.flags & used) != 0;
        key.internal = (row.flags & internal) != 0;
        key.dynamic_only = (row.flags & dynamic_only) != 0;
        key.ours = (row.flags & ours) != 0;
        key.documentation = row.documentation.empty() ? not_used : row.documentation;
        keys.push_back(key);
    }
    return keys;
}

struct Synonyms {
    std::string_view topic_key;
    std::array<BrokerSynonym, 3> broker;
};
constexpr std::int64_t minute_ms = 60'000, hour_ms = 3'600'000;
// Topic keys whose broker key has another name, or several. The others that have one have its name.
constexpr Synonyms synonyms[] = {
    {"cleanup.policy", {{{"log.cleanup.policy"}}}},
    {"compression.gzip.level", {{{"compression.gzip.level"}}}},
    {"compression.lz4.level", {{{"compression.lz4.level"}}}},
    {"compression.type", {{{"compression.type"}}}},
    {"compression.zstd.level", {{{"compression.zstd.level"}}}},
    {"delete.retention.ms", {{{"log.cleaner.delete.retention.ms"}}}},
    {"file.delete.delay.ms", {{{"log.segment.delete.delay.ms"}}}},
    {"flush.messages", {{{"log.flush.interval.messages"}}}},
    {"flush.ms", {{{"log.flush.interval.ms"}, {"log.flush.scheduler.interval.ms"}}}},
    {"index.interval.bytes", {{{"log.index.interval.bytes"}}}},
    {"local.retention.bytes", {{{"log.local.retention.bytes"}}}},
    {"local.retention.ms", {{{"log.local.retention.ms"}}}},
    {"max.compaction.lag.ms", {{{"log.cleaner.max.compaction.lag.ms"}}}},
    {"max.decompressed.message.bytes", {{{"max.decompressed.message.bytes"}}}},
    {"max.message.bytes", {{{"message.max.bytes"}}}},
    {"message.timestamp.after.max.ms", {{{"log.message.timestamp.after.max.ms"}}}},
    {"message.timestamp.before.max.ms", {{{"log.message.timestamp.before.max.ms"}}}},
    {"message.timestamp.type", {{{"log.message.timestamp.type"}}}},
    {"min.cleanable.dirty.ratio", {{{"log.cleaner.min.cleanable.ratio"}}}},
    {"min.compaction.lag.ms", {{{"log.cleaner.min.compaction.lag.ms"}}}},
    {"min.insync.replicas", {{{"min.insync.replicas"}}}},
    {"preallocate", {{{"log.preallocate"}}}},
    {"remote.copy.lag.bytes", {{{"log.remote.copy.lag.bytes"}}}},
    {"remote.copy.lag.ms", {{{"log.remote.copy.lag.ms"}}}},
    {"retention.bytes", {{{"log.retention.bytes"}}}},
    {"retention.ms", {{{"log.retention.ms"}, {"log.retention.minutes", minute_ms}, {"log.retention.hours", hour_ms}}}},
    {"segment.bytes", {{{"log.segment.bytes"}}}},
    {"segment.index.bytes", {{{"log.index.size.max.bytes"}}}},
    {"segment.jitter.ms", {{{"log.roll.jitter.ms"}, {"log.roll.jitter.hours", hour_ms}}}},
    {"segment.ms", {{{"log.roll.ms"}, {"log.roll.hours", hour_ms}}}},
    {"unclean.leader.election.enable", {{{"unclean.leader.election.enable"}}}},
};

// --- values --------------------------------------------------------------------------------------------------------

std::string_view java_trimmed(std::string_view text) {
    while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
    return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same_any_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

template <class Int>
std::optional<std::int64_t> java_integer(std::string_view text) {
    if (text.size() > 1 && text.front() == '+' && is_digit(text[1])) text.remove_prefix(1);
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Java's grammar: a sign, NaN, Infinity, decimal or hexadecimal (which needs its exponent), an optional f or d behind.
std::optional<double> java_double(std::string_view text) {
    std::string_view rest = text;
    const auto take = [&](auto&& accept) {
        std::size_t n = 0;
        while (n < rest.size() && accept(rest[n])) ++n;
        rest.remove_prefix(n);
        return n;
    };
    if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) rest.remove_prefix(1);
    const bool negative = !text.empty() && text.front() == '-';
    if (rest == "NaN") return std::nan("");
    if (rest == "Infinity") return negative ? -HUGE_VAL : HUGE_VAL;
    const bool hex = rest.size() > 1 && rest[0] == '0' && lower(rest[1]) == 'x';
    if (hex) rest.remove_prefix(2);
    const auto digit = [hex](char c) { return is_digit(c) || (hex && lower(c) >= 'a' && lower(c) <= 'f'); };
    std::size_t digits = take(digit);
    if (!rest.empty() && rest.front() == '.') {
        rest.remove_prefix(1);
        digits += take(digit);
    }
    if (digits == 0) return std::nullopt;
    const bool exponent = !rest.empty() && lower(rest.front()) == (hex ? 'p' : 'e');
    if (hex && !exponent) return std::nullopt;
    if (exponent) {
        rest.remove_prefix(1);
        if (!rest.empty() && (rest.front() == '+' || rest.front() == '-')) rest.remove_prefix(1);
        if (take(is_digit) == 0) return std::nullopt;
    }
    const std::size_t number_bytes = text.size() - rest.size();
    if (!rest.empty() && (lower(rest.front()) == 'f' || lower(rest.front()) == 'd')) rest.remove_prefix(1);
    if (!rest.empty()) return std::nullopt;
    return std::strtod(std::string(text.substr(0, number_bytes)).c_str(), nullptr);
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::vector<std::string> split_list(std::string_view text) {
    std::vector<std::string> elements;
    if (text.empty()) return elements;
    for (;;) {
        const std::size_t comma = text.find(',');
        std::string_view element = text.substr(0, comma);
        while (!element.empty() && is_space(element.back()) && comma != std::string_view::npos) element.remove_suffix(1);
        elements.emplace_back(element);
        if (comma == std::string_view::npos) return elements;
        text.remove_prefix(comma + 1);
        while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    }
}

std::vector<std::string_view> words_of(std::string_view words) {
    std::vector<std::string_view> all;
    while (!words.empty()) {
        const std::size_t comma = words.find(", ");
        all.push_back(words.substr(0, comma));
        if (comma == std::string_view::npos) break;
        words.remove_prefix(comma + 2);
    }
    return all;
}

Error invalid(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

Error invalid_value(const ConfigKey& key, std::string_view value, std::string_view why) {
    return invalid(fmt::format("Invalid value {} for configuration {}: {}", value, key.name, why));
}

/// As Kafka's definitions do with what they validate.
void drop_repeated(std::vector<std::string>& elements) {
    auto kept = elements.begin();
    for (auto i = elements.begin(); i != elements.end(); ++i) {
        if (std::find(elements.begin(), kept, *i) != kept) continue;
        if (kept != i) *kept = std::move(*i);
        ++kept;
    }
    elements.erase(kept, elements.end());
}

Result<> check_list(const ConfigKey& key, const std::vector<std::string>& elements) {
    const std::string_view words = key.rule.words;
    if (elements.empty() && !key.rule.empty_allowed) {
        return invalid(fmt::format("Configuration '{}' must not be empty. Valid values include: {}", key.name,
                                   words.empty() ? std::string("any non-empty value") : fmt::format("[{}]", words)));
    }
    const auto allowed = words_of(words);
    for (const std::string& element : elements) {
        if (element.empty()) return invalid(fmt::format("Configuration '{}' values must not be empty.", key.name));
        if (!allowed.empty() && std::ranges::find(allowed, element) == allowed.end()) {
            return invalid_value(key, element, fmt::format("String must be one of: {}", words));
        }
    }
    return {};
}

bool is_partition_and_broker(std::string_view pair) {
    const std::size_t colon = pair.find(':');
    if (colon == std::string_view::npos) return false;
    const auto number = [](std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); };
    return number(pair.substr(0, colon)) && number(pair.substr(colon + 1));
}

/// PnDTnHnMn.nS with at least one part, as java.time.Duration reads it, not negative.
bool is_duration(std::string_view text) {
    if (text.empty() || lower(text.front()) != 'p') return false;
    text.remove_prefix(1);
    std::string_view units = "d";
    bool any = false, in_time = false;
    while (!text.empty()) {
        if (!in_time && lower(text.front()) == 't') {
            in_time = true;
            any = false;
            units = "hms";
            text.remove_prefix(1);
            continue;
        }
        std::size_t n = 0;
        while (n < text.size() && is_digit(text[n])) ++n;
        const std::size_t whole = n;
        if (n < text.size() && text[n] == '.') {
            ++n;
            while (n < text.size() && is_digit(text[n])) ++n;
        }
        if (whole == 0 || n == text.size()) return false;
        const char unit = lower(text[n]);
        const std::size_t at = units.find(unit);
        if (at == std::string_view::npos || (n != whole && unit != 's')) return false;
        units.remove_prefix(at + 1);
        text.remove_prefix(n + 1);
        any = true;
    }
    return any;
}

Result<> check_number(const ConfigKey& key, const ConfigValue& value) {
    const ConfigRule& rule = key.rule;
    using Kind = ConfigRule::Kind;
    const bool real = key.type == ConfigType::float64;
    const auto below = [&](std::int64_t min) { return real ? value.fraction < static_cast<double>(min) : value.integer < min; };
    switch (rule.kind) {
        case Kind::at_least:
        case Kind::between:
        case Kind::fraction:
            if (below(rule.min)) return invalid_value(key, value.text, fmt::format("Value must be at least {}", rule.min));
            if (rule.kind == Kind::between && value.integer > rule.max) return invalid_value(key, value.text, fmt::format("Value must be no more than {}", rule.max));
            if (rule.kind == Kind::fraction && value.fraction > rule.fraction_max) {
                return invalid_value(key, value.text, fmt::format("Value must be no more than {}", rule.fraction_max));
            }
            return {};
        case Kind::gzip_level:
            if (value.integer == -1 || (value.integer >= 1 && value.integer <= 9)) return {};
            return invalid_value(key, value.text, "Value must be between 1 and 9 or equal to -1");
        default: return {};
    }
}

Result<> check_text(const ConfigKey& key, const ConfigValue& value) {
    const ConfigRule& rule = key.rule;
    using Kind = ConfigRule::Kind;
    const auto allowed = words_of(rule.words);
    switch (rule.kind) {
        case Kind::one_of:
            if (std::ranges::find(allowed, value.text) != allowed.end()) return {};
            return invalid_value(key, value.text, fmt::format("String must be one of: {}", rule.words));
        case Kind::one_of_any_case:
            if (std::ranges::any_of(allowed, [&](std::string_view word) { return same_any_case(word, value.text); })) return {};
            return invalid_value(key, value.text, fmt::format("String must be one of (case insensitive): {}", rule.words));
        case Kind::non_empty:
            if (!value.text.empty()) return {};
            return invalid_value(key, value.text, "String must be non-empty");
        case Kind::share_offset_reset: {
            constexpr std::string_view by_duration = "by_duration:";
            if (value.text == "latest" || value.text == "earliest") return {};
            if (value.text.starts_with(by_duration) && is_duration(std::string_view(value.text).substr(by_duration.size()))) return {};
            return invalid_value(key, value.text, fmt::format("Invalid value `{}` for configuration {}. The value must be either 'earliest', 'latest' or of the "
                                                              "format 'by_duration:<PnDTnHnMn.nS>'.", value.text, key.name));
        }
        default: return {};
    }
}

Result<> check_throttled(const ConfigKey& key, const std::vector<std::string>& elements) {
    const bool all = elements.size() == 1 && elements.front() == "*";
    if (all || std::ranges::all_of(elements, is_partition_and_broker)) return {};
    return invalid_value(key, fmt::format("[{}]", fmt::join(elements, ", ")),
                         fmt::format("{} must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...", key.name));
}

}  // namespace

std::span<const ConfigKey> config_keys(ConfigScope scope) {
    static const std::vector<ConfigKey> broker = keys_of(rows::broker_rows), topic = keys_of(rows::topic_rows), group = keys_of(rows::group_rows),
                                        client_metrics = keys_of(rows::client_metrics_rows);
    switch (scope) {
        case ConfigScope::broker: return broker;
        case ConfigScope::topic: return topic;
        case ConfigScope::group: return group;
        case ConfigScope::client_metrics: return client_metrics;
    }
    return {};
}

const ConfigKey* find_config_key(ConfigScope scope, std::string_view name) {
    const auto keys = config_keys(scope);
    const auto found = std::ranges::lower_bound(keys, name, {}, &ConfigKey::name);
    return found != keys.end() && found->name == name ? &*found : nullptr;
}

std::vector<BrokerSynonym> broker_synonyms(std::string_view topic_key) {
    std::vector<BrokerSynonym> all;
    for (const Synonyms& entry : synonyms) {
        if (entry.topic_key != topic_key) continue;
        for (const BrokerSynonym& synonym : entry.broker) {
            if (!synonym.broker_key.empty()) all.push_back(synonym);
        }
    }
    return all;
}

std::vector<std::string_view> equivalent_broker_keys(std::string_view key) {
    if (key == "log.retention.ms" || key == "log.retention.minutes" || key == "log.retention.hours") {
        return {"log.retention.ms", "log.retention.minutes", "log.retention.hours"};
    }
    if (key == "log.roll.ms" || key == "log.roll.hours") return {"log.roll.ms", "log.roll.hours"};
    if (key == "log.roll.jitter.ms" || key == "log.roll.jitter.hours") return {"log.roll.jitter.ms", "log.roll.jitter.hours"};
    if (key == "log.flush.interval.ms") return {"log.flush.interval.ms", "log.flush.scheduler.interval.ms"};
    return {key};
}

std::optional<std::string_view> group_broker_synonym(std::string_view group_key) {
    if (group_key == "streams.assignor.name") return "group.streams.assignors";
    const std::string name = "group." + std::string(group_key);
    if (const ConfigKey* key = find_config_key(ConfigScope::broker, name)) return key->name;
    return std::nullopt;
}

Result<ConfigValue> parse_config_value(const ConfigKey& key, std::string_view text) {
    const std::string_view trimmed = java_trimmed(text);
    ConfigValue value;
    const auto integer = [&](std::optional<std::int64_t> number, std::string_view type) -> Result<ConfigValue> {
        if (!number) return invalid_value(key, text, fmt::format("Not a number of type {}", type));
        value.integer = *number;
        value.text = std::to_string(*number);
        TM_TRYV(check_number(key, value));
        return std::move(value);
    };
    switch (key.type) {
        case ConfigType::boolean:
            value.boolean = same_any_case(trimmed, "true");
            if (!value.boolean && !same_any_case(trimmed, "false")) return invalid_value(key, text, "Expected value to be either true or false");
            value.text = value.boolean ? "true" : "false";
            return value;
        case ConfigType::int16: return integer(java_integer<std::int16_t>(trimmed), "SHORT");
        case ConfigType::int32: return integer(java_integer<std::int32_t>(trimmed), "INT");
        case ConfigType::int64: return integer(java_integer<std::int64_t>(trimmed), "LONG");
        case ConfigType::float64: {
            const auto number = java_double(trimmed);
            if (!number) return invalid_value(key, text, "Not a number of type DOUBLE");
            value.fraction = *number;
            value.text = java_double_text(*number);
            TM_TRYV(check_number(key, value));
            return value;
        }
        case ConfigType::list:
            value.list = split_list(trimmed);
            if (key.rule.kind == ConfigRule::Kind::list) drop_repeated(value.list);
            value.text = fmt::format("{}", fmt::join(value.list, ","));
            if (key.rule.kind == ConfigRule::Kind::throttled_replicas) {
                TM_TRYV(check_throttled(key, value.list));
            } else if (key.rule.kind == ConfigRule::Kind::list) {
                TM_TRYV(check_list(key, value.list));
            }
            return value;
        case ConfigType::password:
            value.text = "[hidden]";
            return value;
        case ConfigType::string:
        case ConfigType::class_name:
            value.text = trimmed;
            TM_TRYV(check_text(key, value));
            return value;
    }
    return invalid(fmt::format("{} has no type", key.name));
}

std::string valid_values(const ConfigKey& key) {
    using Kind = ConfigRule::Kind;
    const ConfigRule& rule = key.rule;
    switch (rule.kind) {
        case Kind::any: return key.type == ConfigType::boolean ? "true, false" : "";
        case Kind::at_least: return fmt::format("[{},...]", rule.min);
        case Kind::between: return fmt::format("[{},...,{}]", rule.min, rule.max);
        case Kind::fraction: return fmt::format("[0,...,{}]", rule.fraction_max);
        case Kind::one_of: return fmt::format("[{}]", rule.words);
        case Kind::one_of_any_case: return fmt::format("(case insensitive) [{}]", rule.words);
        case Kind::list: return rule.words.empty() ? std::string(rule.empty_allowed ? "" : "non-empty list") : fmt::format("[{}]", rule.words);
        case Kind::non_empty: return "non-empty string";
        case Kind::gzip_level: return "[1,...,9] or -1";
        case Kind::throttled_replicas: return "[partitionId]:[brokerId],[partitionId]:[brokerId],...";
        case Kind::share_offset_reset: return "[latest, earliest, by_duration:PnDTnHnMn.nS]";
    }
    return "";
}

std::string java_double_text(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
    std::array<char, 64> buffer;
    const double magnitude = std::abs(value);
    if (magnitude >= 1e-3 && magnitude < 1e7) {
        const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
        std::string text(buffer.data(), end);
        if (text.find('.') == std::string::npos) text += ".0";
        return text;
    }
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
    std::string text(buffer.data(), end);
    const std::size_t e = text.find('e');
    std::string mantissa = text.substr(0, e);
    if (mantissa.find('.') == std::string::npos) mantissa += ".0";
    return fmt::format("{}E{}", mantissa, std::atoi(text.c_str() + e + 1));
}

std::vector<std::string_view> similar_config_keys(ConfigScope scope, std::string_view name) {
    struct Candidate {
        std::size_t distance;
        std::string_view name;
    };
    std::vector<Candidate> candidates;
    std::vector<std::size_t> row(name.size() + 1);
    for (const ConfigKey& key : config_keys(scope)) {
        if (key.internal) continue;
        for (std::size_t i = 0; i <= name.size(); ++i) row[i] = i;
        for (std::size_t k = 1; k <= key.name.size(); ++k) {   // Levenshtein, one row at a time
            std::size_t diagonal = row[0];
            row[0] = k;
            for (std::size_t i = 1; i <= name.size(); ++i) {
                const std::size_t replaced = diagonal + (name[i - 1] == key.name[k - 1] ? 0 : 1);
                diagonal = row[i];
                row[i] = std::min({row[i] + 1, row[i - 1] + 1, replaced});
            }
        }
        const std::size_t distance = row[name.size()];
        const bool part = name.size() >= 6 && key.name.find(name) != std::string_view::npos;
        if (distance <= std::max<std::size_t>(2, name.size() / 5)) candidates.push_back({distance, key.name});
        else if (part) candidates.push_back({name.size(), key.name});
    }
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) { return std::pair(a.distance, a.name) < std::pair(b.distance, b.name); });
    std::vector<std::string_view> names;
    for (const Candidate& candidate : candidates) {
        if (names.size() < 3) names.push_back(candidate.name);
    }
    return names;
}

}  // namespace tidemark::metadata
