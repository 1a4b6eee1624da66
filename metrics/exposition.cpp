#include "metrics/exposition.h"

#include <prometheus/text_serializer.h>

#include <chrono>
#include <iterator>

namespace tidemark::metrics {

std::string Exposition::text() const {
    const auto begin = std::chrono::steady_clock::now();
    FamilyList families;
    for (const auto& collector : collectors_) {
        auto some = collector->Collect();
        families.insert(families.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    add_gauge(families, "tidemark_scrape_duration_seconds", "How long it took to collect what this scrape shows.", took.count());
    return prometheus::TextSerializer{}.Serialize(families);
}

}  // namespace tidemark::metrics
