/// Encoding: structs in, bytes out.
///
///   message.write(writer, version);
///   TM_TRY(auto encoded, std::move(writer).finish());
///
/// or, for whole frames, framing.h. A Writer remembers the first thing that it could not write, and finish() reports it:
///   unsupported       the message has no such version, or a field that is not ignorable has a value other than its
///                     default where this version has no place for it (KIP-482's rule; ignorable fields are left out silently)
///   invalid_argument  null where this version allows none; unknown tagged fields out of order
///   too_large         a string, array or frame beyond what its length field can say
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/wire_types.h"

namespace tidemark::protocol {

/// Bytes with gaps that the sender fills: bytes[0, gaps[0].at), gaps[0], bytes[gaps[0].at, gaps[1].at), gaps[1], …
struct Encoded {
    struct Gap {
        std::size_t at = 0;  ///< the gap stands before this byte of `bytes`
        std::uint32_t slice = 0;
        std::size_t size = 0;
    };

    std::vector<std::byte> bytes = {};
    std::vector<Gap> gaps = {};  ///< in order of `at`
    std::size_t size = 0;        ///< with the gaps
};

class Writer {
public:
    Writer() = default;
    /// Room for that many bytes, to save the growing.
    explicit Writer(std::size_t expected_size) { bytes_.reserve(expected_size); }

    /// So far, gaps included.
    std::size_t size() const { return bytes_.size() + gaps_size_; }
    Result<Encoded> finish() &&;
    /// For messages without records elsewhere.
    Result<std::vector<std::byte>> finish_bytes() &&;

    void boolean(bool value) { append_be<std::int8_t>(bytes_, value ? 1 : 0); }
    void int8(std::int8_t value) { append_be(bytes_, value); }
    void int16(std::int16_t value) { append_be(bytes_, value); }
    void uint16(std::uint16_t value) { append_be(bytes_, value); }
    void int32(std::int32_t value) { append_be(bytes_, value); }
    void uint32(std::uint32_t value) { append_be(bytes_, value); }
    void int64(std::int64_t value) { append_be(bytes_, value); }
    void float64(double value) { append_be(bytes_, std::bit_cast<std::uint64_t>(value)); }
    void uuid(const Uuid& value) { append_bytes(bytes_, value.bytes); }
    void unsigned_varint(std::uint32_t value);
    void raw(Bytes bytes) { append_bytes(bytes_, bytes); }

    void string(std::string_view value, bool compact);
    void nullable_string(const std::optional<std::string>& value, bool compact, bool may_be_null);
    void bytes(Bytes value, bool compact);
    void nullable_bytes(const std::optional<std::vector<std::byte>>& value, bool compact, bool may_be_null);
    void records(const Records& value, bool compact);
    void nullable_records(const std::optional<Records>& value, bool compact, bool may_be_null);

    template <class T>
    void array(const std::vector<T>& value, bool compact, std::int16_t version) {
        length(value.size(), compact);
        for (const auto& element : value) {
            if constexpr (std::is_arithmetic_v<T>) append_be(bytes_, element);
            else if constexpr (std::is_same_v<T, std::string>) string(element, compact);
            else if constexpr (std::is_same_v<T, Uuid>) uuid(element);
            else element.write(*this, version);
        }
    }
    template <class T>
    void nullable_array(const std::optional<std::vector<T>>& value, bool compact, std::int16_t version, bool may_be_null) {
        if (value) array(*value, compact, version);
        else null_array(compact, may_be_null);
    }

    void structure_follows(bool follows) { int8(follows ? 1 : -1); }
    void tagged_structure_follows(bool follows) { unsigned_varint(follows ? 1 : 0); }

    /// A structure's tagged section: tag_count(), then in ascending order known fields, between begin_tag() and
    /// end_tag(), and the unknown ones.
    void tag_count(std::size_t count) { unsigned_varint(static_cast<std::uint32_t>(count)); }
    /// Returns what end_tag() wants back.
    std::size_t begin_tag(std::uint32_t number);
    void end_tag(std::size_t begun);
    /// The unknown ones from `*next` on that stand before the known tag `below`.
    void unknown_tags_below(std::uint64_t below, const UnknownTags& tags, std::size_t* next);
    void unknown_tags_rest(const UnknownTags& tags, std::size_t* next) { unknown_tags_below(std::uint64_t{1} << 32, tags, next); }
    /// A whole section without known fields.
    void unknown_tags(const UnknownTags& tags);

    /// The message cannot be written, unless something failed already.
    void refuse(Errc code, std::string what);
    void refuse_version(const char* message, std::int16_t version);
    /// The field's value has no place in this version.
    void refuse_field(const char* field, std::int16_t version);

private:
    void length(std::size_t n, bool compact);
    void null_array(bool compact, bool may_be_null);
    void null_length(bool compact);

    std::vector<std::byte> bytes_;
    std::vector<Encoded::Gap> gaps_;
    std::size_t gaps_size_ = 0;
    std::optional<Error> error_;
};

/// The message alone, without frame or header.
template <class Message>
Result<std::vector<std::byte>> encode(const Message& message, std::int16_t version) {
    Writer writer;
    message.write(writer, version);
    return std::move(writer).finish_bytes();
}

}  // namespace tidemark::protocol
