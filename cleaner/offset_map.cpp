#include "cleaner/offset_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/assert.h"

namespace tidemark::cleaner {
namespace {

constexpr std::size_t group_slots = 16;
constexpr std::size_t entry_bytes = 23;
constexpr std::byte empty_tag{0};

std::byte tag_of(const KeyHash& hash) noexcept { return static_cast<std::byte>(0x80 | (hash.high & 0x7f)); }

/// Bit i is set where the group's i-th tag is `tag`.
std::uint32_t matches(const std::byte* group, std::byte tag) noexcept {
#if defined(__SSE2__)
    const auto tags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(group));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(tag)))));
#else
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < group_slots; ++i) found |= static_cast<std::uint32_t>(group[i] == tag) << i;
    return found;
#endif
}

bool entry_is(const std::byte* entry, const KeyHash& hash) noexcept {
    std::uint64_t low, high;
    std::memcpy(&low, entry, sizeof low);
    std::memcpy(&high, entry + 7, sizeof high);   // its first byte is the last of `low`
    return low == hash.low && high >> 8 == hash.high >> 8;
}

void write_entry(std::byte* entry, const KeyHash& hash) noexcept {
    static_assert(std::endian::native == std::endian::little, "entries overlap two little-endian words");
    std::memcpy(entry + 7, &hash.high, sizeof hash.high);   // seven bytes count, `low` covers the first
    std::memcpy(entry, &hash.low, sizeof hash.low);
}

void write_value(std::byte* entry, std::uint64_t value) noexcept { std::memcpy(entry + 15, &value, sizeof value); }

std::uint64_t read_value(const std::byte* entry) noexcept {
    std::uint64_t value;
    std::memcpy(&value, entry + 15, sizeof value);
    return value;
}

std::int64_t slots_in(const OffsetMapOptions& options) {
    return std::min<std::int64_t>(options.buffer_bytes, std::numeric_limits<std::int32_t>::max()) / offset_map_slot_bytes;
}

}  // namespace

OffsetMap::OffsetMap(OffsetMapOptions options, HashKey key)
    : key_(key), slots_(slots_in(options)), limit_(static_cast<std::int64_t>(static_cast<double>(slots_) * options.load)) {
    TM_ASSERT(limit_ > 0);
}

void OffsetMap::prepare(Offset base, Offset end) {
    const auto keys = static_cast<std::size_t>(std::clamp<std::int64_t>(end - base, 1, limit_));
    // At most as many slots as the budget has; never more than 15 of 16 in use, so that every probe ends.
    const auto wanted = std::max(keys + keys / 9, keys * 16 / 15) / group_slots + 1;
    if (wanted > groups_ || wanted < groups_ / 4) {
        release();
        tags_ = allocate(wanted * group_slots);
        entries_ = allocate(wanted * group_slots * entry_bytes);
        groups_ = wanted;
    }
    std::memset(tags_.get(), 0, groups_ * group_slots);
    room_ = static_cast<std::int64_t>(keys);
    size_ = 0;
    latest_ = Offset{-1};
    base_ = base;
    has_notes_ = end - base <= std::int64_t{1} << 40;
}

void OffsetMap::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

OffsetMap::Memory OffsetMap::allocate(std::size_t bytes) {
    // Every key is somewhere else: with small pages the processor looks up the page each time, too.
    constexpr std::size_t huge_page_bytes = 2 << 20;
    const bool is_large = bytes >= 2 * huge_page_bytes;
    const auto alignment = is_large ? huge_page_bytes : std::size_t{64};
    bytes = (bytes + alignment - 1) / alignment * alignment;
    Memory memory(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
    if (!memory) throw std::bad_alloc();
    if (is_large) (void)::madvise(memory.get(), bytes, MADV_HUGEPAGE);   // a wish; without it the same, slower
    return memory;
}

void OffsetMap::release() {
    tags_.reset();
    entries_.reset();
    groups_ = 0;
    room_ = 0;
    size_ = 0;
    latest_ = Offset{-1};
}

std::size_t OffsetMap::group_of(const KeyHash& hash) const noexcept {
    return static_cast<std::size_t>((hash.low >> 32) * groups_ >> 32);   // groups_ is far below 2^32
}

std::uint64_t OffsetMap::packed(Offset offset, std::uint32_t note) const noexcept {
    const auto relative = static_cast<std::uint64_t>(offset - base_);
    return has_notes_ ? relative << 24 | note : relative;
}

OffsetMap::Replaced OffsetMap::unpacked(std::uint64_t value) const noexcept {
    if (!has_notes_) return {base_ + static_cast<std::int64_t>(value), 0};
    return {base_ + static_cast<std::int64_t>(value >> 24), static_cast<std::uint32_t>(value & note_max)};
}

void OffsetMap::prefetch(const KeyHash& hash) const noexcept { __builtin_prefetch(tags_.get() + group_of(hash) * group_slots); }

void OffsetMap::prefetch_slot(const KeyHash& hash) const noexcept {
    const auto group = group_of(hash);
    const auto* const tags = tags_.get() + group * group_slots;
    auto found = matches(tags, tag_of(hash));
    if (found == 0) found = matches(tags, empty_tag);
    if (found == 0) return;
    const auto* const entry = entries_.get() + (group * group_slots + static_cast<std::size_t>(std::countr_zero(found))) * entry_bytes;
    __builtin_prefetch(entry);
    __builtin_prefetch(entry + entry_bytes - 1);   // every third lies in two lines
}

std::optional<OffsetMap::Replaced> OffsetMap::put(const KeyHash& hash, Offset offset, std::uint32_t note) noexcept {
    const auto tag = tag_of(hash);
    for (auto group = group_of(hash);;) {
        auto* const tags = tags_.get() + group * group_slots;
        auto* const entries = entries_.get() + group * group_slots * entry_bytes;
        for (auto found = matches(tags, tag); found != 0; found &= found - 1) {
            auto* const entry = entries + static_cast<std::size_t>(std::countr_zero(found)) * entry_bytes;
            if (entry_is(entry, hash)) {
                const auto before = unpacked(read_value(entry));
                write_value(entry, packed(offset, note));
                latest_ = offset;
                return before;
            }
        }
        if (const auto empty = matches(tags, empty_tag); empty != 0) {
            TM_ASSERT(size_ < room_);
            const auto i = static_cast<std::size_t>(std::countr_zero(empty));
            tags[i] = tag;
            write_entry(entries + i * entry_bytes, hash);
            write_value(entries + i * entry_bytes, packed(offset, note));
            ++size_;
            latest_ = offset;
            return std::nullopt;
        }
        if (++group == groups_) group = 0;
    }
}

std::optional<Offset> OffsetMap::get(const KeyHash& hash) const noexcept {
    if (size_ == 0) return std::nullopt;
    const auto tag = tag_of(hash);
    for (auto group = group_of(hash);;) {
        const auto* const tags = tags_.get() + group * group_slots;
        const auto* const entries = entries_.get() + group * group_slots * entry_bytes;
        for (auto found = matches(tags, tag); found != 0; found &= found - 1) {
            const auto* const entry = entries + static_cast<std::size_t>(std::countr_zero(found)) * entry_bytes;
            if (entry_is(entry, hash)) return unpacked(read_value(entry)).offset;
        }
        if (matches(tags, empty_tag) != 0) return std::nullopt;
        if (++group == groups_) group = 0;
    }
}

}  // namespace tidemark::cleaner
