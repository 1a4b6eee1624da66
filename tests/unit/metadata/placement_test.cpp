#include "metadata/placement.h"

#include <gmock/gmock.h>

namespace tidemark::metadata {
namespace {

using Verdict = Placement::Verdict;
using testing::HasSubstr;

const Uuid topic_id = Uuid::of(50), directory = Uuid::of(9);

Image image_with(const std::vector<std::int32_t>& replicas, const std::vector<Uuid>& directories) {
    auto topic = std::make_shared<Topic>();
    topic->name = "t";
    topic->id = topic_id;
    topic->partitions[0].replicas = replicas;
    topic->partitions[0].directories = directories;
    Image image;
    image.topics["t"] = topic;
    image.topics_by_id[topic_id] = topic;
    return image;
}

TEST(Placement, OfWhatIsFound) {
    const Image image = image_with({1}, {directory});
    EXPECT_EQ(place(image, 1, {"t", 0}, topic_id).verdict, Verdict::ours);
    EXPECT_EQ(place(image, 1, {"t", 0}, topic_id).directory, directory);
    EXPECT_EQ(place(image, 1, {"t", 0}, std::nullopt).verdict, Verdict::adopt);
    EXPECT_EQ(place(image, 1, {"t", 0}, Uuid{}).verdict, Verdict::adopt);
    const struct {
        TopicPartition found;
        std::optional<Uuid> id;
        std::int32_t node;
        const char* reason;
    } strays[] = {
        {{"u", 0}, topic_id, 1, "no topic u"},
        {{"u", 0}, std::nullopt, 1, "no topic u"},
        {{"t", 0}, Uuid::of(51), 1, "its topic id is"},
        {{"t", 1}, topic_id, 1, "1 partitions"},
        {{"t", 0}, topic_id, 2, "not on node 2"},
    };
    for (const auto& c : strays) {
        const auto placement = place(image, c.node, c.found, c.id);
        EXPECT_EQ(placement.verdict, Verdict::stray) << c.reason;
        EXPECT_THAT(placement.reason, HasSubstr(c.reason));
        EXPECT_EQ(placement.directory, std::nullopt);
    }
}

TEST(Placement, ReservedIdsNameNoDirectory) {
    for (unsigned char reserved = 0; reserved < 3; ++reserved) EXPECT_EQ(assigned_directory(image_with({1}, {Uuid::of(reserved)}).find("t")->partitions.at(0), 1), std::nullopt);
    EXPECT_EQ(assigned_directory(image_with({2, 1}, {Uuid::of(8), directory}).find("t")->partitions.at(0), 1), directory);
    EXPECT_EQ(assigned_directory(image_with({1}, {}).find("t")->partitions.at(0), 1), std::nullopt);
}

}  // namespace
}  // namespace tidemark::metadata
