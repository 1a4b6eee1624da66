#include "storage/checkpoint.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "io/faulty_file_system.h"

namespace tidemark::storage {
namespace {

TEST(OffsetCheckpoint, IsWrittenAsKafkaWritesIt) {
    EXPECT_EQ(format_offset_checkpoint({{{"orders", 0}, Offset{4711}}, {{"orders", 1}, Offset{0}}}), "0\n2\norders 0 4711\norders 1 0\n");
    EXPECT_EQ(format_offset_checkpoint({}), "0\n0\n");
}

TEST(OffsetCheckpoint, ComesBack) {
    OffsetCheckpoint checkpoint;
    for (int i = 0; i < 1000; ++i) checkpoint[{"topic." + std::to_string(i % 7), i}] = Offset{std::int64_t{i} << 40};
    const auto parsed = parse_offset_checkpoint(format_offset_checkpoint(checkpoint));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, checkpoint);
}

TEST(OffsetCheckpoint, AnEmptyFileHasNoEntries) { EXPECT_THAT(parse_offset_checkpoint("").value(), testing::IsEmpty()); }

TEST(OffsetCheckpoint, RefusesWhatIsTornOrWrong) {
    for (const auto* text : {"1\n0\n", "0", "0\n", "0\nx\n", "0\n-1\n", "0\n1\n", "0\n1\norders 0\n", "0\n1\norders x 1\n", "0\n1\norders 0 x\n",
                             "0\n2\norders 0 1\n", "0\n1\norders 0 1\norders 1 1\n", "0\n1\n\norders 0 1\n", "0\n2\norders 0 1\norders 0 2\n",
                             "0\n1\norders 0 99999999999999999999\n", "\n"}) {
        const auto parsed = parse_offset_checkpoint(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, Errc::corrupt) << text;
    }
}

TEST(OffsetCheckpoint, IsOldOrNewAfterAPowerLossAtAnyStep) {
    const io::Path path = "/checkpoint";
    const OffsetCheckpoint before{{{"t", 0}, Offset{1}}}, after{{{"t", 0}, Offset{2}}, {{"u", 5}, Offset{3}}};
    for (int step = 0;; ++step) {
        io::FaultyFileSystem disk;
        ASSERT_TRUE(write_offset_checkpoint(disk, path, before));
        disk.inject({.lose_power_at = step});
        const bool written = write_offset_checkpoint(disk, path, after).has_value();
        if (!disk.tripped()) break;
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            auto restarted = disk.after_restart({.seed = seed});
            const auto read = read_offset_checkpoint(restarted, path);
            ASSERT_TRUE(read) << read.error().message();
            EXPECT_TRUE(*read == after || (!written && *read == before));
        }
    }
}

TEST(LeaderEpochFile, ComesBackAndRefusesWhatIsWrong) {
    const std::vector<EpochStart> entries{{0, Offset{0}}, {7, Offset{12}}};
    EXPECT_EQ(format_leader_epochs(entries), "0\n2\n0 0\n7 12\n");
    EXPECT_EQ(parse_leader_epochs("0\n2\n0 0\n7 12\n").value(), entries);
    EXPECT_THAT(parse_leader_epochs("").value(), testing::IsEmpty());
    for (const auto* text : {"0\n1\n", "0\n1\n-1 0\n", "0\n1\n1 -1\n", "0\n1\n1\n", "0\n1\n1 2 3\n"}) EXPECT_FALSE(parse_leader_epochs(text)) << text;
}

TEST(PartitionMetadata, IsFortyThreeBytes) {
    const auto id = Uuid::random();
    const auto text = format_partition_metadata(id);
    EXPECT_EQ(text.size(), 43u);
    EXPECT_EQ(parse_partition_metadata(text).value(), id);
    EXPECT_EQ(parse_partition_metadata(text + "\n").value(), id);
}

TEST(PartitionMetadata, RefusesTheZeroIdAndOtherVersions) {
    for (const auto& text : {std::string(), std::string("version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"), std::string("version: 0\n"),
                             std::string("version: 0\ntopic_id: short"), format_partition_metadata(Uuid{})}) {
        EXPECT_FALSE(parse_partition_metadata(text)) << text;
    }
}

