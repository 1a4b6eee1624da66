#include "bench/load/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>

namespace tidemark::bench {

namespace {

constexpr double mib = 1 << 20;
constexpr double gib = 1 << 30;

double per_second(std::int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

}  // namespace

std::optional<double> Latencies::quantile_ms(double q) {
    if (values_.empty()) return std::nullopt;
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values_.size())));
    const auto nth = values_.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, values_.size()) - 1);
    std::nth_element(values_.begin(), nth, values_.end());
    return static_cast<double>(*nth) / 1e6;
}

boost::json::object Report::json() {
    boost::json::object out{
        {"mode", mode},
        {"seconds", seconds},
        {"requests", requests},
        {"records", records},
        {"bytes", bytes},
        {"mib_per_second", per_second(bytes, seconds) / mib},
        {"records_per_second", per_second(records, seconds)},
    };
    if (latencies.size() > 0) {
        out["latency_ms"] = boost::json::object{
            {"p50", *latencies.quantile_ms(0.5)}, {"p99", *latencies.quantile_ms(0.99)},
            {"p999", *latencies.quantile_ms(0.999)}, {"max", *latencies.quantile_ms(1)},
        };
    }
    if (broker_begin && broker_end) {
        const double cpu = broker_end->cpu_seconds - broker_begin->cpu_seconds;
        out["broker"] = boost::json::object{
            {"cpu_seconds", cpu},
            {"cpu_seconds_per_gib", bytes > 0 ? cpu / (static_cast<double>(bytes) / gib) : 0},
            {"cores", seconds > 0 ? cpu / seconds : 0},
            {"rss_mib", static_cast<double>(broker_end->resident_bytes) / mib},
        };
    }
    return out;
}

std::string Report::text() {
    std::string out = fmt::format("{}: {:.0f} MiB in {:.2f} s: {:.1f} MiB/s, {:.0f} records/s, {} requests\n", mode, static_cast<double>(bytes) / mib, seconds,
                                  per_second(bytes, seconds) / mib, per_second(records, seconds), requests);
    if (latencies.size() > 0) {
        out += fmt::format("  latency ms: p50 {:.3f}, p99 {:.3f}, p99.9 {:.3f}, max {:.3f}\n", *latencies.quantile_ms(0.5), *latencies.quantile_ms(0.99),
                           *latencies.quantile_ms(0.999), *latencies.quantile_ms(1));
    }
    if (broker_begin && broker_end) {
        const double cpu = broker_end->cpu_seconds - broker_begin->cpu_seconds;
        out += fmt::format("  broker: {:.2f} CPU s", cpu);
        if (bytes > 0) out += fmt::format(", {:.3f} CPU s/GiB", cpu / (static_cast<double>(bytes) / gib));
        if (seconds > 0) out += fmt::format(", {:.3f} cores", cpu / seconds);
        out += fmt::format(", RSS {:.1f} MiB\n", static_cast<double>(broker_end->resident_bytes) / mib);
    }
    return out;
}

void print(Report& report, OutputFormat format) {
    const std::string text = format == OutputFormat::json ? boost::json::serialize(report.json()) + "\n" : report.text();
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

}  // namespace tidemark::bench
