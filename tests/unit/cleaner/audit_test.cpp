#include "cleaner/audit.h"

#include <gmock/gmock.h>

#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using test::TestLog;
using test::TestLogOptions;

constexpr const char* directory = "/logs/t-0";
using Place = AuditTrace::Place;

class AuditTest : public testing::Test {
protected:
    AuditTest() {
        options_.config.max_compaction_lag_ms = 60'000;
        options_.config.file_delete_delay_ms = 10'000;
        log_ = std::make_unique<TestLog>(options_);
    }
    std::vector<AuditTrace> audit(std::vector<std::string> names, std::int64_t grace_ms = 0) {
        std::vector<std::vector<std::byte>> keys;
        for (const auto& name : names) keys.push_back(to_vector(as_bytes(name)));
        const AuditFacts facts{.config = log_->config(), .first_dirty = log_->checkpoint.value_or(Offset{0}), .now = log_->clock.now(), .grace_ms = grace_ms};
        auto traces = audit_partition(log_->disk, directory, keys, facts);
        EXPECT_TRUE(traces) << traces.error().message();
        return *std::move(traces);
    }
    void append(std::string_view text) {
        const auto done = log_->append(text);
        ASSERT_TRUE(done) << done.error().message();
    }
    Timestamp in(std::chrono::milliseconds time) const { return log_->clock.now() + time.count(); }

    TestLogOptions options_;
    std::unique_ptr<TestLog> log_;
};

