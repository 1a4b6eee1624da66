#include "storage/batch_reader.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t prefix = record::magic_end;
constexpr std::size_t header_read = record::v2_header_bytes;

Error corrupt_at(FilePosition at, const std::string& what) { return {Errc::corrupt, "at " + std::to_string(at.value) + ": " + what}; }

/// The whole size of the entry whose first 17 bytes these are; nothing when it does not end before `end`.
Result<std::optional<std::int64_t>> entry_size(const std::byte* from, FilePosition at, std::int64_t end) {
    const auto size = load_be<std::int32_t>(from + 8);
    if (size < record::legal_size_min) return corrupt_at(at, "size field " + std::to_string(size));
    if (at.value > end - static_cast<std::int64_t>(record::log_overhead) - size) return std::optional<std::int64_t>{};
    const auto whole = std::int64_t{size} + static_cast<std::int64_t>(record::log_overhead);
    const auto magic = load_be<std::int8_t>(from + 16);
    const std::int64_t least = magic == 0 ? 26 : magic == 1 ? 34 : static_cast<std::int64_t>(record::v2_header_bytes);
    if (whole < least || magic < 0) return corrupt_at(at, "size field " + std::to_string(size) + " with magic " + std::to_string(magic));
    return std::optional(whole);
}

}  // namespace

Result<std::optional<BatchPosition>> HeaderWalk::next() {
    if (at_.value >= end_ - prefix) return std::optional<BatchPosition>{};
    const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(header_read), end_ - at_.value);
    if (held_ == 0 || at_ < held_at_ || at_.value + wanted > held_at_.value + static_cast<std::int64_t>(held_)) {
        const auto room = std::min<std::int64_t>(static_cast<std::int64_t>(buffer_.size()), end_ - at_.value);
        TM_TRY(held_, file_.read(at_, {buffer_.data(), static_cast<std::size_t>(room)}));
        held_at_ = at_;
        if (static_cast<std::int64_t>(held_) < wanted) return corrupt_at(at_, "the file ends before its known size");
    }
    const auto* const from = buffer_.data() + (at_ - held_at_);
    TM_TRY(const auto size, entry_size(from, at_, end_));
    if (!size) return std::optional<BatchPosition>{};
    BatchPosition found{.position = at_, .bytes = *size, .base_offset = Offset{load_be<std::int64_t>(from)}};
    const auto magic = load_be<std::int8_t>(from + 16);
    if (magic >= 2) {
        found.last_offset = found.base_offset + load_be<std::int32_t>(from + 23);
        found.max_timestamp = Timestamp{load_be<std::int64_t>(from + 35)};
        found.leader_epoch = load_be<std::int32_t>(from + 12);
        found.records = load_be<std::int32_t>(from + 57);
        if ((load_be<std::uint16_t>(from + 21) & record::attribute::delete_horizon) != 0) {
            found.delete_horizon = Timestamp{load_be<std::int64_t>(from + 27)};
        }
    } else {
        found.last_offset = found.base_offset;
        if (magic == 1) found.max_timestamp = Timestamp{load_be<std::int64_t>(from + 18)};
    }
    at_ = at_ + *size;
    return std::optional(found);
}

Result<> BatchWalk::fill(std::size_t bytes) {
    if (available() >= bytes) return {};
    const auto left = end_ - at_.value;
    bytes = static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(bytes), left));
    const auto room = std::max(bytes, static_cast<std::size_t>(std::min<std::int64_t>(static_cast<std::int64_t>(buffer_bytes_), left)));
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(used_), buffer_.begin() + static_cast<std::ptrdiff_t>(held_), buffer_.begin());
    held_ -= used_;
    used_ = 0;
    if (buffer_.size() < room) buffer_.resize(room);
    const auto from = at_ + static_cast<std::int64_t>(held_);
    const auto more = std::min<std::int64_t>(static_cast<std::int64_t>(room - held_), end_ - from.value);
    TM_TRY(const auto got, file_.read(from, MutableBytes(buffer_).subspan(held_, static_cast<std::size_t>(more))));
    held_ += got;
    if (available() < bytes) return corrupt_at(at_, "the file ends before its known size");
    return {};
}

Result<std::optional<record::BatchView>> BatchWalk::next() {
    if (at_.value >= end_ - prefix) return std::optional<record::BatchView>{};
    TM_TRYV(fill(record::magic_end));
    TM_TRY(const auto size, entry_size(buffer_.data() + used_, at_, end_));
    if (!size) return std::optional<record::BatchView>{};
    TM_TRYV(fill(static_cast<std::size_t>(*size)));
    auto* const from = buffer_.data() + used_;
    if (load_be<std::int8_t>(from + 16) > 2) from[16] = std::byte{2};
    TM_TRY(const auto batch, record::BatchView::parse({from, static_cast<std::size_t>(*size)}));
    used_ += static_cast<std::size_t>(*size);
    last_at_ = at_;
    at_ = at_ + *size;
    return std::optional(batch);
}

}  // namespace tidemark::storage
