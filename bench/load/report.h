/// What a run measured, as a line for people and as one line of JSON.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/load/process.h"

namespace tidemark::bench {

/// Every value is kept, so the quantiles are exact.
class Latencies {
public:
    void add(std::int64_t ns) { values_.push_back(ns); }
    void add(const Latencies& other) { values_.insert(values_.end(), other.values_.begin(), other.values_.end()); }
    std::size_t size() const { return values_.size(); }
    /// The smallest value that at least the share `q` of all values does not exceed, in milliseconds; nothing without values.
    std::optional<double> quantile_ms(double q);

private:
    std::vector<std::int64_t> values_;  // ns
};

struct Report {
    std::string mode;
    double seconds = 0;           ///< of the measured part
    std::int64_t requests = 0;
    std::int64_t records = 0;
    std::int64_t bytes = 0;       ///< of record batches, as they are in the log
    Latencies latencies;
    std::optional<ProcessUse> broker_begin, broker_end;  ///< when the broker's process was named

    boost::json::object json();
    /// A few lines.
    std::string text();
};

enum class OutputFormat : std::uint8_t { text, json };
void print(Report&, OutputFormat);

}  // namespace tidemark::bench
