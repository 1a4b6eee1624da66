#include "tests/support/storage_log.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "record/control.h"
#include "storage/verify.h"

namespace tidemark::test {

using namespace storage;

namespace {

const io::Path directory_path = "/logs";
const TopicPartition partition{"t", 0};

std::string shown(const std::optional<Bytes>& bytes, std::string_view null) { return bytes ? std::string(as_text(*bytes)) : std::string(null); }

std::string horizon_text(std::int64_t ms) { return ms % 1000 == 0 ? fmt::format("@h{}s", ms / 1000) : fmt::format("@h{}ms", ms); }

std::string text_of_batch(const record::BatchView& batch, Timestamp start) {
    record::RecordReader reader;
    std::vector<std::string> records;
    EXPECT_TRUE(reader.open(batch));
    for (;;) {
        auto record = reader.next();
        EXPECT_TRUE(record) << record.error().message();
        if (!record || !*record) break;
        const auto& r = **record;
        if (batch.is_control()) {
            const auto type = record::control_type(r);
            const auto name = type && *type == record::ControlType::commit ? "commit" : type && *type == record::ControlType::abort ? "abort" : "control";
            records.push_back(fmt::format("{}:{}/{}", r.offset.value, name, batch.producer_id()));
        } else {
            records.push_back(fmt::format("{}:{}={}", r.offset.value, shown(r.key, "-"), shown(r.value, "~")));
        }
    }
    std::string text;
    if (records.empty()) text = fmt::format("[{}..{}]", batch.base_offset().value, batch.last_offset().value);
    else if (records.size() == 1 && batch.base_offset() == batch.last_offset()) text = records.front();
    else text = fmt::format("[{}]", fmt::join(records, " "));
    if (const auto horizon = batch.delete_horizon()) text += horizon_text(*horizon - start);
    return text;
}

}  // namespace

std::string text_of(Bytes batches, Timestamp start) {
    std::string text;
    record::BatchCursor cursor(batches);
    for (;;) {
        const auto batch = cursor.next();
        EXPECT_TRUE(batch) << batch.error().message();
        if (!batch || !*batch) return text;
        if (!text.empty()) text += ' ';
        text += text_of_batch(**batch, start);
    }
}

StorageLog::StorageLog(StorageLogOptions options) : start(clock.now()), options_(std::move(options)), files_(options_.files) {
    options_.config.delete_retention_ms = options_.delete_retention.count();
    options_.storage.reserve_bytes = 0;
    if (files_ == nullptr) {
        own_files_ = std::make_unique<io::MemoryFileSystem>(io::MemoryOptions{.clock = &clock});
        files_ = own_files_.get();
    }
    auto made = io::create_directories(*files_, directory_path);
    EXPECT_TRUE(made) << made.error().message();
    directory_ = std::make_unique<LogDirectory>(*files_, clock, directory_path, options_.storage);
    auto log = create_log(*directory_, {.partition = partition, .directory = path(), .config = std::make_shared<LogConfig>(options_.config)}, Uuid::of(7));
    EXPECT_TRUE(log) << log.error().message();
    log_ = log.value();
}

StorageLog::~StorageLog() {
    if (log_ == nullptr || !options_.verify_at_end) return;
    if (!directory_->is_offline()) {
        EXPECT_TRUE(log_->close());
    }
    const auto findings = verify_partition(*files_, path());
    EXPECT_TRUE(findings) << findings.error().message();
    if (!findings) return;
    for (const auto& finding : *findings) {
        if (finding.kind == Finding::Kind::fault) ADD_FAILURE() << finding.text();
    }
}

io::Path StorageLog::path() const { return io::join(directory_path, partition.text()); }

void StorageLog::open(bool clean, Offset recovery_point) {
    directory_ = std::make_unique<LogDirectory>(*files_, clock, directory_path, options_.storage);
    last_recovery = {};
    auto log = open_log(*directory_,
                        {.partition = partition,
                         .directory = path(),
                         .config = std::make_shared<LogConfig>(options_.config),
                         .recovery_point = recovery_point,
                         .clean = clean},
                        &last_recovery);
    ASSERT_TRUE(log) << log.error().message();
    log_ = *log;
}

void StorageLog::reopen() {
    ASSERT_TRUE(log_->close());
    log_.reset();
    open(true, {});
}

void StorageLog::open_again(bool clean) {
    log_.reset();
    open(clean, {});
}

void StorageLog::crash_and_reopen(Offset recovery_point) {
    log_.reset();
    open(false, recovery_point);
}

void StorageLog::set_config(const LogConfig& config) {
    options_.config = config;
    log_->set_config(std::make_shared<LogConfig>(config));
}

std::vector<StorageLog::Item> StorageLog::parse(std::string_view text, record::BatchOptions options) const {
    std::vector<Item> items;
    record::BatchBuilder builder;
    options.codec = options_.codec;
    bool in_batch = false;
    std::int32_t records = 0;
    const auto finish = [&] {
        Item item{.batch = {}, .records = records};
        builder.finish(item.batch);
        items.push_back(std::move(item));
        records = 0;
    };
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        auto word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        if (word == "|") {
            items.push_back({.roll = true, .batch = {}});
            continue;
        }
        if (word.starts_with('[')) {
            in_batch = true;
            word.remove_prefix(1);
            builder.start(options);
        } else if (!in_batch) {
            builder.start(options);
        }
        const bool last = !in_batch || word.ends_with(']');
        if (word.ends_with(']')) word.remove_suffix(1);
        auto timestamp = clock.now();
        if (const auto at = word.rfind('@'); at != std::string_view::npos) {
            timestamp = start + std::stoll(std::string(word.substr(at + 1)));
            word = word.substr(0, at);
        }
        const auto equals = word.find('=');
        const auto key = word.substr(0, equals);
        const auto value = equals == std::string_view::npos ? std::string_view("") : word.substr(equals + 1);
        builder.append(Offset{records++}, timestamp, key == "-" ? std::nullopt : std::optional(as_bytes(key)),
                       value == "~" ? std::nullopt : std::optional(as_bytes(value)));
        if (last) {
            in_batch = false;
            finish();
        }
    }
    return items;
}