TEST(MetaProperties, ReadsKafkasInAnyOrder) {
    const auto parsed = parse_meta_properties("#Mon Nov 30 09:00:00 UTC 2026\ndirectory.id=AAAAAAAAAAAAAAAAAAAABw\nnode.id=3\nversion=1\ncluster.id=abc\n");
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_EQ(parsed->cluster_id, "abc");
    EXPECT_EQ(parsed->node_id, 3);
    EXPECT_EQ(parsed->directory_id, Uuid::of(7));
    const auto again = parse_meta_properties(format_meta_properties(*parsed));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->cluster_id, "abc");
    EXPECT_EQ(again->directory_id, Uuid::of(7));
}

TEST(MetaProperties, OldOnesHaveABrokerId) {
    const auto parsed = parse_meta_properties("broker.id=2\n");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->version, 0);
    EXPECT_EQ(parsed->node_id, 2);
}

TEST(MetaProperties, RefusesWhatIsIncomplete) {
    for (const auto* text : {"version=1\n", "version=1\ncluster.id=a\n", "version=2\ncluster.id=a\nnode.id=1\n", "version=x\n",
                             "version=1\ncluster.id=a\nnode.id=one\n", "version=1\ncluster.id=a\nnode.id=1\ndirectory.id=?\n"}) {
        EXPECT_FALSE(parse_meta_properties(text)) << text;
    }
}

TEST(CleanShutdown, TellsTheBrokerEpoch) {
    EXPECT_EQ(format_clean_shutdown(42), "{\"version\":0,\"brokerEpoch\":42}");
    EXPECT_EQ(parse_clean_shutdown(format_clean_shutdown(42)), 42);
    EXPECT_EQ(parse_clean_shutdown("{\"version\":0,\"brokerEpoch\":-1,\"more\":[]}"), -1);
    EXPECT_EQ(parse_clean_shutdown(""), std::nullopt);
    EXPECT_EQ(parse_clean_shutdown("{}"), std::nullopt);
    EXPECT_EQ(parse_clean_shutdown("nonsense"), std::nullopt);
}

TEST(LeaderEpochs, AssignDropsWhatContradicts) {
    LeaderEpochs epochs;
    EXPECT_TRUE(epochs.assign(1, Offset{0}));
    EXPECT_FALSE(epochs.assign(1, Offset{5}));  // goes on
    EXPECT_TRUE(epochs.assign(3, Offset{10}));
    EXPECT_TRUE(epochs.assign(4, Offset{20}));
    EXPECT_TRUE(epochs.assign(2, Offset{10}));  // what began later, or at the same place, goes
    EXPECT_THAT(epochs.entries(), testing::ElementsAre(EpochStart{1, Offset{0}}, EpochStart{2, Offset{10}}));
}

TEST(LeaderEpochs, TruncatesFromBothEnds) {
    LeaderEpochs epochs({{1, Offset{0}}, {2, Offset{10}}, {3, Offset{20}}});
    EXPECT_FALSE(epochs.truncate_from_end(Offset{21}));
    EXPECT_TRUE(epochs.truncate_from_end(Offset{20}));
    EXPECT_FALSE(epochs.truncate_from_start(Offset{0}));
    EXPECT_TRUE(epochs.truncate_from_start(Offset{15}));
    EXPECT_THAT(epochs.entries(), testing::ElementsAre(EpochStart{2, Offset{15}}));
    EXPECT_FALSE(epochs.truncate_from_start(Offset{14}));
}

TEST(LeaderEpochs, SaysWhereAnEpochEnds) {
    const LeaderEpochs epochs({{1, Offset{5}}, {3, Offset{10}}, {6, Offset{20}}});
    const auto end = [&](LeaderEpoch epoch) { return epochs.end_of(epoch, Offset{30}); };
    EXPECT_EQ(end(6), (EpochEnd{6, Offset{30}}));
    EXPECT_EQ(end(3), (EpochEnd{3, Offset{20}}));
    EXPECT_EQ(end(4), (EpochEnd{3, Offset{20}}));
    EXPECT_EQ(end(0), (EpochEnd{0, Offset{5}}));
    EXPECT_EQ(end(7), EpochEnd{});
    EXPECT_EQ(end(-1), EpochEnd{});
    EXPECT_EQ(LeaderEpochs().end_of(0, Offset{1}), EpochEnd{});
    EXPECT_EQ(epochs.epoch_at(Offset{4}), std::nullopt);
    EXPECT_EQ(epochs.epoch_at(Offset{19}), 3);
}

}  // namespace
}  // namespace tidemark::storage
