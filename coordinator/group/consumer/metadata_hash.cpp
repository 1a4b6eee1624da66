//   topic   int8 0 · id int64 int64 · name · int32 partitions · per partition (int32 index · racks)
//   text    its UTF-16 units, then their number as int32; a rack has its number before them as well
//   group   the topics' hashes, int64 each
// Everything is little-endian; the two halves of the id are big-endian numbers written that way.
#include "coordinator/group/consumer/metadata_hash.h"

#include <xxhash.h>

#include "base/bytes.h"
#include "base/utf16.h"

namespace tidemark::coordinator {

namespace {

class Input {
public:
    template <class T>
    void number(T value) {
        append_be(bytes_, byte_swapped(value));
    }
    void text(std::string_view text) {
        std::int32_t units = 0;
        for_each_utf16_unit(text, [&](std::uint16_t unit) { number(unit), ++units; });
        number(units);
    }
    std::int64_t hash() const { return static_cast<std::int64_t>(XXH3_64bits(bytes_.data(), bytes_.size())); }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace

std::int64_t topic_hash(const TopicFacts& topic) {
    Input input;
    input.number(std::int8_t{0});
    input.number(load_be<std::int64_t>(topic.id.bytes.data()));
    input.number(load_be<std::int64_t>(topic.id.bytes.data() + 8));
    input.text(topic.name);
    input.number(static_cast<std::int32_t>(topic.racks.size()));
    for (std::size_t i = 0; i < topic.racks.size(); ++i) {
        input.number(static_cast<std::int32_t>(i));
        for (const auto& rack : topic.racks[i]) {
            input.number(static_cast<std::int32_t>(utf16_units(rack)));
            input.text(rack);
        }
    }
    return input.hash();
}

std::int64_t group_hash(std::span<const std::int64_t> topic_hashes) {
    if (topic_hashes.empty()) return 0;
    Input input;
    for (const auto hash : topic_hashes) input.number(hash);
    return input.hash();
}

}  // namespace tidemark::coordinator
