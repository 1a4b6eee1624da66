// Random batches through every codec and format, and random damage: what is read is what was written, or an error.
#include <random>

#include "record/filter.h"
#include "record/validation.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;

/// TIDEMARK_SEED repeats one run.
unsigned first_seed() {
    const char* const given = std::getenv("TIDEMARK_SEED");
    return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : 1;
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n)); }
    bool one_in(std::int64_t n) { return below(n) == 0; }
    std::string text(std::int64_t size_max) {
        std::string result(static_cast<std::size_t>(below(size_max + 1)), '\0');
        const auto letters = one_in(2) ? 256 : 4;
        for (char& c : result) c = static_cast<char>(below(letters));
        return result;
    }
    std::optional<std::string> maybe(std::int64_t size_max) { return one_in(6) ? std::nullopt : std::optional{text(size_max)}; }

private:
    std::mt19937_64 engine_;
};

std::vector<Rec> random_records(Random& random, std::int64_t base, std::int8_t magic, std::int64_t count_max = 1000) {
    std::vector<Rec> records(static_cast<std::size_t>(1 + random.below(random.one_in(5) ? count_max : 20)));
    const bool gaps = random.one_in(3);
    for (Rec& record : records) {
        if (gaps) base += random.below(5);
        record.offset = base++;
        record.timestamp = magic == 0 || random.one_in(10) ? -1 : 1'700'000'000'000 + random.below(100'000) - 50'000;
        record.key = random.maybe(30);
        record.value = random.maybe(random.one_in(20) ? 20'000 : 200);
        if (magic < 2) continue;
        for (auto n = random.one_in(2) ? 0 : random.below(4); n > 0; --n) record.headers.emplace_back(random.text(10), random.maybe(20));
    }
    return records;
}

BatchOptions random_options(Random& random) {
    BatchOptions options;
    options.magic = static_cast<std::int8_t>(random.one_in(3) ? random.below(2) : 2);
    options.codec = static_cast<Codec>(random.below(options.magic == 2 ? 5 : 4));
    options.base_offset = Offset{random.below(1'000'000)};
    if (options.magic == 2) {
        options.leader_epoch = static_cast<LeaderEpoch>(random.below(50)) - 1;
        if (random.one_in(2)) {
            options.producer_id = random.below(1000);
            options.producer_epoch = static_cast<ProducerEpoch>(random.below(100));
            options.base_sequence = random.one_in(3) ? 2147483647 - static_cast<Sequence>(random.below(10)) : static_cast<Sequence>(random.below(1000));
            options.transactional = random.one_in(2);
        }
        if (random.one_in(4)) options.delete_horizon = Timestamp{1'700'000'000'000 + random.below(1'000'000)};
    }
    return options;
}

/// What reading must give: with sequences filled in.
std::vector<Rec> as_read(std::vector<Rec> records, const BatchOptions& options) {
    for (Rec& record : records) {
        if (options.base_sequence >= 0) record.sequence = increment_sequence(options.base_sequence, static_cast<std::int32_t>(record.offset - options.base_offset.value));
    }
    return records;
}

TEST(Random, BatchesComeBack) {
    RecordReader reader;
    BatchBuilder builder;
    BatchFilter filter;
    for (unsigned seed = first_seed(), end = seed + 200; seed < end; ++seed) {
        SCOPED_TRACE("TIDEMARK_SEED=" + std::to_string(seed));
        Random random{seed};
        const BatchOptions options = random_options(random);
        auto records = random_records(random, options.base_offset.value, options.magic);
        if (options.magic < 2 && options.codec == Codec::none) records.resize(1);
        builder.start(options);
        for (const Rec& record : records) append(builder, record);
        Buffer bytes;
        builder.finish(bytes);
        const BatchView batch = view(bytes);
        ASSERT_TRUE(batch.crc_matches());
        ASSERT_EQ(batch.size(), bytes.size());
        ASSERT_EQ(batch.last_offset().value, records.back().offset);
        const auto expected = as_read(records, options);
        ASSERT_EQ(read_all(batch, reader).value(), expected);

        // The same records decide after a filter: kept ones are the same, in the same batch range.
        struct Coin final : RecordJudge {
            explicit Coin(unsigned s) : random(s) {}
            bool keeps(const BatchView&, const RecordView&) override { kept.push_back(random.below(3) > 0); return kept.back(); }
            Random random;
            std::vector<bool> kept;
        } coin{seed};
        Buffer filtered;
        const auto outcome = filter.filter(batch, {.now = Timestamp{5}, .delete_retention_ms = 5}, coin, filtered).value();
        std::vector<Rec> survivors;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (coin.kept[i]) survivors.push_back(expected[i]);
        }
        ASSERT_EQ(outcome.records_read, static_cast<std::int64_t>(expected.size()));
        ASSERT_EQ(outcome.records_kept, static_cast<std::int64_t>(survivors.size()));
        if (outcome.output == FilterOutcome::Output::rebuilt) {
            ASSERT_EQ(records_of(filtered), survivors);
            ASSERT_EQ(view(filtered).codec(), options.codec);
            ASSERT_EQ(view(filtered).last_sequence(), batch.last_sequence());
        } else {
            ASSERT_TRUE(filtered.empty());
            ASSERT_TRUE(survivors.empty() || survivors == expected);
        }
    }
}

TEST(Random, DamagedBatchesAreErrorsOrOtherRecordsButNeverMore) {
    RecordReader reader{{.record_bytes_max = 1 << 20}};
    Validator validator{{.record_bytes_max = 1 << 20}};
    int errors = 0, read = 0;
    for (unsigned seed = first_seed(), end = seed + 1500; seed < end; ++seed) {
        SCOPED_TRACE("TIDEMARK_SEED=" + std::to_string(seed));
        Random random{seed};
        BatchOptions options = random_options(random);
        const auto records = random_records(random, options.base_offset.value, options.magic, 50);
        Buffer bytes = build(options, records);
        const std::size_t changes = 1 + static_cast<std::size_t>(random.below(4));
        const std::size_t from = options.magic == 2 ? 21 : 17;
        for (std::size_t i = 0; i < changes; ++i) {
            const auto at = from + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bytes.size() - from)));
            bytes[at] = static_cast<std::byte>(random.one_in(3) ? 255 : random.below(256));
        }
        const auto parsed = BatchView::parse(bytes);
        ASSERT_TRUE(parsed) << "nothing of the prefix has changed";
        Buffer first(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(parsed->size()));
        fix_crc(first);
        const auto result = read_all(view(first), reader);
        ++(result ? read : errors);
        const auto info = analyze(first, {.origin = Origin::coordinator});
        if (info) (void)validator.validate(first, *info, {.origin = Origin::coordinator, .codec = static_cast<Codec>(random.below(5)), .now = Timestamp{1'700'000'000'000}});
    }
    EXPECT_GT(errors, 200);
    EXPECT_GT(read, 200);
}

}  // namespace
}  // namespace tidemark::record
