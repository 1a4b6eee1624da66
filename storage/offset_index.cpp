#include "storage/offset_index.h"

#include "base/bytes.h"

namespace tidemark::storage {
namespace {

OffsetIndex::Entry decode(const std::byte* from, Offset base) {
    return {base + load_be<std::int32_t>(from), FilePosition{load_be<std::int32_t>(from + 4)}};
}

}  // namespace

Result<OffsetIndex::Entry> OffsetIndex::entry(std::int64_t n) const {
    std::array<std::byte, entry_bytes> bytes{};
    TM_TRYV(file_.read(n, bytes.data()));
    return decode(bytes.data(), base_);
}

Result<std::optional<OffsetIndex::Entry>> OffsetIndex::last() const {
    const auto n = file_.entries();
    if (n == 0) return std::optional<Entry>{};
    TM_TRY(const auto found, entry(n - 1));
    return std::optional(found);
}

Result<OffsetIndex::Entry> OffsetIndex::lookup(Offset target) const {
    TM_TRY(const auto n, file_.count_before([&](const std::byte* e) { return decode(e, base_).offset <= target; }));
    if (n == 0) return Entry{base_, FilePosition{0}};
    return entry(n - 1);
}

Result<std::optional<OffsetIndex::Entry>> OffsetIndex::first_at_or_after(FilePosition position) const {
    TM_TRY(const auto n, file_.count_before([&](const std::byte* e) { return decode(e, base_).position < position; }));
    if (n >= file_.entries()) return std::optional<Entry>{};
    TM_TRY(const auto found, entry(n));
    return std::optional(found);
}

Result<> OffsetIndex::append(Offset offset, FilePosition position) {
    if (is_full()) return Error{Errc::invalid_argument, "the offset index is full"};
    TM_TRY(const auto before, last());
    if (before && offset <= before->offset) {
        return Error{Errc::unexpected_offset, "offset " + std::to_string(offset.value) + " after " + std::to_string(before->offset.value) +
                                                  " in the offset index"};
    }
    std::array<std::byte, entry_bytes> bytes{};
    store_be(bytes.data(), static_cast<std::int32_t>(offset - base_));
    store_be(bytes.data() + 4, static_cast<std::int32_t>(position.value));
    file_.append(bytes.data());
    return {};
}

Result<> OffsetIndex::truncate_to(Offset offset) {
    TM_TRY(const auto n, file_.count_before([&](const std::byte* e) { return decode(e, base_).offset < offset; }));
    return file_.truncate(n);
}

Result<> OffsetIndex::check(std::int64_t log_bytes) const {
    const auto n = file_.entries();
    if (n == 0) return {};
    TM_TRY(const auto first, entry(0));
    TM_TRY(const auto final, entry(n - 1));
    // The first batch is never indexed, so no entry stands at position 0: that is how zeros at the end show.
    const auto plausible = [&](const Entry& e) { return e.offset >= base_ && e.position.value > 0 && e.position.value < log_bytes; };
    if (!plausible(first) || !plausible(final)) return Error{Errc::corrupt, "an entry lies outside the segment"};
    if (n > 1 && (final.offset <= first.offset || final.position <= first.position)) return Error{Errc::corrupt, "the entries do not rise"};
    return {};
}

}  // namespace tidemark::storage
