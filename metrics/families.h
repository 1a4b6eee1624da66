/// Makes Prometheus' metric families from plain numbers.
///
/// Names follow Prometheus' conventions: base units, `_total` on counters only, `tidemark_` in front; the HELP text ends
/// with the name of Kafka's MBean where there is one (D19). Label values are escaped where the text is written.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::metrics {

using FamilyList = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<prometheus::ClientMetric::Label>;

/// One family under construction: `Family log_end{"tidemark_log_end_offset", "…"}; log_end.add({{"topic", t}}, 42);`
class Family {
public:
    enum class Kind : std::uint8_t { gauge, counter };
    Family(Kind kind, std::string name, std::string help);

    void add(Labels labels, double value);
    template <class Number>
    void add(Labels labels, Number value) { add(std::move(labels), static_cast<double>(value)); }

    /// Into `to`; a family without a single series is left out, since Prometheus has no use for it.
    void move_to(FamilyList& to) &&;

private:
    prometheus::MetricFamily family_;
};

inline Family gauge(std::string name, std::string help) { return {Family::Kind::gauge, std::move(name), std::move(help)}; }
inline Family counter(std::string name, std::string help) { return {Family::Kind::counter, std::move(name), std::move(help)}; }

/// A family with one series and no labels.
template <class Number>
void add_gauge(FamilyList& to, std::string name, std::string help, Number value) {
    auto family = gauge(std::move(name), std::move(help));
    family.add({}, value);
    std::move(family).move_to(to);
}
template <class Number>
void add_counter(FamilyList& to, std::string name, std::string help, Number value) {
    auto family = counter(std::move(name), std::move(help));
    family.add({}, value);
    std::move(family).move_to(to);
}

/// A histogram of `buckets` (not cumulative, one more than `bounds`) as a series of `family`.
void add_histogram(prometheus::MetricFamily& family, Labels labels, std::span<const double> bounds, std::span<const std::uint64_t> buckets, double sum);

}  // namespace tidemark::metrics
