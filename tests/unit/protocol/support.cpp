#include "tests/unit/protocol/support.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <stdexcept>
#include <string>

#include "base/bytes.h"

namespace {

thread_local std::size_t allocated = 0;

}  // namespace

// The whole program counts what it allocates, so that tests can say how much a decoder may ask for.
void* operator new(std::size_t size) {
    allocated += size;
    if (void* p = std::malloc(size)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace tidemark::protocol {

std::size_t allocated_bytes() { return allocated; }

std::vector<std::byte> bytes_of(std::string_view notation) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < notation.size();) {
        if (notation[i] == ' ') {
            ++i;
        } else if (notation[i] == '\'') {
            const auto end = notation.find('\'', i + 1);
            append_bytes(bytes, as_bytes(notation.substr(i + 1, end - i - 1)));
            i = end + 1;
        } else {
            bytes.push_back(static_cast<std::byte>(std::stoi(std::string(notation.substr(i, 2)), nullptr, 16)));
            i += 2;
        }
    }
    return bytes;
}

std::string hex(Bytes bytes) {
    std::string text;
    for (const auto b : bytes) {
        text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
        text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0xf];
    }
    return text;
}

GuardedBytes::GuardedBytes(Bytes bytes) : original_(to_vector(bytes)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (bytes.size() + page - 1) / page * page + page;
    auto* mapped = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    pages_ = static_cast<std::byte*>(mapped);
    if (::mprotect(pages_ + mapped_ - page, page, PROT_NONE) != 0) throw std::runtime_error("mprotect");
    mapped_ -= page;
    first(bytes.size());
}

GuardedBytes::~GuardedBytes() { ::munmap(pages_, mapped_ + static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))); }

MutableBytes GuardedBytes::first(std::size_t n) {
    bytes_ = {pages_ + mapped_ - n, n};
    std::copy_n(original_.begin(), n, bytes_.begin());
    return bytes_;
}

std::uint64_t test_seed() {
    static const std::uint64_t seed = [] {
        const char* const given = std::getenv("TIDEMARK_TEST_SEED");
        return given ? std::stoull(given) : std::uint64_t{std::random_device{}()};
    }();
    return seed;
}

}  // namespace tidemark::protocol
