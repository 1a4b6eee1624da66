#include "record/varint.h"

#include <array>

namespace tidemark::record {

std::optional<std::int32_t> read_varint(Bytes bytes, std::size_t* at) {
    if (*at > bytes.size()) return std::nullopt;
    std::int32_t value = 0;
    const std::byte* end = read_varint(bytes.data() + *at, bytes.data() + bytes.size(), &value);
    if (end == nullptr) return std::nullopt;
    *at = static_cast<std::size_t>(end - bytes.data());
    return value;
}

std::optional<std::int64_t> read_varlong(Bytes bytes, std::size_t* at) {
    if (*at > bytes.size()) return std::nullopt;
    std::int64_t value = 0;
    const std::byte* end = read_varlong(bytes.data() + *at, bytes.data() + bytes.size(), &value);
    if (end == nullptr) return std::nullopt;
    *at = static_cast<std::size_t>(end - bytes.data());
    return value;
}

void append_varint(std::vector<std::byte>& to, std::int32_t v) {
    std::array<std::byte, varint_bytes_max> bytes;
    to.insert(to.end(), bytes.data(), write_varint(bytes.data(), v));
}

void append_varlong(std::vector<std::byte>& to, std::int64_t v) {
    std::array<std::byte, varlong_bytes_max> bytes;
    to.insert(to.end(), bytes.data(), write_varlong(bytes.data(), v));
}

}  // namespace tidemark::record
