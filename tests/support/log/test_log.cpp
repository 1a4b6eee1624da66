#include "tests/support/log/test_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "record/control.h"
#include "storage/segment.h"
#include "storage/verify.h"

namespace tidemark::test {
namespace {

const TopicPartition partition{"t", 0};

std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> out;
    std::size_t at = 0;
    while (at < text.size()) {
        const auto begin = text.find_first_not_of(' ', at);
        if (begin == std::string_view::npos) break;
        // A batch in brackets is one word.
        const auto space = text.find(' ', begin), bracket = text.find('[', begin);
        at = bracket < space ? text.find(']', begin) + 1 : std::min(space, text.size());
        out.push_back(text.substr(begin, at - begin));
    }
    return out;
}

std::int64_t number(std::string_view text) {
    std::int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    EXPECT_TRUE(parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size()) << "not a number: " << text;
    return value;
}

std::string duration(std::int64_t ms) { return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms"; }

std::string shown(const std::optional<Bytes>& bytes, const char* missing) { return bytes ? std::string{as_text(*bytes)} : missing; }

cleaner::OffsetMap make_map(const TestLogOptions& options) {
    return {{.buffer_bytes = options.map_slots * cleaner::offset_map_slot_bytes, .load = options.map_load}, cleaner::HashKey{1, 2}};
}

/// Every batch of a segment, in order.
void for_each_batch(const storage::Segment& segment, const std::function<void(const record::BatchView&)>& visit) {
    const auto file = segment.file();
    ASSERT_TRUE(file) << file.error().message();
    std::vector<std::byte> bytes(static_cast<std::size_t>(segment.bytes()));
    ASSERT_TRUE((*file)->read(FilePosition{0}, bytes));
    record::BatchCursor cursor(bytes);
    for (;;) {
        const auto batch = cursor.next();
        ASSERT_TRUE(batch) << batch.error().message();
        if (!*batch) break;
        EXPECT_TRUE((*batch)->crc_matches());
        visit(**batch);
    }
    EXPECT_TRUE(cursor.rest().empty());
}

void for_each_record(const record::BatchView& batch, const std::function<void(const record::RecordView&)>& visit) {
    record::RecordReader reader;
    ASSERT_TRUE(reader.open(batch));
    for (;;) {
        const auto record = reader.next();
        ASSERT_TRUE(record) << record.error().message();
        if (!*record) break;
        visit(**record);
    }
}

}  // namespace

struct TestLog::Batch {
    struct Record {
        std::optional<std::string> key, value;
        Timestamp timestamp{};
    };
    std::vector<Record> records;
    ProducerId producer = no_producer_id;
    bool transactional = false;
};

TestLog::TestLog(TestLogOptions options)
    : own_clock_(options.clock ? nullptr : std::make_unique<ManualClock>()),
      own_files_(options.files ? nullptr : std::make_unique<io::MemoryFileSystem>(io::MemoryOptions{.clock = options.clock ? options.clock : own_clock_.get()})),
      clock(options.clock ? *options.clock : *own_clock_), disk(options.files ? *options.files : *own_files_), work{.map = make_map(options)}, options_(std::move(options)),
      throttle_(clock) {
    const auto opened = open(options_.clean_stop);
    EXPECT_TRUE(opened) << opened.error().message();
}

TestLog::~TestLog() {
    if (!log) return;
    const auto closed = log->close();
    log.reset();
    if (!closed) return;   // the disk had failed: what it holds is the test's business
    const auto findings = storage::verify_partition(disk, "/logs/t-0");
    EXPECT_TRUE(findings) << findings.error().message();
    if (!findings) return;
    for (const auto& finding : *findings) EXPECT_EQ(finding.kind, storage::Finding::Kind::leftover) << finding.text();
}

Result<> TestLog::open(bool clean) {
    TM_TRYV(io::create_directories(disk, "/logs"));
    storage::StorageOptions storage;
    storage.log_dirs = {"/logs"};
    directory_ = std::make_unique<storage::LogDirectory>(disk, clock, "/logs", storage);
    TM_TRY(const auto there, disk.status("/logs/t-0"));
    const storage::OpenLogOptions open_options{.partition = partition, .directory = "/logs/t-0", .config = std::make_shared<const storage::LogConfig>(options_.config), .clean = clean};
    TM_TRY(log, there ? storage::open_log(*directory_, open_options) : storage::create_log(*directory_, open_options, std::nullopt));
    return {};
}

void TestLog::reopen(bool clean) {
    if (clean) {
        const auto closed = log->close();
        ASSERT_TRUE(closed) << closed.error().message();
    }
    log.reset();
    directory_.reset();
    const auto opened = open(clean);
    ASSERT_TRUE(opened) << opened.error().message();
}

Result<> TestLog::append(std::string_view notation) {
    for (auto word : words(notation)) {
        if (word == "|") {
            TM_TRYV(log->roll());
            continue;
        }
        if (word.front() == '>') {
            next_offset_ = Offset{number(word.substr(1))};
            continue;
        }
        if ((word.front() == 'c' || word.front() == 'x') && word.size() > 1 && word.find('=') == std::string_view::npos) {
            TM_TRYV(append_marker(number(word.substr(1)), word.front() == 'c'));
            continue;
        }
        Batch batch;
        if (const auto colon = word.find(':'); colon != std::string_view::npos && (word.front() == 'p' || word.front() == 't')) {
            batch.producer = number(word.substr(1, colon - 1));
            batch.transactional = word.front() == 't';
            word.remove_prefix(colon + 1);
        }
        if (word.front() == '[') word = word.substr(1, word.size() - 2);
        for (const auto text : words(word)) {
            const auto equals = text.find('='), at = text.find('@');
            EXPECT_NE(equals, std::string_view::npos) << text;
            const auto key = text.substr(0, equals), value = text.substr(equals + 1, at == std::string_view::npos ? at : at - equals - 1);
            auto& record = batch.records.emplace_back();
            if (key != "_") record.key = key;
            if (value != "~") record.value = value;
            record.timestamp = at == std::string_view::npos ? clock.now() : Timestamp{number(text.substr(at + 1))};
        }
        TM_TRYV(append_batch(batch));
    }
    return {};
}

Result<> TestLog::append_batch(const Batch& batch) {
    const auto first = next_offset_.value_or(log->log_end_offset());
    const bool follows = next_offset_ || options_.magic < 2;
    next_offset_.reset();
    const auto count = static_cast<std::int32_t>(batch.records.size());
    record::BatchOptions o{.magic = options_.magic, .codec = options_.codec, .base_offset = follows ? first : Offset{0}, .leader_epoch = follows && options_.magic == 2 ? 0 : no_leader_epoch};
    if (batch.producer != no_producer_id) {
        if (!next_sequence_.contains(batch.producer)) {
            // What an earlier run of the log knows goes on.
            for (const auto& known : log->producers()) next_sequence_[known.producer_id] = record::increment_sequence(known.last_sequence, 1);
        }
        auto& next = next_sequence_[batch.producer];
        o.producer_id = batch.producer;
        o.producer_epoch = 0;
        o.base_sequence = next;
        o.transactional = batch.transactional;
        next = record::increment_sequence(next, count);
    }
    record::BatchBuilder builder;
    builder.start(o);
    auto offset = o.base_offset;
    for (const auto& r : batch.records) {
        builder.append(offset, r.timestamp, r.key ? std::optional{as_bytes(*r.key)} : std::nullopt, r.value ? std::optional{as_bytes(*r.value)} : std::nullopt);
        ++offset;
    }
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    // A client may not send records without a key to a compacted topic; a follower appends what there is.
    const bool keyless = std::ranges::any_of(batch.records, [](const Batch::Record& r) { return !r.key; });
    if (keyless && !follows) record::in_place::set_base_offset(bytes, first), record::in_place::set_leader_epoch(bytes, 0);
    return append_bytes(std::move(bytes), follows || keyless ? storage::Origin::replication : storage::Origin::client);
}

Result<> TestLog::append_marker(ProducerId producer, bool commit) {
    std::vector<std::byte> bytes;
    record::write_marker({.timestamp = clock.now(), .producer_id = producer, .producer_epoch = 0,
                          .marker = {.type = commit ? record::ControlType::commit : record::ControlType::abort}}, bytes);
    return append_bytes(std::move(bytes), storage::Origin::coordinator);
}

Result<> TestLog::append_bytes(std::vector<std::byte> bytes, storage::Origin origin) {
    TM_TRY(const auto info, log->append(bytes, {.origin = origin, .leader_epoch = 0}));
    (void)info;
    return {};
}

cleaner::CleaningDecision TestLog::decide() const {
    const auto state = cleaner::read_log_state(*log, checkpoint);
    EXPECT_TRUE(state) << state.error().message();
    return cleaner::decide(*state, *log->config(), clock.now(), 15'000, options_.differences);
}

Result<cleaner::PassStats> TestLog::run(const cleaner::PassRequest& request) {
    const cleaner::KeepGoing keep_going = [] { return Result<>{}; };
    return cleaner::run_pass(*log, request, {.buffer_bytes = options_.buffer_bytes, .differences = options_.differences}, work, throttle_, clock, keep_going);
}

Result<cleaner::PassStats> TestLog::clean() {
    TM_TRY(const auto state, cleaner::read_log_state(*log, checkpoint));
    const auto decision = cleaner::decide(state, *log->config(), clock.now(), 15'000, options_.differences);
    if (decision.cleanable_bytes == 0) return cleaner::PassStats{.end_offset = decision.first_dirty};
    TM_TRY(const auto stats, run({.first_dirty = decision.first_dirty, .cleanable_end = decision.cleanable_end}));
    checkpoint = stats.end_offset;
    return stats;
}

Result<cleaner::PassStats> TestLog::clean_horizons() {
    TM_TRY(const auto state, cleaner::read_log_state(*log, checkpoint));
    const auto decision = cleaner::decide(state, *log->config(), clock.now(), 15'000, options_.differences);
    return run({.first_dirty = decision.first_dirty, .cleanable_end = decision.cleanable_end, .horizons_only = true});
}

std::string TestLog::text() const {
    std::string out;
    for (const auto& segment : *log->segments()) {
        if (segment != log->segments()->front()) out += out.empty() || out.back() == ' ' ? "| " : " | ";
        bool first = true;
        for_each_batch(*segment, [&](const record::BatchView& batch) {
            const auto horizon = batch.delete_horizon() ? "@h" + duration(*batch.delete_horizon() - clock.now()) : "";
            const auto who = batch.has_producer_id() ? std::to_string(batch.producer_id()) : "";
            bool any = false;
            for_each_record(batch, [&](const record::RecordView& record) {
                any = true;
                if (!std::exchange(first, false)) out += " ";
                out += std::to_string(record.offset.value) + ":";
                if (batch.is_control()) out += (*record::control_type(record) == record::ControlType::commit ? "commit" : "abort") + who;
                else out += shown(record.key, "_") + "=" + shown(record.value, "~");
                out += horizon;
            });
            if (any) return;
            if (!std::exchange(first, false)) out += " ";
            out += std::to_string(batch.last_offset().value) + ":(" + (batch.is_control() ? "marker" : who.empty() ? "" : "p") + who + ")" + horizon;
        });
    }
    return out;
}

std::map<std::string, std::string> TestLog::committed() const {
    std::map<std::string, std::string> out;
    const auto aborted = log->aborted_between(Offset{0}, log->log_end_offset());
    for (const auto& segment : *log->segments()) {
        for_each_batch(*segment, [&](const record::BatchView& batch) {
            if (batch.is_control()) return;
            const bool gone = batch.is_transactional() && std::ranges::any_of(aborted, [&](const storage::AbortedTransaction& a) {
                return a.producer_id == batch.producer_id() && a.first_offset <= batch.base_offset() && batch.last_offset() < a.last_offset;
            });
            if (gone || batch.last_offset() >= log->last_stable_offset()) return;
            for_each_record(batch, [&](const record::RecordView& record) {
                if (!record.key) return;
                if (record.value) out[std::string{as_text(*record.key)}] = as_text(*record.value);
                else out.erase(std::string{as_text(*record.key)});
            });
        });
    }
    return out;
}

std::vector<std::string> TestLog::files() const {
    std::vector<std::string> out;
    for (const auto& entry : disk.list("/logs/t-0").value()) out.push_back(entry.name);
    return out;
}

void TestLog::set_config(const storage::LogConfig& config) {
    options_.config = config;
    log->set_config(std::make_shared<const storage::LogConfig>(config));
}

}  // namespace tidemark::test
