#include "storage/index_file.h"

#include "base/assert.h"
#include "base/bytes.h"

namespace tidemark::storage {
namespace {

constexpr std::size_t page = 4096;  // read and written at a time

}  // namespace

void IndexFile::start_empty(std::int64_t bytes_max) {
    MutexLock lock(mutex_);
    memory_.clear();
    written_ = 0;
    resident_ = true;
    fresh_ = true;
    full_length_ = false;
    entries_.store(0, std::memory_order_release);
    capacity_.store(bytes_max / static_cast<std::int64_t>(entry_bytes_), std::memory_order_release);
    loaded_.store(true, std::memory_order_release);
}

Result<> IndexFile::load(bool strict) {
    MutexLock lock(mutex_);
    TM_TRY(const auto file, file_.get());
    TM_TRY(const auto bytes, file->size());
    const auto entry = static_cast<std::int64_t>(entry_bytes_);
    if (strict && bytes % entry != 0) return Error{Errc::corrupt, "length " + std::to_string(bytes) + " is no multiple of " + std::to_string(entry)};
    memory_.clear();
    resident_ = fresh_ = full_length_ = false;
    written_ = bytes / entry;
    entries_.store(written_, std::memory_order_release);
    capacity_.store(written_, std::memory_order_release);
    loaded_.store(true, std::memory_order_release);
    return {};
}

Result<> IndexFile::make_writable(std::int64_t bytes_max) {
    MutexLock lock(mutex_);
    TM_ASSERT(is_loaded());
    if (!resident_) {
        memory_.resize(static_cast<std::size_t>(bytes()));
        TM_TRY(const auto file, file_.get());
        TM_TRY(const auto got, file->read(FilePosition{0}, memory_));
        if (got != memory_.size()) return Error{Errc::corrupt, "shorter than when it was opened"};
        resident_ = true;
        full_length_ = false;
    }
    const auto fits = bytes_max / static_cast<std::int64_t>(entry_bytes_);
    capacity_.store(std::max(fits, entries()), std::memory_order_release);
    return {};
}

Result<> IndexFile::read(std::int64_t n, std::byte* entry) const {
    MutexLock lock(mutex_);
    TM_ASSERT(n >= 0 && n < entries());
    const auto at = static_cast<std::size_t>(n) * entry_bytes_;
    if (resident_) {
        std::memcpy(entry, memory_.data() + at, entry_bytes_);
        return {};
    }
    TM_TRY(const auto file, file_.get());
    TM_TRY(const auto got, file->read(FilePosition{static_cast<std::int64_t>(at)}, {entry, entry_bytes_}));
    if (got != entry_bytes_) return Error{Errc::corrupt, "shorter than when it was opened"};
    return {};
}

Result<std::int64_t> IndexFile::count_before(const std::function<bool(const std::byte*)>& is_before) const {
    MutexLock lock(mutex_);
    const auto entry = static_cast<std::int64_t>(entry_bytes_);
    std::int64_t low = 0, high = entries();
    std::vector<std::byte> block;
    const std::byte* from = memory_.data();
    std::int64_t first = 0;
    if (!resident_) {
        const auto per_block = static_cast<std::int64_t>(page) / entry;
        TM_TRY(const auto file, file_.get());
        std::array<std::byte, 16> one{};
        while (high - low > per_block) {
            const auto middle = low + (high - low) / 2;
            TM_TRY(const auto got, file->read(FilePosition{middle * entry}, {one.data(), entry_bytes_}));
            if (got != entry_bytes_) return Error{Errc::corrupt, "shorter than when it was opened"};
            if (is_before(one.data())) low = middle + 1;
            else high = middle;
        }
        block.resize(static_cast<std::size_t>((high - low) * entry));
        TM_TRY(const auto got, file->read(FilePosition{low * entry}, block));
        if (got != block.size()) return Error{Errc::corrupt, "shorter than when it was opened"};
        from = block.data();
        first = low;
    }
    while (low < high) {
        const auto middle = low + (high - low) / 2;
        if (is_before(from + (middle - first) * entry)) low = middle + 1;
        else high = middle;
    }
    return low;
}

void IndexFile::append(const std::byte* entry) {
    MutexLock lock(mutex_);
    TM_ASSERT(resident_);
    memory_.insert(memory_.end(), entry, entry + entry_bytes_);
    entries_.fetch_add(1, std::memory_order_acq_rel);
}

Result<> IndexFile::truncate(std::int64_t n) {
    MutexLock lock(mutex_);
    TM_ASSERT(n <= entries());
    TM_ASSERT(resident_);
    memory_.resize(static_cast<std::size_t>(n) * entry_bytes_);
    written_ = std::min(written_, n);
    entries_.store(n, std::memory_order_release);
    return {};
}

bool IndexFile::has_many_pending() const {
    MutexLock lock(mutex_);
    return resident_ && static_cast<std::size_t>(entries() - written_) * entry_bytes_ >= page;
}

Result<> IndexFile::write_pending() {
    MutexLock lock(mutex_);
    return write_pending_locked();
}

Result<> IndexFile::write_pending_locked() {
    if (!resident_) return {};
    const bool was_fresh = fresh_;
    TM_TRY(const auto file, was_fresh ? file_.create_truncated() : file_.get_or_create());
    fresh_ = false;
    if (!full_length_) {
        file_.written();
        TM_TRYV(file->resize(capacity() * static_cast<std::int64_t>(entry_bytes_)));
        full_length_ = true;
    }
    if (written_ == entries()) return {};
    const auto at = static_cast<std::size_t>(written_) * entry_bytes_;
    file_.written();
    TM_TRYV(file->write(FilePosition{static_cast<std::int64_t>(at)}, Bytes(memory_).subspan(at)));
    file_.written();
    written_ = entries();
    return {};
}

Result<> IndexFile::trim() {
    MutexLock lock(mutex_);
    if (!resident_) return {};
    full_length_ = true;  // it is about to be cut: there is no use in lengthening it first
    TM_TRYV(write_pending_locked());
    TM_TRY(const auto file, file_.get());
    file_.written();
    TM_TRYV(file->resize(bytes()));
    file_.written();
    full_length_ = false;
    resident_ = false;
    std::vector<std::byte>().swap(memory_);
    capacity_.store(entries(), std::memory_order_release);
    return {};
}

Result<> IndexFile::sync() {
    TM_TRYV(write_pending());
    return file_.sync();
}

}  // namespace tidemark::storage
