/// Bytes for tests of the protocol.
#pragma once

#include <string_view>
#include <vector>

#include "base/types.h"

namespace tidemark::protocol {

/// "00 0a 'text' ff": pairs of hex digits and texts in single quotes; blanks are ignored.
std::vector<std::byte> bytes_of(std::string_view notation);
/// Lower-case hex digits without blanks.
std::string hex(Bytes bytes);

/// A copy of bytes with an unmapped page behind the last: whoever reads on is stopped at once, in every build.
class GuardedBytes {
public:
    explicit GuardedBytes(Bytes bytes);
    ~GuardedBytes();
    GuardedBytes(const GuardedBytes&) = delete;
    GuardedBytes& operator=(const GuardedBytes&) = delete;

    MutableBytes get() const { return bytes_; }
    /// The first `n` of them, moved so that the guard stands right behind.
    MutableBytes first(std::size_t n);

private:
    std::vector<std::byte> original_;
    std::byte* pages_ = nullptr;
    std::size_t mapped_ = 0;
    MutableBytes bytes_;
};

/// TIDEMARK_TEST_SEED, or one from the system; tests put it into their messages.
std::uint64_t test_seed();

/// Bytes that this thread has asked the heap for since it started.
std::size_t allocated_bytes();

}  // namespace tidemark::protocol
