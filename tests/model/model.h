/// What the model tests share: where their randomness comes from.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace tidemark::model {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// The same numbers for the same seed on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    /// 0 to n − 1.
    std::uint64_t below(std::uint64_t n) { return engine_() % n; }
    std::int64_t between(std::int64_t from, std::int64_t to) { return from + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(to - from + 1))); }
    bool once_in(std::uint64_t n) { return below(n) == 0; }
private:
    std::mt19937_64 engine_;
};

}  // namespace tidemark::model