void StorageLog::append_all(std::string_view text, record::BatchOptions options, Sequence* sequence) {
    // Each batch is made anew with its own base sequence: sequences are under the CRC.
    std::string rest(text);
    for (auto& item : parse(text, options)) {
        if (item.roll) {
            ASSERT_TRUE(log_->roll());
            continue;
        }
        if (sequence != nullptr) {
            store_be(item.batch.data() + 53, *sequence);
            record::in_place::set_max_timestamp(item.batch, record::TimestampType::log_append_time, Timestamp{0});  // brings the CRC up to date
            record::in_place::set_max_timestamp(item.batch, record::TimestampType::create_time, clock.now());
            *sequence = record::increment_sequence(*sequence, item.records);
        }
        auto appended = log_->append(item.batch, {.leader_epoch = 0});
        ASSERT_TRUE(appended) << appended.error().message();
    }
}

void StorageLog::append(std::string_view text) { append_all(text, {}, nullptr); }

void StorageLog::append_in_transaction(ProducerId id, std::string_view text, ProducerEpoch epoch) {
    auto& sequence = sequences_[{id, epoch}];
    append_all(text, {.producer_id = id, .producer_epoch = epoch, .base_sequence = 0, .transactional = true}, &sequence);
}

void StorageLog::append_as(ProducerId id, std::string_view text, ProducerEpoch epoch) {
    auto& sequence = sequences_[{id, epoch}];
    append_all(text, {.producer_id = id, .producer_epoch = epoch, .base_sequence = 0}, &sequence);
}

void StorageLog::mark(ProducerId id, ProducerEpoch epoch, record::ControlType type) {
    std::vector<std::byte> batch;
    record::write_marker({.timestamp = clock.now(), .producer_id = id, .producer_epoch = epoch, .marker = {.type = type}}, batch);
    auto appended = log_->append(batch, {.origin = Origin::coordinator, .leader_epoch = 0});
    ASSERT_TRUE(appended) << appended.error().message();
}

void StorageLog::commit(ProducerId id, ProducerEpoch epoch) { mark(id, epoch, record::ControlType::commit); }
void StorageLog::abort(ProducerId id, ProducerEpoch epoch) { mark(id, epoch, record::ControlType::abort); }

Result<AppendInfo> StorageLog::append_batch(std::vector<std::byte> batch) {
    return log_->append(batch, {.origin = Origin::replication, .leader_epoch = std::numeric_limits<LeaderEpoch>::max()});
}

Result<AppendInfo> StorageLog::append_as_client(std::vector<std::byte> batch) { return log_->append(batch, {.leader_epoch = 0}); }

std::string StorageLog::text() const {
    std::string text;
    const auto segments = log_->segments();
    for (const auto& segment : *segments) {
        if (segment != segments->front()) text += text.empty() || text.ends_with(' ') ? "| " : " | ";
        const auto file = segment->file();
        EXPECT_TRUE(file) << file.error().message();
        std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
        if (!file) continue;
        EXPECT_TRUE((*file)->read(FilePosition{0}, bytes));
        text += text_of(bytes, start);
    }
    while (text.ends_with(' ')) text.pop_back();
    return text;
}

std::string StorageLog::read(Offset from, Isolation isolation) const {
    std::string text;
    for (;;) {
        const auto slice = log_->read({.from = from, .bytes_max = 1 << 20, .isolation = isolation});
        EXPECT_TRUE(slice) << slice.error().message();
        if (!slice || slice->bytes == 0) return text;
        std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
        EXPECT_TRUE(slice->file->read(slice->position, bytes));
        if (!text.empty()) text += ' ';
        text += text_of(bytes, start);
        record::BatchCursor cursor(bytes);
        for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) from = (*batch)->next_offset();
    }
}

std::vector<std::string> StorageLog::file_names() const {
    std::vector<std::string> names;
    const auto entries = files_->list(path());
    EXPECT_TRUE(entries) << entries.error().message();
    if (!entries) return names;
    for (const auto& entry : *entries) names.push_back(entry.name);
    return names;
}

}  // namespace tidemark::test
