#include "retention/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace tidemark::retention {
namespace {

std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
    std::int64_t r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    return b > 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

std::optional<Timestamp> saturating_add(Timestamp a, std::int64_t b) {
    std::int64_t r;
    if (__builtin_add_overflow(a.value, b, &r)) return std::nullopt;
    return Timestamp{r};
}

struct Age {
    Timestamp timestamp{};
    bool by_file_time = false;
};

/// What retention.ms compares; nothing when the segment's timestamps are not known yet.
std::optional<Age> age_of(const SegmentState& s, Timestamp now, const Differences& differences) {
    if (s.timestamps_unknown) return std::nullopt;
    const bool by_file = !s.largest_record_timestamp || (differences.future_timestamps_use_file_time && *s.largest_record_timestamp > now);
    const auto timestamp = by_file ? s.modified : s.largest_record_timestamp;
    return timestamp ? std::optional(Age{*timestamp, by_file}) : std::nullopt;
}

/// When retention.ms lets it go, if it is still there at `from`; nothing: at no time that a clock can show.
std::optional<Timestamp> expiry_of(const SegmentState& s, std::int64_t retention_ms, Timestamp from, const Differences& differences) {
    const auto strictly_after = [&](std::optional<Timestamp> t) -> std::optional<Timestamp> {
        const auto end = t ? saturating_add(*t, retention_ms) : std::nullopt;
        return end ? saturating_add(*end, 1) : std::nullopt;
    };
    if (s.timestamps_unknown) return std::nullopt;
    if (differences.future_timestamps_use_file_time && s.largest_record_timestamp) {
        // Its file's time counts only until the clock has reached the timestamp (D8).
        const auto by_file = strictly_after(s.modified);
        if (by_file && std::max(*by_file, from) < *s.largest_record_timestamp) return by_file;
    }
    return strictly_after(s.largest_timestamp());
}

bool time_rule_is_on(const storage::LogConfig& config) { return config.deletes && config.retention_ms && *config.retention_ms >= 0; }

/// One call's walk over the rules. What a rule leaves begins at `next_`.
class Walk {
public:
    Walk(const LogState& log, const storage::LogConfig& config, Timestamp now, const Differences& differences)
        : log_(log), config_(config), now_(now), differences_(differences), log_start_(log.log_start_offset) {}

    Decision run() {
        by_log_start();
        if (config_.deletes) {
            by_size();
            by_time();
            by_min_timestamp();
            look_ahead();
        }
        return std::move(decision_);
    }

private:
    bool is_active(std::size_t i) const { return i + 1 == log_.segments.size(); }
    Offset upper_bound(std::size_t i) const { return is_active(i) ? log_.log_end_offset : log_.segments[i + 1].base_offset; }

    /// Takes segments from the front for as long as `goes` names a reason (retention 2).
    template <class Goes>
    void take(Goes goes) {
        for (; next_ < log_.segments.size(); ++next_) {
            if (log_.high_watermark < upper_bound(next_)) return;
            if (is_active(next_) && log_.segments[next_].bytes == 0) return;
            auto deletion = goes(next_);
            if (!deletion) return;
            deletion->segment = next_;
            decision_.deletions.push_back(*deletion);
            if (upper_bound(next_) > log_start_) log_start_ = upper_bound(next_);
        }
    }

    void by_log_start() {
        take([&](std::size_t i) -> std::optional<Deletion> {
            if (is_active(i) || upper_bound(i) > log_start_) return std::nullopt;
            return Deletion{0, Rule::log_start_offset, log_.log_start_offset.value, upper_bound(i).value};
        });
    }

    void by_size() {
        if (!config_.retention_bytes || *config_.retention_bytes < 0) return;
        std::int64_t total = 0;
        for (auto i = next_; i < log_.segments.size(); ++i) total += log_.segments[i].bytes;
        if (total < *config_.retention_bytes) return;
        take([&](std::size_t i) -> std::optional<Deletion> {
            const auto left = total - log_.segments[i].bytes;
            if (left < *config_.retention_bytes) return std::nullopt;   // retention.bytes is what stays at least
            total = left;
            return Deletion{0, Rule::retention_bytes, *config_.retention_bytes, left};
        });
    }

    std::optional<Age> age(std::size_t i) const { return age_of(log_.segments[i], now_, differences_); }

    bool is_expired(std::size_t i) const {
        const auto a = age(i);
        return a && saturating_sub(now_.value, a->timestamp.value) > *config_.retention_ms;
    }

