#include "metrics/families.h"

#include <cmath>
#include <limits>

#include "base/assert.h"

namespace tidemark::metrics {

Family::Family(Kind kind, std::string name, std::string help) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = kind == Kind::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
}

void Family::add(Labels labels, double value) {
    if (!std::isfinite(value)) value = 0;  // a ratio without a base is 0, never NaN (a rule over it would be lost)
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    if (family_.type == prometheus::MetricType::Counter) metric.counter.value = value;
    else metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
}

void Family::move_to(FamilyList& to) && {
    if (!family_.metric.empty()) to.push_back(std::move(family_));
}

void add_histogram(prometheus::MetricFamily& family, Labels labels, std::span<const double> bounds, std::span<const std::uint64_t> buckets, double sum) {
    TM_ASSERT(buckets.size() == bounds.size() + 1);
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
        below += buckets[i];
        metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity()});
    }
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = sum;
    family.metric.push_back(std::move(metric));
}

}  // namespace tidemark::metrics
