#include <gtest/gtest.h>

#include "coordinator/group/consumer/metadata_hash.h"

namespace tidemark::coordinator {
namespace {

TopicFacts data() { return {*Uuid::parse("MNvJkvbERlSEVgWK2Jdc3A"), "data", {{}, {}, {}, {}}}; }

TEST(MetadataHash, IsKafkasOfTheTopicData) {
    EXPECT_EQ(topic_hash(data()), 306473199005743794);
    EXPECT_EQ(group_hash(std::vector{topic_hash(data())}), -2163788142491943828);
}

TEST(MetadataHash, IsZeroWithoutTopics) { EXPECT_EQ(group_hash({}), 0); }

TEST(MetadataHash, IsKafkasOfTwoTopics) {
    // Golden group c-reconciling: "data" with four partitions, "other" with one.
    const TopicFacts other{*Uuid::parse("K9rH_xM5TGO7t4WVgj7zhw"), "other", {{}}};
    EXPECT_EQ(group_hash(std::vector{topic_hash(data()), topic_hash(other)}), -6536629402804678483);
}

TEST(MetadataHash, SeesEveryFact) {
    const auto reference = topic_hash(data());
    auto changed = data();
    changed.id.bytes[15] ^= std::byte{1};
    EXPECT_NE(topic_hash(changed), reference);
    changed = data();
    changed.name = "dato";
    EXPECT_NE(topic_hash(changed), reference);
    changed = data();
    changed.racks.emplace_back();
    EXPECT_NE(topic_hash(changed), reference);
    changed = data();
    changed.racks[1] = {"a"};
    const auto in_partition_1 = topic_hash(changed);
    EXPECT_NE(in_partition_1, reference);
    changed.racks = {{}, {}, {"a"}, {}};
    EXPECT_NE(topic_hash(changed), in_partition_1);
}

}  // namespace
}  // namespace tidemark::coordinator