    void by_time() {
        if (!time_rule_is_on(config_)) return;
        take([&](std::size_t i) -> std::optional<Deletion> {
            if (!is_expired(i)) return std::nullopt;
            const auto a = age(i);
            return Deletion{0, Rule::retention_ms, *config_.retention_ms, a->timestamp.value, a->by_file_time};
        });
    }

    bool min_timestamp_is_on() const { return differences_.min_timestamp && config_.retention_min_timestamp && config_.retention_min_timestamp->value > 0; }

    std::optional<Age> below_min_timestamp(std::size_t i) const {
        const auto& s = log_.segments[i];
        if (s.timestamps_unknown) return std::nullopt;
        // The limit is a time of the data: a file's time says nothing about it, unless the user wants it to.
        if (!s.largest_record_timestamp && !differences_.min_timestamp_uses_file_time) return std::nullopt;
        const auto largest = s.largest_timestamp();
        if (!largest || *largest >= *config_.retention_min_timestamp) return std::nullopt;
        return Age{*largest, !s.largest_record_timestamp};
    }

    void by_min_timestamp() {
        if (!min_timestamp_is_on()) return;
        take([&](std::size_t i) -> std::optional<Deletion> {
            const auto a = below_min_timestamp(i);
            if (!a) return std::nullopt;
            return Deletion{0, Rule::min_timestamp, config_.retention_min_timestamp->value, a->timestamp.value, a->by_file_time};
        });
    }

    /// What is to be said about the segments that stay.
    void look_ahead() {
        const bool by_time = time_rule_is_on(config_), by_min_timestamp = min_timestamp_is_on();
        for (auto i = next_; i < log_.segments.size(); ++i) {
            const auto& s = log_.segments[i];
            if (s.bytes == 0 && is_active(i)) break;
            if (by_time && s.largest_record_timestamp && *s.largest_record_timestamp > now_) decision_.future.push_back(i);
            const bool old = (by_time && is_expired(i)) || (by_min_timestamp && below_min_timestamp(i));
            if (old && i > next_) ++decision_.held_back;
            if (by_time && i == next_) decision_.next_deletion = expiry_of(s, *config_.retention_ms, now_, differences_);
        }
    }

    const LogState& log_;
    const storage::LogConfig& config_;
    const Timestamp now_;
    const Differences& differences_;
    Offset log_start_;
    std::size_t next_ = 0;
    Decision decision_;
};

}  // namespace

const char* to_string(Rule rule) noexcept {
    switch (rule) {
        case Rule::log_start_offset: return "log start offset";
        case Rule::retention_bytes: return "retention.bytes";
        case Rule::retention_ms: return "retention.ms";
        case Rule::min_timestamp: return "log.retention.mintimestamp";
    }
    return "?";
}

std::string Deletion::text() const {
    const char* const source = by_file_time ? " (file time)" : "";
    switch (rule) {
        case Rule::log_start_offset: return fmt::format("log start offset {}: it ends at {}", limit, value);
        case Rule::retention_bytes: return fmt::format("retention.bytes {}: {} bytes stay without it", limit, value);
        case Rule::retention_ms: return fmt::format("retention.ms {}: largest timestamp {}{}", limit, value, source);
        case Rule::min_timestamp: return fmt::format("log.retention.mintimestamp {}: largest timestamp {}{}", limit, value, source);
    }
    return {};
}

Decision decide(const LogState& log, const storage::LogConfig& config, Timestamp now, const Differences& differences) {
    TM_ASSERT(!log.segments.empty());
    return Walk(log, config, now, differences).run();
}

std::vector<Forecast> forecast(const LogState& log, const Decision& decision, const storage::LogConfig& config, Timestamp now, const Differences& differences) {
    std::vector<Forecast> forecasts;
    std::optional<Timestamp> goes = now;
    for (auto i = decision.deletions.size(); i < log.segments.size(); ++i) {
        if (log.segments[i].bytes == 0 && i + 1 == log.segments.size()) break;
        Forecast f{.segment = i, .expires = {}, .goes = {}};
        if (time_rule_is_on(config)) {
            f.expires = expiry_of(log.segments[i], *config.retention_ms, now, differences);
            // The walk stops at the first that stays: nobody goes before those in front.
            const auto alone = goes ? expiry_of(log.segments[i], *config.retention_ms, *goes, differences) : std::nullopt;
            f.goes = alone ? std::optional{std::max(*goes, *alone)} : std::nullopt;
        }
        goes = f.goes;
        forecasts.push_back(f);
    }
    return forecasts;
}

}  // namespace tidemark::retention
