#include "tests/support/protocol/random_message.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <stdexcept>

#include "base/bytes.h"

namespace tidemark::protocol {
namespace {

using schema::Field;
using Kind = RandomMessage::Length::Kind;

class Generator {
public:
    Generator(const schema::Message& message, std::int16_t version, Random& random)
        : message_(message), version_(version), flexible_(message.flexible.contains(version)), random_(random) {}

    RandomMessage message() {
        structure(message_.fields);
        return std::move(out_);
    }

private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

    template <class T>
    void put(T value) { append_be(out_.bytes, value); }

    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_.bytes.push_back(static_cast<std::byte>(value | 0x80));
        out_.bytes.push_back(static_cast<std::byte>(value));
    }

    /// `n` is -1 for null.
    void length(std::int64_t n, bool compact, Kind kind) {
        const auto at = out_.bytes.size();
        if (compact) varint(static_cast<std::uint64_t>(n + 1));
        else if (kind == Kind::int16) put(static_cast<std::int16_t>(n));
        else put(static_cast<std::int32_t>(n));
        out_.lengths.push_back({at, out_.bytes.size() - at, compact ? Kind::varint : kind});
    }

    /// Mostly short; sometimes where the length's own encoding grows.
    std::size_t some_size() {
        constexpr std::size_t edges[] = {126, 127, 128, 129, 300};
        if (one_in(40)) return edges[below(std::size(edges))];
        return one_in(4) ? 0 : below(12);
    }

    template <class T>
    T some_integer() {
        switch (below(5)) {
            case 0: return 0;
            case 1: return static_cast<T>(-1);
            case 2: return std::numeric_limits<T>::max();
            case 3: return static_cast<T>(below(100));
            default: return static_cast<T>(random_());
        }
    }

    std::string some_text(std::size_t size) {
        static constexpr std::string_view pieces[] = {"a", "Z", "0", "-", ".", "é", "水", "🌊"};
        std::string text;
        while (text.size() < size) {
            const auto piece = pieces[below(std::size(pieces))];
            text += text.size() + piece.size() <= size ? piece : "x";
        }
        return text;
    }

    void structure(const std::vector<Field>& fields) {
        for (const auto& field : fields) {
            if (field.versions.contains(version_) && !(field.tag && field.tagged.contains(version_))) value(field, false);
        }
        if (flexible_) tags(fields);
    }

    void default_structure(const std::vector<Field>& fields) {
        for (const auto& field : fields) {
            if (field.versions.contains(version_) && !(field.tag && field.tagged.contains(version_))) default_value(field, false);
        }
        if (flexible_) varint(0);
    }

    bool may_be_null(const Field& field) const { return field.null.contains(version_); }

    void value(const Field& field, bool tagged) {
        const bool compact = flexible_ && !field.is_inflexible;
        const bool null = may_be_null(field) && one_in(4);
        if (field.is_array) {
            if (null) return length(-1, compact, Kind::int32);
            const auto n = one_in(3) ? 0 : 1 + below(message_.structure(field.type) ? 2 : 4);
            length(static_cast<std::int64_t>(n), compact, Kind::int32);
            for (std::uint64_t i = 0; i < n; ++i) element(field, compact);
        } else if (const auto* members = message_.structure(field.type)) {
            if (field_is_nullable(field)) marker(!null, tagged);
            if (!null) structure(*members);
        } else if (null) {
            length(-1, compact, field.type == "string" ? Kind::int16 : Kind::int32);
        } else {
            element(field, compact);
        }
    }

    static bool field_is_nullable(const Field& field) { return !field.null.empty(); }

    void marker(bool follows, bool tagged) {
        if (tagged) varint(follows ? 1 : 0);
        else put(static_cast<std::int8_t>(follows ? 1 : -1));
    }

