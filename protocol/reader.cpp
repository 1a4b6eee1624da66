#include "protocol/reader.h"

#include "base/assert.h"

namespace tidemark::protocol {

Result<> Reader::result() const {
    if (failed_) return Error{Errc::corrupt, failure_};
    return {};
}

void Reader::fail(std::string what) {
    if (failed_) return;
    failed_ = true;
    failure_ = std::move(what) + " at byte " + std::to_string(position());
    at_ = end_;  // every later read finds nothing
}

void Reader::refuse_short(std::size_t wanted) {
    fail(std::to_string(wanted) + " bytes expected, " + std::to_string(remaining()) + " left");
}

void Reader::refuse_null(const char* type) { fail(std::string("null ") + type + " where none is allowed"); }

const std::byte* Reader::take(std::size_t n) {
    if (remaining() < n) {
        refuse_short(n);
        return nullptr;
    }
    return std::exchange(at_, at_ + n);
}

Uuid Reader::uuid() {
    Uuid uuid;
    if (const auto* from = take(uuid.bytes.size())) std::memcpy(uuid.bytes.data(), from, uuid.bytes.size());
    return uuid;
}

std::uint32_t Reader::unsigned_varint() {
    std::uint32_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<std::uint8_t>(int8());
        if (failed_) return 0;
        if (shift == 28 && byte > 0x0f) {
            fail("varint of more than 32 bits");
            return 0;
        }
        value |= static_cast<std::uint32_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

std::optional<std::size_t> Reader::length(bool compact, bool short_length, const char* type) {
    // Either encoding as one number in which -1 is null.
    const std::int64_t n = compact ? std::int64_t{unsigned_varint()} - 1 : short_length ? int16() : int32();
    if (failed_) return 0;
    if (n == -1) return std::nullopt;
    if (n < 0 || static_cast<std::uint64_t>(n) > remaining()) {
        fail(std::string(type) + " of " + std::to_string(n) + " bytes, " + std::to_string(remaining()) + " left");
        return 0;
    }
    return static_cast<std::size_t>(n);
}

std::optional<std::size_t> Reader::array_length(bool compact, std::size_t element_bytes_min, std::size_t element_size) {
    const std::int64_t n = compact ? std::int64_t{unsigned_varint()} - 1 : int32();
    if (failed_) return 0;
    if (n == -1) return std::nullopt;
    if (n < 0 || static_cast<std::uint64_t>(n) > remaining() / element_bytes_min) {
        fail("array of " + std::to_string(n) + " elements, " + std::to_string(remaining()) + " bytes left");
        return 0;
    }
    const auto count = static_cast<std::size_t>(n);
    if (count > memory_left_ / element_size) {
        fail("array of " + std::to_string(n) + " elements needs more memory than these bytes are worth");
        return 0;
    }
    memory_left_ -= count * element_size;
    return count;
}

std::optional<std::string> Reader::nullable_string(bool compact, bool may_be_null) {
    const auto n = length(compact, true, "string");
    if (!n) {
        if (!may_be_null) refuse_null("string");
        return std::nullopt;
    }
    if (*n > 0x7fff) {  // Kafka's limit, which the compact encoding could exceed
        fail("string of " + std::to_string(*n) + " bytes");
        return std::nullopt;
    }
    const auto* from = take(*n);
    return std::string(reinterpret_cast<const char*>(from), from ? *n : 0);
}

std::string Reader::string(bool compact) {
    auto text = nullable_string(compact, false);
    return text ? *std::move(text) : std::string();
}

std::optional<std::vector<std::byte>> Reader::nullable_bytes(bool compact, bool may_be_null) {
    const auto n = length(compact, false, "bytes");
    if (!n) {
        if (!may_be_null) refuse_null("bytes");
        return std::nullopt;
    }
    const auto* from = take(*n);
    return std::vector<std::byte>(from, from + *n);
}

std::vector<std::byte> Reader::bytes(bool compact) {
    auto bytes = nullable_bytes(compact, false);
    return bytes ? *std::move(bytes) : std::vector<std::byte>();
}

std::optional<Records> Reader::nullable_records(bool compact, bool may_be_null) {
    TM_ASSERT(mutable_);  // made by of_frame()
    const auto n = length(compact, false, "records");
    if (!n) {
        if (!may_be_null) refuse_null("records");
        return std::nullopt;
    }
    const auto* from = take(*n);
    return Records{.bytes = {const_cast<std::byte*>(from), from ? *n : 0}};
}

Records Reader::records(bool compact) {
    const auto records = nullable_records(compact, false);
    return records ? *records : Records{};
}

bool Reader::structure_follows() {
    const auto marker = int8();
    if (marker != 1 && marker != -1) fail("marker of a nullable structure is " + std::to_string(marker));
    return marker == 1;
}

bool Reader::tagged_structure_follows() {
    const auto marker = unsigned_varint();
    if (marker > 1) fail("marker of a nullable structure is " + std::to_string(marker));
    return marker == 1;
}

std::uint32_t Reader::tag_count() {
    const auto n = unsigned_varint();
    if (n > remaining() / 2) {
        fail(std::to_string(n) + " tagged fields, " + std::to_string(remaining()) + " bytes left");
        return 0;
    }
    return n;
}

Reader::Tag Reader::begin_tag() {
    const auto number = unsigned_varint();
    const auto size = unsigned_varint();
    const Tag tag{number, end_};
    if (size > remaining()) {
        refuse_short(size);
    } else {
        end_ = at_ + size;
    }
    return tag;
}

void Reader::unknown_tag(const Tag& tag, UnknownTags& to) {
    if (failed_) return;
    constexpr auto cost = 4 * sizeof(UnknownTag);  // the vector grows by doubling
    if (memory_left_ < cost) return fail("tagged fields need more memory than these bytes are worth");
    memory_left_ -= cost;
    to.push_back({tag.number, to_vector(rest())});
    at_ = end_;
}

void Reader::end_tag(const Tag& tag) {
    if (at_ != end_) fail("tagged field " + std::to_string(tag.number) + " is larger than its value");
    end_ = tag.outer_end;
    if (failed_) at_ = end_;
}

void Reader::unknown_tags(UnknownTags& to) {
    for (auto n = tag_count(); n > 0 && ok(); --n) {
        const auto tag = begin_tag();
        unknown_tag(tag, to);
        end_tag(tag);
    }
}

Error no_such_version(const char* message, std::int16_t version) {
    return {Errc::unsupported, std::string(message) + " has no version " + std::to_string(version)};
}

Result<> outcome_of(const Reader& reader, const char* message, std::int16_t version) {
    if (reader.ok()) return {};
    return in_context(reader.result().error(), std::string(message) + " version " + std::to_string(version));
}

}  // namespace tidemark::protocol
