#include "storage/directory_names.h"

#include <gmock/gmock.h>

namespace tidemark::storage {
namespace {

TEST(DirectoryNames, LiveOnesAreTopicDashPartition) {
    EXPECT_EQ(live_directory_name({"orders", 3}), "orders-3");
    const auto parsed = parse_directory_name("orders-3");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->partition, (TopicPartition{"orders", 3}));
    EXPECT_EQ(parsed->kind, DirectoryKind::live);
}

TEST(DirectoryNames, TheTopicMayHoldDashesAndDots) {
    const auto parsed = parse_directory_name("a.b-c-delete-12");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->partition, (TopicPartition{"a.b-c-delete", 12}));
    EXPECT_EQ(parsed->kind, DirectoryKind::live);
}

TEST(DirectoryNames, ThoseWithASuffixComeBack) {
    const TopicPartition partition{"a.b", 0};
    const auto id = Uuid::random();
    for (const auto& [name, kind] : {std::pair{deleted_directory_name(partition, id), DirectoryKind::deleted},
                                     std::pair{stray_directory_name(partition, id), DirectoryKind::stray},
                                     std::pair{future_directory_name(partition, id), DirectoryKind::future}}) {
        const auto parsed = parse_directory_name(name);
        ASSERT_TRUE(parsed) << name;
        EXPECT_EQ(parsed->partition, partition) << name;
        EXPECT_EQ(parsed->kind, kind) << name;
    }
}

TEST(DirectoryNames, ALongTopicIsCutSoThatItsDirectoryCanBeDeleted) {
    const TopicPartition partition{std::string(249, 'x'), 99};
    const auto name = deleted_directory_name(partition, Uuid::random());
    EXPECT_EQ(name.size(), 255u);
    EXPECT_THAT(name, testing::EndsWith("-delete"));
    const auto parsed = parse_directory_name(name);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->partition.partition, 99);
}

TEST(DirectoryNames, RefusesWhatIsNoPartition) {
    for (const auto* name : {"", "orders", "-1", "orders-", "orders-x", "orders--", "orders-1x", "a-0.-delete", "orders-0-delete", "lost+found",
                             "orders-99999999999"}) {
        EXPECT_FALSE(parse_directory_name(name)) << name;
    }
}

TEST(FileNames, AreTwentyDigitsAndAnExtension) {
    EXPECT_EQ(segment_file_name(Offset{42}, FileKind::time_index, FileSuffix::swap), "00000000000000000042.timeindex.swap");
    EXPECT_EQ(segment_file_name(Offset{0}, FileKind::log), "00000000000000000000.log");
    EXPECT_EQ(segment_file_name(Offset{std::numeric_limits<std::int64_t>::max()}, FileKind::snapshot), "09223372036854775807.snapshot");
}

TEST(FileNames, ComeBack) {
    for (const auto kind : {FileKind::log, FileKind::offset_index, FileKind::time_index, FileKind::transaction_index, FileKind::snapshot}) {
        for (const auto suffix : {FileSuffix::none, FileSuffix::cleaned, FileSuffix::swap, FileSuffix::deleted}) {
            const auto parsed = parse_file_name(segment_file_name(Offset{4711}, kind, suffix));
            EXPECT_EQ(parsed.kind, kind);
            EXPECT_EQ(parsed.suffix, suffix);
            EXPECT_EQ(parsed.offset, Offset{4711});
        }
    }
}

TEST(FileNames, OthersAreOthers) {
    for (const auto* name : {"leader-epoch-checkpoint", "partition.metadata", "00000000000000000000.log.damaged-17", "x.log", ".log", "-1.log"}) {
        EXPECT_EQ(parse_file_name(name).kind, FileKind::other) << name;
    }
    EXPECT_EQ(parse_file_name("anything.deleted").suffix, FileSuffix::deleted);
}

}  // namespace
}  // namespace tidemark::storage
