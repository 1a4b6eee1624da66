#include "storage/audit_trail.h"

#include <gmock/gmock.h>

#include "io/faulty_file_system.h"
#include "io/memory_file_system.h"

namespace tidemark::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string content(io::FileSystem& files, const io::Path& path) {
    const auto bytes = io::read_whole(files, path);
    return bytes ? std::string(as_text(*bytes)) : "missing";
}

DeletionEntry deletion(std::int64_t from) { return {.partition = {"orders", 3}, .from = Offset{from}, .to = Offset{from + 1}, .rule = "retention.ms"}; }

TEST(AuditTrail, WritesALinePerPassAndPerSegment) {
    ManualClock clock(Timestamp{5000});
    io::MemoryFileSystem files;
    AuditTrail trail(files, clock, {.path = "/trail"});
    trail.add(CleaningEntry{.partition = {"orders", 3}, .reason = "overdue", .began = Timestamp{4000}, .seconds = 0.25, .from = Offset{10}, .to = Offset{42}, .deadline = Timestamp{4500},
                            .bytes_before = 1000, .bytes_after = 300, .segments_before = 3, .segments_after = 1, .superseded = 7, .tombstones = 2, .expired = 1, .erased = 8, .keyless = 4, .markers = 5,
                            .aborted_batches = 6});
    clock.advance(std::chrono::milliseconds{1});
    trail.add(DeletionEntry{.partition = {"a.b", 0}, .from = Offset{0}, .to = Offset{10}, .bytes = 99, .records = 10, .rule = "retention.ms", .reason = "older than \"1000\"\n", .limit = 1000,
                            .largest_timestamp = Timestamp{3000}, .gone_at = Timestamp{65'001}});
    trail.add(deletion(7));
    EXPECT_EQ(content(files, "/trail"),
              R"({"time":5000,"event":"cleaned","topic":"orders","partition":3,"from":10,"to":42,"reason":"overdue","deadline":4500,"began":4000,"seconds":0.250,)"
              R"("bytes_before":1000,"bytes_after":300,"segments_before":3,"segments_after":1,"superseded":7,"tombstones":2,"expired":1,"erased":8,"keyless":4,"markers":5,"aborted_batches":6})" "\n"
              R"({"time":5001,"event":"deleted","topic":"a.b","partition":0,"from":0,"to":10,"bytes":99,"records":10,"rule":"retention.ms","reason":"older than \"1000\"\u000a",)"
              R"("limit":1000,"largest_timestamp":3000,"gone_at":65001})" "\n"
              R"({"time":5001,"event":"deleted","topic":"orders","partition":3,"from":7,"to":8,"bytes":0,"records":null,"rule":"retention.ms","reason":"",)"
              R"("limit":null,"largest_timestamp":null,"gone_at":null})" "\n");
}

TEST(AuditTrail, RotatesAndForgetsTheOldest) {
    ManualClock clock;
    io::MemoryFileSystem files;
    EXPECT_THAT(audit_trail_files(files, "/trail"), IsEmpty());
    std::string first_line;
    {
        AuditTrail trail(files, clock, {.path = "/trail", .bytes_max = 400, .files_max = 3});
        trail.add(deletion(1));
        first_line = content(files, "/trail");
        trail.add(deletion(2));
    }
    ASSERT_GT(2 * first_line.size() + first_line.size(), 400u) << "three lines are too many for a file";
    ASSERT_LE(2 * first_line.size(), 400u);
    // Another run goes on where the last one ended.
    AuditTrail trail(files, clock, {.path = "/trail", .bytes_max = 400, .files_max = 3});
    trail.add(deletion(3));
    EXPECT_THAT(audit_trail_files(files, "/trail"), ElementsAre("/trail.1", "/trail"));
    EXPECT_EQ(content(files, "/trail.1").substr(0, first_line.size()), first_line);
    for (int i = 4; i <= 9; ++i) trail.add(deletion(i));
    EXPECT_THAT(audit_trail_files(files, "/trail"), ElementsAre("/trail.2", "/trail.1", "/trail"));
    EXPECT_THAT(content(files, "/trail.2"), testing::StartsWith(R"({"time":)"));
    EXPECT_THAT(content(files, "/trail.2"), testing::HasSubstr(R"("from":5,)"));
    EXPECT_THAT(content(files, "/trail"), testing::HasSubstr(R"("from":9,)"));
}

TEST(AuditTrail, ADiskThatRefusesALineLeavesWholeLines) {
    ManualClock clock;
    io::FaultyFileSystem files{{.clock = &clock}};
    AuditTrail trail(files, clock, {.path = "/trail"});
    trail.add(deletion(1));
    const auto before = content(files, "/trail");
    files.inject({.fail_at = 0, .fault = io::Fault::no_space, .clock = &clock});
    trail.add(deletion(2));
    EXPECT_EQ(content(files, "/trail"), before);
    files.inject({.clock = &clock});
    trail.add(deletion(3));
    EXPECT_THAT(content(files, "/trail"), testing::StartsWith(before));
    EXPECT_THAT(content(files, "/trail"), testing::HasSubstr(R"("from":3,)"));
}

}  // namespace
}  // namespace tidemark::storage
