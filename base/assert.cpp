#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace tidemark {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
    std::fprintf(stderr, "tidemark: assertion failed: %s (%s:%d)\n", expression, file, line);
    std::abort();
}

}  // namespace tidemark
