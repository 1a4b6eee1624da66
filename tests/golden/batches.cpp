#include "tests/golden/batches.h"

#include <zlib.h>

#include <boost/beast/core/detail/base64.hpp>

#include "base/bytes.h"
#include "record/builder.h"
#include "record/control.h"
#include "tests/golden/golden_case.h"

namespace tidemark::golden {
namespace {

using OptionalBytes = std::optional<std::vector<std::byte>>;

std::vector<std::byte> bytes_of(std::string_view text) { return to_vector(as_bytes(text)); }

std::vector<std::byte> from_base64(std::string_view text) {
    namespace base64 = boost::beast::detail::base64;
    std::vector<std::byte> out(base64::decoded_size(text.size()));
    out.resize(base64::decode(out.data(), text.data(), text.size()).first);
    return out;
}

std::int64_t number_or(const json::object& object, const char* key, std::int64_t otherwise) { return number_or_null(object, key).value_or(otherwise); }

bool is_true(const json::object& object, const char* key) {
    const auto* value = object.if_contains(key);
    return value != nullptr && value->as_bool();
}

std::string_view text_or(const json::object& object, const char* key, std::string_view otherwise) {
    const auto* value = object.if_contains(key);
    return value == nullptr ? otherwise : std::string_view{value->as_string()};
}

/// The fixed generator of `vfill`.
std::vector<std::byte> filler(std::int64_t seed, std::size_t n) {
    std::vector<std::byte> out(n);
    auto x = static_cast<std::uint64_t>(seed) * 0x9E3779B97F4A7C15ULL + 0x1234567ULL;
    for (auto& b : out) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        b = static_cast<std::byte>('!' + (x >> 40) % 90);
    }
    return out;
}

/// `k`, `k64` or `kfill`.
OptionalBytes content(const json::object& record, const std::string& name) {
    const auto given = [&](const std::string& key) {
        const auto* value = record.if_contains(key);
        return value == nullptr || value->is_null() ? nullptr : value;
    };
    if (const auto* text = given(name)) return bytes_of(text->as_string());
    if (const auto* text = given(name + "64")) return from_base64(text->as_string());
    if (const auto* fill = given(name + "fill")) return filler(number(fill->at(0)), static_cast<std::size_t>(number(fill->at(1))));
    return std::nullopt;
}

std::optional<Bytes> view(const OptionalBytes& bytes) { return bytes ? std::optional<Bytes>{*bytes} : std::nullopt; }

struct Record {
    Offset offset{};
    Timestamp timestamp{};
    OptionalBytes key, value;
    std::vector<record::Header> headers;
};

std::vector<Record> generated(const json::object& gen, const BatchPlace& place) {
    std::vector<Record> out;
    const auto count = number(gen.at("count")), keys = number_or(gen, "keys", count), first = number_or(gen, "first", 0);
    for (std::int64_t i = 0; i < count; ++i) {
        out.push_back({.offset = place.base + i,
                       .timestamp = place.now + i * number_or(gen, "step", 0),
                       .key = bytes_of(fmt::format("{}{:04d}", text_or(gen, "prefix", "key-"), first + i % keys)),
                       .value = filler(number_or(gen, "seed", 0) + i, static_cast<std::size_t>(number_or(gen, "vsize", 16))),
                       .headers = {}});
    }
    return out;
}

std::vector<Record> records_of(const json::object& batch, const BatchPlace& place) {
    std::vector<Record> out;
    if (const auto* gen = batch.if_contains("gen")) out = generated(gen->as_object(), place);
    auto next = out.empty() ? place.base : out.back().offset + 1;
    const auto* listed = batch.if_contains("records");
    if (listed == nullptr) return out;
    for (const auto& item : listed->as_array()) {
        const auto& r = item.as_object();
        if (const auto offset = number_or_null(r, "offset")) next = Offset{*offset};
        Record record{.offset = next, .timestamp = Timestamp{number_or(r, "ts", place.now.value + number_or(r, "dt", 0))}, .key = content(r, "k"), .value = content(r, "v"), .headers = {}};
        if (const auto* headers = r.if_contains("h")) {
            for (const auto& h : headers->as_array()) {
                record.headers.push_back({std::string{h.at(0).as_string()}, h.at(1).is_null() ? std::nullopt : OptionalBytes{bytes_of(h.at(1).as_string())}});
            }
        }
        out.push_back(std::move(record));
        ++next;
    }
    return out;
}

/// A header without records, as the cleaner leaves it for a producer's last sequence.
std::vector<std::byte> empty_batch(const json::object& of, const BatchPlace& place) {
    record::BatchBuilder builder;
    builder.start({.base_offset = place.base,
                   .leader_epoch = place.leader_epoch,
                   .producer_id = number(of.at("pid")),
                   .producer_epoch = static_cast<ProducerEpoch>(number_or(of, "epoch", 0)),
                   .base_sequence = static_cast<Sequence>(number_or(of, "seq", 0)),
                   .transactional = is_true(of, "txn"),
                   .control = is_true(of, "control"),
                   .last_offset = Offset{number_or(of, "lastOffset", place.base.value)}});
    builder.append(place.base, Timestamp{number_or(of, "ts", place.now.value)}, std::nullopt, std::nullopt);
    std::vector<std::byte> full, empty;
    builder.finish(full);
    record::write_empty_batch(must(record::BatchView::parse(full)), empty);
    return empty;
}

}  // namespace

