/// Decoding: bytes in, structs out.
///
///   TM_TRY(const auto request, protocol::parse<protocol::FetchRequest>(reader, version));
///
/// Every request, response and record of schemas/*.schema is a plain aggregate in a header of its own, generated at
/// build time: `#include "protocol/messages/fetch_request.h"`. For Kafka's struct FetchRequest with its FetchTopic:
///
///   struct FetchRequest {
///       static constexpr ApiKey api_key = ApiKey::fetch;      // records: static constexpr std::int16_t record_type
///       static constexpr VersionRange versions{4, 18};
///       static constexpr std::int16_t flexible_from = 12;
///       static constexpr const char* message_name = "FetchRequest";
///       using FetchTopic = …;                                 // struct { std::string topic; Uuid topic_id; … }
///       std::optional<std::string> cluster_id;                // nullable: optional
///       std::vector<FetchTopic> topics;
///       …
///       UnknownTags unknown_tags;                             // last in every structure
///       void read(Reader&, std::int16_t version);             // use parse() instead
///       void write(Writer&, std::int16_t version) const;
///       bool operator==(const FetchRequest&) const;
///   };
///
/// Members have Kafka's names in snake_case and the schema's defaults. int16 fields named …ErrorCode are ErrorCode;
/// `bytes` is std::vector<std::byte>, `records` is Records: a view of the frame.
///
/// A Reader remembers its first failure, and from then on every read yields zero or nothing: the generated code reads
/// field after field, and parse() asks once. Nothing that the bytes claim is believed: a length is compared with the
/// bytes that are left before anything is allocated, and what is allocated in total is bounded by memory_max().
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "protocol/wire_types.h"

namespace tidemark::protocol {

class Reader {
public:
    /// `bytes` outlive the reader. Messages with `records` fields need of_frame().
    explicit Reader(Bytes bytes) : at_(bytes.data()), begin_(bytes.data()), end_(bytes.data() + bytes.size()), memory_left_(memory_max(bytes.size())) {}
    /// Of a frame, whose `records` fields become slices of it.
    static Reader of_frame(MutableBytes frame) {
        Reader reader{Bytes(frame)};
        reader.mutable_ = true;
        return reader;
    }

    /// What vectors decoded from `size` bytes may take together. The largest honest ratios come from lists of small
    /// structures and are well below.
    static constexpr std::size_t memory_max(std::size_t size) { return (std::size_t{64} << 10) + 24 * size; }

    bool ok() const { return !failed_; }
    /// The first failure: Errc::corrupt, what was wrong and at which byte.
    Result<> result() const;
    std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
    std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
    Bytes rest() const { return {at_, end_}; }

    bool boolean() { return integer<std::int8_t>() != 0; }
    std::int8_t int8() { return integer<std::int8_t>(); }
    std::int16_t int16() { return integer<std::int16_t>(); }
    std::uint16_t uint16() { return integer<std::uint16_t>(); }
    std::int32_t int32() { return integer<std::int32_t>(); }
    std::uint32_t uint32() { return integer<std::uint32_t>(); }
    std::int64_t int64() { return integer<std::int64_t>(); }
    double float64() { return std::bit_cast<double>(integer<std::uint64_t>()); }
    Uuid uuid();
    std::uint32_t unsigned_varint();

    // `compact`: the flexible encoding. `may_be_null`: whether this version allows null where the type can hold it.
    std::string string(bool compact);
    std::optional<std::string> nullable_string(bool compact, bool may_be_null);
    std::vector<std::byte> bytes(bool compact);
    std::optional<std::vector<std::byte>> nullable_bytes(bool compact, bool may_be_null);
    Records records(bool compact);
    std::optional<Records> nullable_records(bool compact, bool may_be_null);

