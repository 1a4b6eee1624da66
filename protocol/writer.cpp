#include "protocol/writer.h"

#include <limits>

#include "base/assert.h"

namespace tidemark::protocol {
namespace {

constexpr std::size_t length_max = std::numeric_limits<std::int32_t>::max() - 1;  // compact lengths are one more

}  // namespace

Result<Encoded> Writer::finish() && {
    if (error_) return *std::move(error_);
    const auto total = size();
    return Encoded{std::move(bytes_), std::move(gaps_), total};
}

Result<std::vector<std::byte>> Writer::finish_bytes() && {
    TM_ASSERT(gaps_.empty());
    if (error_) return *std::move(error_);
    return std::move(bytes_);
}

void Writer::refuse(Errc code, std::string what) {
    if (!error_) error_ = Error{code, std::move(what)};
}

void Writer::refuse_version(const char* message, std::int16_t version) {
    refuse(Errc::unsupported, std::string(message) + " has no version " + std::to_string(version));
}

void Writer::refuse_field(const char* field, std::int16_t version) {
    refuse(Errc::unsupported, std::string(field) + " has a value that version " + std::to_string(version) + " cannot carry");
}

void Writer::unsigned_varint(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
}

void Writer::length(std::size_t n, bool compact) {
    if (n > length_max) return refuse(Errc::too_large, "a length of " + std::to_string(n));
    if (compact) unsigned_varint(static_cast<std::uint32_t>(n + 1));
    else int32(static_cast<std::int32_t>(n));
}

void Writer::null_length(bool compact) {
    if (compact) unsigned_varint(0);
    else int32(-1);
}

void Writer::null_array(bool compact, bool may_be_null) {
    if (!may_be_null) return refuse(Errc::invalid_argument, "null array at byte " + std::to_string(size()));
    null_length(compact);
}

void Writer::string(std::string_view value, bool compact) {
    // Kafka's limit holds for both encodings.
    if (value.size() > static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max())) {
        return refuse(Errc::too_large, "a string of " + std::to_string(value.size()) + " bytes");
    }
    if (compact) unsigned_varint(static_cast<std::uint32_t>(value.size() + 1));
    else int16(static_cast<std::int16_t>(value.size()));
    raw(as_bytes(value));
}

void Writer::nullable_string(const std::optional<std::string>& value, bool compact, bool may_be_null) {
    if (value) return string(*value, compact);
    if (!may_be_null) return refuse(Errc::invalid_argument, "null string at byte " + std::to_string(size()));
    if (compact) unsigned_varint(0);
    else int16(-1);
}

void Writer::bytes(Bytes value, bool compact) {
    length(value.size(), compact);
    raw(value);
}

void Writer::nullable_bytes(const std::optional<std::vector<std::byte>>& value, bool compact, bool may_be_null) {
    if (value) return bytes(*value, compact);
    if (!may_be_null) return refuse(Errc::invalid_argument, "null bytes at byte " + std::to_string(size()));
    null_length(compact);
}

void Writer::records(const Records& value, bool compact) {
    if (!value.elsewhere) return bytes(value.bytes, compact);
    length(value.elsewhere->size, compact);
    if (value.elsewhere->size == 0) return;
    gaps_.push_back({bytes_.size(), value.elsewhere->slice, value.elsewhere->size});
    gaps_size_ += value.elsewhere->size;
}

void Writer::nullable_records(const std::optional<Records>& value, bool compact, bool may_be_null) {
    if (value) return records(*value, compact);
    if (!may_be_null) return refuse(Errc::invalid_argument, "null records at byte " + std::to_string(size()));
    null_length(compact);
}

std::size_t Writer::begin_tag(std::uint32_t number) {
    unsigned_varint(number);
    bytes_.push_back(std::byte{0});  // the size: almost always one byte, and end_tag() makes room if not
    return bytes_.size();
}

void Writer::end_tag(std::size_t begun) {
    TM_ASSERT(gaps_.empty() || gaps_.back().at <= begun);
    auto size = bytes_.size() - begun;
    std::byte varint[5];
    std::size_t n = 0;
    for (; size >= 0x80; size >>= 7) varint[n++] = static_cast<std::byte>(size | 0x80);
    varint[n++] = static_cast<std::byte>(size);
    bytes_[begun - 1] = varint[0];
    bytes_.insert(bytes_.begin() + static_cast<std::ptrdiff_t>(begun), varint + 1, varint + n);
}

void Writer::unknown_tags_below(std::uint64_t below, const UnknownTags& tags, std::size_t* next) {
    for (; *next < tags.size() && tags[*next].number < below; ++*next) {
        const auto& tag = tags[*next];
        if (*next > 0 && tags[*next - 1].number >= tag.number) {
            return refuse(Errc::invalid_argument, "unknown tagged fields are not in ascending order");
        }
        unsigned_varint(tag.number);
        unsigned_varint(static_cast<std::uint32_t>(tag.value.size()));
        raw(tag.value);
    }
}

void Writer::unknown_tags(const UnknownTags& tags) {
    tag_count(tags.size());
    std::size_t next = 0;
    unknown_tags_rest(tags, &next);
}

}  // namespace tidemark::protocol
