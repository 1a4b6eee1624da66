/// What `/metrics` answers: every collector asked at the moment of the scrape, written in Prometheus' text format.
#pragma once

#include <prometheus/collectable.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metrics/families.h"

namespace tidemark::metrics {

/// A collector from a function that reads some module's stats().
class Collector final : public prometheus::Collectable {
public:
    using Read = std::function<FamilyList()>;
    explicit Collector(Read read) : read_(std::move(read)) {}
    FamilyList Collect() const override { return read_(); }
private:
    Read read_;
};

/// Nothing is cached: a deleted partition's series are gone with the next scrape.
///
/// Life:    filled before the first scrape, then constant.
/// Threads: text() from any thread.
class Exposition {
public:
    void add(std::shared_ptr<const prometheus::Collectable> collector) { collectors_.push_back(std::move(collector)); }
    void add(Collector::Read read) { add(std::make_shared<const Collector>(std::move(read))); }
    /// The families of all collectors, each name once, and one of its own: how long the scrape took.
    std::string text() const;
    static constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";
private:
    std::vector<std::shared_ptr<const prometheus::Collectable>> collectors_;
};

}  // namespace tidemark::metrics