TEST_F(AuditTest, ASupersededValueIsOwedALagAfterWhatSupersededIt) {
    append("k=1 x=1 |");
    log_->clock.advance(30s);
    append("k=2 | z=1");
    const auto superseded = in(0ms);
    auto traces = audit({"k"});
    ASSERT_EQ(traces.size(), 2u);
    EXPECT_EQ(traces[0].offset, Offset{0});
    EXPECT_EQ(traces[0].file, "/logs/t-0/00000000000000000000.log");
    EXPECT_EQ(traces[0].position, FilePosition{0});
    EXPECT_EQ(traces[0].rule, "compaction: superseded at offset 2");
    EXPECT_EQ(traces[0].due, superseded + 60'000);
    EXPECT_EQ(traces[0].gone, superseded + 70'000);
    EXPECT_FALSE(traces[0].stays);
    EXPECT_TRUE(traces[1].stays);
    EXPECT_EQ(traces[1].due, std::nullopt);

    log_->clock.advance(60s);
    EXPECT_FALSE(audit({"k"})[0].past_deadline) << "at the deadline itself";
    log_->clock.advance(1ms);
    EXPECT_TRUE(audit({"k"})[0].past_deadline);
    EXPECT_FALSE(audit({"k"}, 1)[0].past_deadline) << "within the grace";
    EXPECT_FALSE(audit({"k"})[1].past_deadline) << "what stays is never late";
    EXPECT_THAT(audit({"y"}), IsEmpty());
}

TEST_F(AuditTest, AfterAPassTheOldFileIsOwedTheDeleteDelay) {
    append("k=1 | k=2 | z=1");
    log_->clock.advance(1s);
    ASSERT_TRUE(log_->clean());
    auto traces = audit({"k"});
    ASSERT_EQ(traces.size(), 3u) << "the value that stays, and both in the old files";
    std::size_t deleted = 0;
    for (const auto& t : traces) {
        if (t.place != Place::deleted) continue;
        ++deleted;
        EXPECT_TRUE(t.file.ends_with(".log.deleted")) << t.file;
        EXPECT_LE(*t.gone, in(10s));
        EXPECT_FALSE(t.past_deadline);
    }
    EXPECT_EQ(deleted, 2u);
    log_->clock.advance(10'001ms);
    EXPECT_TRUE(std::ranges::any_of(audit({"k"}), &AuditTrace::past_deadline)) << "nobody unlinked them";
    log_->run_background();
    traces = audit({"k"});
    ASSERT_EQ(traces.size(), 1u);
    EXPECT_TRUE(traces[0].stays);
    EXPECT_TRUE(traces[0].is_clean);
    EXPECT_EQ(traces[0].place, Place::live);
}

TEST_F(AuditTest, ATombstoneMakesTheValueLateNotItself) {
    append("k=1 | k=~ | z=1");
    log_->clock.advance(61s);
    const auto traces = audit({"k"});
    ASSERT_EQ(traces.size(), 2u);
    EXPECT_TRUE(traces[0].past_deadline);
    EXPECT_TRUE(traces[1].is_tombstone);
    EXPECT_FALSE(traces[1].past_deadline);
    EXPECT_THAT(traces[1].rule, testing::HasSubstr("delete.retention.ms"));
}

TEST_F(AuditTest, AnOpenTransactionHolds) {
    append("k=1 | t1:a=1 | k=2 | z=1");
    log_->clock.advance(61s);
    auto traces = audit({"k", "a"});
    ASSERT_EQ(traces.size(), 3u);
    EXPECT_EQ(traces[0].held_by, "an open transaction");
    EXPECT_FALSE(traces[0].past_deadline);
    EXPECT_TRUE(traces[1].stays);
    EXPECT_EQ(traces[1].key, 1u);
    append("x1");
    traces = audit({"k", "a"});
    EXPECT_EQ(traces[0].held_by, "");
    EXPECT_TRUE(traces[0].past_deadline);
    EXPECT_EQ(traces[1].rule, "compaction: its transaction was aborted");
}

TEST_F(AuditTest, AnAbortedValueSupersedesNothing) {
    append("k=1 t1:k=2 x1 | z=1");
    const auto traces = audit({"k"});
    ASSERT_EQ(traces.size(), 2u);
    EXPECT_TRUE(traces[0].stays);
    EXPECT_FALSE(traces[1].stays);
}

TEST_F(AuditTest, LooksIntoWhatIsLeftOver) {
    append("k=1 z=1");
    const auto content = io::read_whole(log_->disk, "/logs/t-0/00000000000000000000.log").value();
    for (const auto* name : {"00000000000000000000.log.cleaned", "00000000000000000000.log.swap", "00000000000000000000.log.damaged-1700000000000"}) {
        const auto file = log_->disk.open(io::join(directory, name), io::OpenMode::create).value();
        ASSERT_TRUE(file->write(FilePosition{0}, content));
    }
    log_->clock.advance(10min);
    const auto traces = audit({"k"});
    ASSERT_EQ(traces.size(), 4u);
    EXPECT_EQ(traces[0].place, Place::live);
    EXPECT_EQ(traces[1].place, Place::leftover);
    EXPECT_EQ(traces[2].place, Place::damaged);
    EXPECT_THAT(traces[2].rule, testing::HasSubstr("tidemark repair"));
    EXPECT_EQ(traces[3].place, Place::leftover);
    for (const auto& t : traces) EXPECT_FALSE(t.past_deadline) << t.file;
    for (const auto* name : {"00000000000000000000.log.cleaned", "00000000000000000000.log.swap", "00000000000000000000.log.damaged-1700000000000"}) ASSERT_TRUE(log_->disk.remove(io::join(directory, name)));
}

TEST_F(AuditTest, AFileWithoutANameIsOwedTheDelayToo) {
    append("k=1");
    const auto file = log_->disk.open("/logs/t-0/00000000000000000000.log", io::OpenMode::read).value();
    const std::vector<std::vector<std::byte>> keys{to_vector(as_bytes("k"))};
    const auto unlinked_at = in(0ms);
    auto traces = audit_unlinked(*file, "x.log", keys, unlinked_at, {.config = log_->config(), .now = in(10s)}).value();
    ASSERT_EQ(traces.size(), 1u);
    EXPECT_EQ(traces[0].gone, unlinked_at + 10'000);
    EXPECT_FALSE(traces[0].past_deadline);
    traces = audit_unlinked(*file, "x.log", keys, unlinked_at, {.config = log_->config(), .now = in(10'001ms)}).value();
    EXPECT_TRUE(traces[0].past_deadline);
}

TEST_F(AuditTest, WithoutAFiniteLagThereIsNoDeadline) {
    auto config = log_->config();
    config.max_compaction_lag_ms = storage::unlimited;
    log_->set_config(config);
    append("k=1 | k=2 | z=1");
    log_->clock.advance(24h * 365);
    const auto traces = audit({"k"});
    EXPECT_EQ(traces[0].due, std::nullopt);
    EXPECT_FALSE(traces[0].past_deadline);
    config.compacts = false;
    config.deletes = true;
    config.retention_ms = 1000;
    log_->set_config(config);
    for (const auto& t : audit({"k"})) {
        EXPECT_EQ(t.rule, "retention.ms, with its segment");
        EXPECT_TRUE(t.past_deadline);
    }
}

}  // namespace
}  // namespace tidemark::cleaner
