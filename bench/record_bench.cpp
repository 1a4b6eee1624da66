// The record layer's hot paths: CRC, walking records, validating a produce request, filtering for the cleaner.
//
// Read bytes_per_second as uncompressed record bytes (for the codecs too). What the machine allows: plain records are
// walked at about the speed of a varint per field, some 15 to 25 ns a record whatever its size, so 1 KiB records are
// bound by nothing but the CRC; compressed ones by their codec.
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "record/builder.h"
#include "record/filter.h"
#include "record/validation.h"

namespace tidemark::record {
namespace {

using Buffer = std::vector<std::byte>;

constexpr std::int64_t now = 1'700'000'000'000;

/// Compressible like JSON: words from a small vocabulary.
std::string value_of(std::mt19937& random, std::size_t size) {
    static constexpr const char* words[] = {"\"user\":", "\"id\":", "\"name\":", "order", "customer", "2024-01-", "true", "null", "{", "}", ","};
    std::string value;
    while (value.size() < size) {
        value += words[random() % std::size(words)];
        if (random() % 3 == 0) value += std::to_string(random() % 100000);
    }
    value.resize(size);
    return value;
}

Buffer batch_of(Codec codec, std::size_t value_bytes, std::size_t batch_bytes = 64 * 1024) {
    std::mt19937 random{7};
    BatchBuilder builder;
    builder.start({.codec = codec});
    for (std::int64_t offset = 0; builder.uncompressed_bytes() < batch_bytes; ++offset) {
        const std::string key = "key-" + std::to_string(random() % 10000);
        const std::string value = value_of(random, value_bytes);
        builder.append(Offset{offset}, Timestamp{now + offset % 50}, as_bytes(key), as_bytes(value));
    }
    Buffer bytes;
    builder.finish(bytes);
    return bytes;
}

std::int64_t plain_bytes(const Buffer& batch) {
    RecordReader reader;
    std::int64_t bytes = v2_header_bytes;
    if (!reader.open(BatchView::parse(batch).value())) return 0;
    while (const auto record = reader.next().value()) bytes += record->body_bytes + 2;
    return bytes;
}

void set_counts(benchmark::State& state, const Buffer& batch) {
    const auto records = *BatchView::parse(batch).value().record_count();
    state.SetBytesProcessed(state.iterations() * plain_bytes(batch));
    state.SetItemsProcessed(state.iterations() * records);
}

void crc(benchmark::State& state) {
    const Buffer batch = batch_of(Codec::none, 1000);
    const BatchView view = BatchView::parse(batch).value();
    for (auto _ : state) benchmark::DoNotOptimize(view.crc_matches());
    set_counts(state, batch);
}
BENCHMARK(crc);

void read_records(benchmark::State& state) {
    const Buffer batch = batch_of(static_cast<Codec>(state.range(0)), static_cast<std::size_t>(state.range(1)));
    const BatchView view = BatchView::parse(batch).value();
    RecordReader reader;
    for (auto _ : state) {
        if (!reader.open(view)) state.SkipWithError("open");
        while (const auto record = reader.next().value()) benchmark::DoNotOptimize(record->key);
    }
    set_counts(state, batch);
}
BENCHMARK(read_records)->ArgNames({"codec", "value"})->ArgsProduct({{0, 1, 2, 3, 4}, {100, 1000}});

void build_batch(benchmark::State& state) {
    const Buffer batch = batch_of(Codec::none, static_cast<std::size_t>(state.range(1)));
    const BatchView view = BatchView::parse(batch).value();
    RecordReader reader;
    BatchBuilder builder;
    Buffer out;
    for (auto _ : state) {
        builder.start({.codec = static_cast<Codec>(state.range(0))});
        if (!reader.open(view)) state.SkipWithError("open");
        while (const auto record = reader.next().value()) {
            builder.append(record->offset, record->timestamp, record->key, record->value);
        }
        out.clear();
        builder.finish(out);
        benchmark::DoNotOptimize(out.data());
    }
    set_counts(state, batch);
}
BENCHMARK(build_batch)->ArgNames({"codec", "value"})->ArgsProduct({{0, 1, 2, 3, 4}, {100, 1000}});

/// analyze, validate, assign: what a produce costs before the write. The CRC is part of it.
void validate_produce(benchmark::State& state) {
    Buffer batch = batch_of(static_cast<Codec>(state.range(0)), static_cast<std::size_t>(state.range(1)));
    const BatchView view = BatchView::parse(batch).value();
    Validator validator;
    for (auto _ : state) {
        in_place::set_base_offset(batch, Offset{0});
        const auto info = analyze(batch, {});
        auto validated = validator.validate(batch, *info, {.now = Timestamp{now}});
        if (!validated) state.SkipWithError("validate");
        assign_offsets(*validated, Offset{1'000'000}, 5);
        benchmark::DoNotOptimize(validated->bytes().data());
    }
    in_place::set_base_offset(batch, Offset{0});
    set_counts(state, batch);
    benchmark::DoNotOptimize(view);
}
BENCHMARK(validate_produce)->ArgNames({"codec", "value"})->ArgsProduct({{0, 1, 2, 3, 4}, {100, 1000}});

/// The cleaner on one batch: percent of records that stay.
void filter_batch(benchmark::State& state) {
    struct Judge final : RecordJudge {
        std::int64_t percent = 0;
        bool keeps(const BatchView&, const RecordView& record) override { return record.offset.value * 37 % 100 < percent; }
    } judge;
    judge.percent = state.range(1);
    const Buffer batch = batch_of(static_cast<Codec>(state.range(0)), 1000);
    const BatchView view = BatchView::parse(batch).value();
    BatchFilter filter;
    Buffer out;
    for (auto _ : state) {
        out.clear();
        const auto outcome = filter.filter(view, {.now = Timestamp{now}}, judge, out);
        if (!outcome) state.SkipWithError("filter");
        benchmark::DoNotOptimize(out.data());
    }
    set_counts(state, batch);
}
BENCHMARK(filter_batch)->ArgNames({"codec", "kept%"})->ArgsProduct({{0, 1, 2, 3, 4}, {0, 30, 100}});

}  // namespace
}  // namespace tidemark::record