record::Codec codec_of(std::string_view name) {
    if (name == "none") return record::Codec::none;
    if (name == "gzip") return record::Codec::gzip;
    if (name == "snappy") return record::Codec::snappy;
    if (name == "lz4") return record::Codec::lz4;
    if (name == "zstd") return record::Codec::zstd;
    throw std::runtime_error("unknown codec " + std::string{name});
}

std::vector<std::byte> build_marker(const json::object& marker, const BatchPlace& place) {
    std::vector<std::byte> out;
    record::write_marker({.offset = place.base,
                          .timestamp = Timestamp{number_or(marker, "ts", place.now.value + number_or(marker, "dt", 0))},
                          .leader_epoch = place.leader_epoch,
                          .producer_id = number(marker.at("pid")),
                          .producer_epoch = static_cast<ProducerEpoch>(number_or(marker, "epoch", 0)),
                          .marker = {.type = is_true(marker, "commit") ? record::ControlType::commit : record::ControlType::abort,
                                     .coordinator_epoch = static_cast<std::int32_t>(number_or(marker, "coordinatorEpoch", 0))}},
                         out);
    return out;
}

std::vector<std::byte> build_batch(const json::object& batch, const BatchPlace& otherwise) {
    const BatchPlace place{.now = otherwise.now,
                           .base = Offset{number_or(batch, "baseOffset", otherwise.base.value)},
                           .leader_epoch = static_cast<LeaderEpoch>(number_or(batch, "leaderEpoch", otherwise.leader_epoch))};
    if (const auto* marker = batch.if_contains("marker")) return build_marker(marker->as_object(), place);
    if (const auto* of = batch.if_contains("emptyOf")) return empty_batch(of->as_object(), place);
    record::BatchOptions options{.magic = static_cast<std::int8_t>(number_or(batch, "magic", 2)),
                                 .codec = codec_of(text_or(batch, "codec", "none")),
                                 .base_offset = place.base,
                                 .leader_epoch = place.leader_epoch,
                                 .producer_id = number_or(batch, "pid", no_producer_id),
                                 .producer_epoch = static_cast<ProducerEpoch>(number_or(batch, "epoch", -1)),
                                 .base_sequence = static_cast<Sequence>(number_or(batch, "seq", -1)),
                                 .transactional = is_true(batch, "txn")};
    if (const auto level = number_or_null(batch, "level")) options.level = static_cast<int>(*level);
    if (const auto horizon = number_or_null(batch, "deleteHorizonMs")) options.delete_horizon = Timestamp{*horizon};
    if (const auto last = number_or_null(batch, "lastOffset")) options.last_offset = Offset{*last};
    if (options.magic > 0 && text_or(batch, "timestampType", "CreateTime") == "LogAppendTime") {
        options.timestamp_type = record::TimestampType::log_append_time;
        options.log_append_time = Timestamp{number_or(batch, "logAppendTime", place.now.value)};
    }
    record::BatchBuilder builder;
    builder.start(options);
    for (const auto& r : records_of(batch, place)) builder.append(r.offset, options.magic == 0 ? no_timestamp : r.timestamp, view(r.key), view(r.value), r.headers);
    std::vector<std::byte> out;
    builder.finish(out);
    return out;
}

void set_append_time(MutableBytes messages, Timestamp now) {
    for (std::size_t at = 0; at < messages.size();) {
        const auto message = messages.subspan(at, must(record::BatchView::parse(messages.subspan(at))).size());
        at += message.size();
        if (message[16] != std::byte{1}) continue;
        message[17] |= std::byte{record::attribute::log_append_time};
        store_be(message.data() + 18, now.value);
        const auto covered = message.subspan(16);
        store_be(message.data() + 12, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const unsigned char*>(covered.data()), static_cast<unsigned>(covered.size()))));
    }
}

}  // namespace tidemark::golden
