/// TM_ASSERT: a promise between our own functions. Checked in every build; a broken one stops the process with its text.
/// Never for bytes from disk or wire: those yield Errc::corrupt.
#pragma once

namespace tidemark {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;
}

#define TM_ASSERT(...) \
    (__builtin_expect(static_cast<bool>(__VA_ARGS__), 1) ? static_cast<void>(0) : ::tidemark::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))