    void element(const Field& field, bool compact) {
        const auto& type = field.type;
        if (const auto* members = message_.structure(type)) return structure(*members);
        if (type == "bool") return put(static_cast<std::int8_t>(below(2)));
        if (type == "int8") return put(some_integer<std::int8_t>());
        if (type == "int16") return put(some_integer<std::int16_t>());
        if (type == "uint16") return put(some_integer<std::uint16_t>());
        if (type == "int32") return put(some_integer<std::int32_t>());
        if (type == "int64") return put(some_integer<std::int64_t>());
        if (type == "float64") return put(std::bit_cast<std::uint64_t>(static_cast<double>(some_integer<std::int32_t>()) / 7));
        if (type == "uuid") {
            put(one_in(3) ? 0 : random_());
            return put(random_());
        }
        const auto size = some_size();
        if (type == "string") {
            length(static_cast<std::int64_t>(size), compact, Kind::int16);
            return append_bytes(out_.bytes, as_bytes(some_text(size)));
        }
        if (type == "bytes" || type == "records") {
            length(static_cast<std::int64_t>(size), compact, Kind::int32);
            for (std::size_t i = 0; i < size; ++i) out_.bytes.push_back(static_cast<std::byte>(random_()));
            return;
        }
        throw std::runtime_error("no such type: " + type);
    }

    void default_value(const Field& field, bool tagged) {
        const bool compact = flexible_ && !field.is_inflexible;
        const bool null = field.default_value == "null";
        if (field.is_array) return length(null ? -1 : 0, compact, Kind::int32);
        if (const auto* members = message_.structure(field.type)) {
            if (field_is_nullable(field)) marker(!null, tagged);
            if (!null) default_structure(*members);
            return;
        }
        const auto& type = field.type;
        const auto number = !field.default_value || null || type == "bool" ? 0 : std::stoll(*field.default_value);
        if (type == "bool") return put(static_cast<std::int8_t>(field.default_value == "true"));
        if (type == "int8") return put(static_cast<std::int8_t>(number));
        if (type == "int16") return put(static_cast<std::int16_t>(number));
        if (type == "uint16") return put(static_cast<std::uint16_t>(number));
        if (type == "int32") return put(static_cast<std::int32_t>(number));
        if (type == "int64" || type == "float64") return put(static_cast<std::int64_t>(number));
        if (type == "uuid") {
            put(std::int64_t{0});
            return put(std::int64_t{0});
        }
        length(null ? -1 : 0, compact, type == "string" ? Kind::int16 : Kind::int32);
    }

    /// What `make` appends, taken out again.
    RandomMessage apart(const std::function<void()>& make) {
        std::swap(out_, aside_.emplace_back());
        make();
        std::swap(out_, aside_.back());
        auto made = std::move(aside_.back());
        aside_.pop_back();
        return made;
    }

    void tags(const std::vector<Field>& fields) {
        std::map<std::uint32_t, RandomMessage> values;
        for (const auto& field : fields) {
            if (!field.tag || !field.tagged.contains(version_) || one_in(2)) continue;
            auto made = apart([&] { value(field, true); });
            if (made.bytes != apart([&] { default_value(field, true); }).bytes) values[*field.tag] = std::move(made);
        }
        if (one_in(5)) {
            for (auto n = 1 + below(3); n > 0; --n) {
                const auto number = static_cast<std::uint32_t>(one_in(3) ? below(1u << 31) : below(12));
                if (std::ranges::any_of(fields, [&](const auto& field) { return field.tag == number; })) continue;
                values[number] = apart([&] {
                    for (auto size = some_size(); size > 0; --size) out_.bytes.push_back(static_cast<std::byte>(random_()));
                });
            }
        }
        auto at = out_.bytes.size();
        varint(values.size());
        out_.lengths.push_back({at, out_.bytes.size() - at, Kind::varint});
        for (const auto& [number, made] : values) {
            varint(number);
            at = out_.bytes.size();
            varint(made.bytes.size());
            out_.lengths.push_back({at, out_.bytes.size() - at, Kind::varint});
            for (auto length : made.lengths) {
                length.at += out_.bytes.size();
                out_.lengths.push_back(length);
            }
            append_bytes(out_.bytes, made.bytes);
        }
    }

    const schema::Message& message_;
    const std::int16_t version_;
    const bool flexible_;
    Random& random_;
    RandomMessage out_;
    std::vector<RandomMessage> aside_;
};

}  // namespace

RandomMessage random_message(const schema::Message& message, std::int16_t version, Random& random) {
    return Generator(message, version, random).message();
}

}  // namespace tidemark::protocol
