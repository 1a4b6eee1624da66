#include "storage/time_index.h"

#include "base/bytes.h"

namespace tidemark::storage {
namespace {

TimeIndex::Entry decode(const std::byte* from, Offset base) {
    return {Timestamp{load_be<std::int64_t>(from)}, base + load_be<std::int32_t>(from + 8)};
}

}  // namespace

Result<TimeIndex::Entry> TimeIndex::entry(std::int64_t n) const {
    std::array<std::byte, entry_bytes> bytes{};
    TM_TRYV(file_.read(n, bytes.data()));
    return decode(bytes.data(), base_);
}

Result<TimeIndex::Entry> TimeIndex::last() const {
    const auto n = file_.entries();
    if (n == 0) return Entry{no_timestamp, base_};
    return entry(n - 1);
}

Result<TimeIndex::Entry> TimeIndex::lookup(Timestamp target) const {
    TM_TRY(const auto n, file_.count_before([&](const std::byte* e) { return decode(e, base_).timestamp <= target; }));
    if (n == 0) return Entry{no_timestamp, base_};
    return entry(n - 1);
}

Result<> TimeIndex::append(Timestamp timestamp, Offset offset, bool forced) {
    if (!forced && is_full()) return Error{Errc::invalid_argument, "the time index is full"};
    TM_TRY(const auto before, last());
    if (file_.entries() > 0 && (offset < before.offset || timestamp < before.timestamp)) {
        return Error{Errc::unexpected_offset, "entry (" + std::to_string(timestamp.value) + ", " + std::to_string(offset.value) + ") after (" +
                                                  std::to_string(before.timestamp.value) + ", " + std::to_string(before.offset.value) +
                                                  ") in the time index"};
    }
    if (timestamp <= before.timestamp) return {};
    std::array<std::byte, entry_bytes> bytes{};
    store_be(bytes.data(), timestamp.value);
    store_be(bytes.data() + 8, static_cast<std::int32_t>(offset - base_));
    file_.append(bytes.data());
    return {};
}

Result<> TimeIndex::truncate_to(Offset offset) {
    TM_TRY(const auto n, file_.count_before([&](const std::byte* e) { return decode(e, base_).offset < offset; }));
    return file_.truncate(n);
}

Result<> TimeIndex::check() const {
    const auto n = file_.entries();
    if (n == 0) return {};
    TM_TRY(const auto first, entry(0));
    TM_TRY(const auto final, entry(n - 1));
    if (first.offset < base_ || final.offset < base_) return Error{Errc::corrupt, "an entry lies outside the segment"};
    if (final.timestamp.value == 0 && final.offset == base_) return Error{Errc::corrupt, "zeros at the end"};
    if (n > 1 && (final.timestamp <= first.timestamp || final.offset < first.offset)) return Error{Errc::corrupt, "the entries do not rise"};
    return {};
}

}  // namespace tidemark::storage