    /// Of numbers, strings, uuids or structures.
    template <class T>
    void array(std::vector<T>& to, bool compact, std::int16_t version) {
        if (const auto n = array_length(compact, bytes_min<T>(), sizeof(T))) {
            elements(to, *n, compact, version);
        } else {
            refuse_null("array");
        }
    }
    template <class T>
    void nullable_array(std::optional<std::vector<T>>& to, bool compact, std::int16_t version, bool may_be_null) {
        if (const auto n = array_length(compact, bytes_min<T>(), sizeof(T))) {
            elements(to.emplace(), *n, compact, version);
        } else {
            to.reset();
            if (!may_be_null) refuse_null("array");
        }
    }

    /// The marker before a nullable structure. False: null.
    bool structure_follows();
    /// The same where the structure is the value of a tagged field.
    bool tagged_structure_follows();

    /// A structure's tagged section: tag_count(), then for each begin_tag(), its value, end_tag().
    struct Tag {
        std::uint32_t number = 0;
        const std::byte* outer_end = nullptr;  ///< where the reader's bytes end again after end_tag()
    };
    std::uint32_t tag_count();
    Tag begin_tag();
    void unknown_tag(const Tag&, UnknownTags& to);
    void end_tag(const Tag&);
    /// A whole section of which nothing is known.
    void unknown_tags(UnknownTags& to);

    /// Fails the whole, unless it has failed already.
    void fail(std::string what);

private:
    template <class T>
    T integer() {
        if (remaining() < sizeof(T)) {
            refuse_short(sizeof(T));
            return 0;
        }
        const T value = load_be<T>(at_);
        at_ += sizeof(T);
        return value;
    }
    template <class T>
    static constexpr std::size_t bytes_min() {
        if constexpr (std::is_arithmetic_v<T>) return sizeof(T);
        else if constexpr (std::is_same_v<T, std::string>) return 1;
        else if constexpr (std::is_same_v<T, Uuid>) return sizeof(Uuid);
        else return T::encoded_bytes_min;
    }
    template <class T>
    void elements(std::vector<T>& to, std::size_t n, bool compact, std::int16_t version) {
        to = std::vector<T>(n);
        for (auto& element : to) {
            if constexpr (std::is_arithmetic_v<T>) element = integer<T>();
            else if constexpr (std::is_same_v<T, std::string>) element = string(compact);
            else if constexpr (std::is_same_v<T, Uuid>) element = uuid();
            else {
                element.read(*this, version);
                if (failed_) return;
            }
        }
    }
    /// Nothing for null. Zero after a failure, so that nobody loops.
    std::optional<std::size_t> array_length(bool compact, std::size_t element_bytes_min, std::size_t element_size);
    /// The length of a string, bytes or records; nothing for null.
    std::optional<std::size_t> length(bool compact, bool short_length, const char* type);
    const std::byte* take(std::size_t n);
    void refuse_short(std::size_t wanted);
    void refuse_null(const char* type);

    const std::byte* at_;
    const std::byte* begin_;
    const std::byte* end_;
    std::size_t memory_left_;
    bool mutable_ = false;
    bool failed_ = false;
    std::string failure_;
};

/// What parse_into() returns before and after the message's own read().
Error no_such_version(const char* message, std::int16_t version);
Result<> outcome_of(const Reader& reader, const char* message, std::int16_t version);

/// parse() into a message that has its defaults.
template <class Message>
Result<> parse_into(Message& message, Reader& reader, std::int16_t version) {
    if (!Message::versions.contains(version)) return no_such_version(Message::message_name, version);
    message.read(reader, version);
    return outcome_of(reader, Message::message_name, version);
}

/// A message or record in the given version; the reader then stands behind it. Bytes may be left: a request's are
/// ignored, as Kafka does. Errors: unsupported (no such version), corrupt.
template <class Message>
Result<Message> parse(Reader& reader, std::int16_t version) {
    Message message;
    TM_TRYV(parse_into(message, reader, version));
    return message;
}

}  // namespace tidemark::protocol
