#include "storage/transaction_index.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace tidemark::storage {
namespace {

constexpr auto entry_bytes = static_cast<std::int64_t>(aborted_transaction_bytes);
constexpr std::int64_t segment_limit = 2'147'483'647;

}  // namespace

void encode(const AbortedTransaction& aborted, std::byte* to) {
    store_be(to, std::int16_t{0});
    store_be(to + 2, aborted.producer_id);
    store_be(to + 10, aborted.first_offset.value);
    store_be(to + 18, aborted.last_offset.value);
    store_be(to + 26, aborted.last_stable_offset.value);
}

Result<std::vector<AbortedTransaction>> decode_transaction_index(Bytes content) {
    std::vector<AbortedTransaction> entries;
    for (; content.size() >= aborted_transaction_bytes; content = content.subspan(aborted_transaction_bytes)) {
        const auto version = load_be<std::int16_t>(content.data());
        if (version != 0) return Error{Errc::corrupt, "transaction index entry of version " + std::to_string(version)};
        entries.push_back({.producer_id = load_be<std::int64_t>(content.data() + 2),
                           .first_offset = Offset{load_be<std::int64_t>(content.data() + 10)},
                           .last_offset = Offset{load_be<std::int64_t>(content.data() + 18)},
                           .last_stable_offset = Offset{load_be<std::int64_t>(content.data() + 26)}});
    }
    return entries;
}

Result<std::vector<AbortedTransaction>> TransactionIndex::read() const {
    if (!exists()) return std::vector<AbortedTransaction>{};
    TM_TRY(const auto file, file_.get());
    TM_TRY(const auto bytes, file->size());
    if (bytes > segment_limit) return Error{Errc::corrupt, "a transaction index of " + std::to_string(bytes) + " bytes"};
    std::vector<std::byte> content(static_cast<std::size_t>(bytes));
    TM_TRY(const auto got, file->read(FilePosition{0}, content));
    return decode_transaction_index(Bytes(content).first(got));
}

Result<std::vector<AbortedTransaction>> TransactionIndex::all() const {
    {
        MutexLock lock(mutex_);
        if (held_) return *held_;
    }
    return read();
}

Result<> TransactionIndex::hold() {
    if (held_) return {};
    TM_TRY(auto entries, read());
    written_ = entries.size();
    held_ = std::move(entries);
    return {};
}

Result<> TransactionIndex::write_pending() {
    if (!held_ || written_ == held_->size()) return {};
    TM_TRY(const auto file, file_.get_or_create());
    set_exists(true);
    std::vector<std::byte> bytes((held_->size() - written_) * aborted_transaction_bytes);
    for (std::size_t i = 0; written_ + i < held_->size(); ++i) encode((*held_)[written_ + i], bytes.data() + i * aborted_transaction_bytes);
    file_.written();
    TM_TRYV(file->write(FilePosition{static_cast<std::int64_t>(written_) * entry_bytes}, bytes));
    file_.written();
    written_ = held_->size();
    return {};
}

Result<> TransactionIndex::append(const AbortedTransaction& aborted) {
    MutexLock lock(mutex_);
    TM_TRYV(hold());
    if (!held_->empty() && aborted.last_offset <= held_->back().last_offset) {
        return Error{Errc::invalid_argument, "last offset " + std::to_string(aborted.last_offset.value) + " after " +
                                                 std::to_string(held_->back().last_offset.value) + " in the transaction index"};
    }
    held_->push_back(aborted);
    return write_pending();
}

Result<TransactionIndex::Found> TransactionIndex::search(Offset from, Offset bound) const {
    if (!exists()) {
        MutexLock lock(mutex_);
        if (!held_ || held_->empty()) return Found{};
    }
    TM_TRY(const auto entries, all());
    Found found;
    for (const auto& entry : entries) {
        if (entry.last_offset >= from && entry.first_offset < bound) found.aborted.push_back(entry);
        if (entry.last_stable_offset >= bound) {
            found.complete = true;
            break;
        }
    }
    return found;
}

Result<> TransactionIndex::truncate_to(Offset offset) {
    MutexLock lock(mutex_);
    TM_TRYV(hold());
    const auto first = std::find_if(held_->begin(), held_->end(), [&](const auto& e) { return e.last_offset >= offset; });
    held_->erase(first, held_->end());
    if (held_->size() >= written_) return {};
    TM_TRY(const auto file, file_.get());
    file_.written();
    TM_TRYV(file->resize(static_cast<std::int64_t>(held_->size()) * entry_bytes));
    file_.written();
    written_ = held_->size();
    return {};
}

Result<> TransactionIndex::reset() {
    MutexLock lock(mutex_);
    held_.emplace();
    written_ = 0;
    if (!exists()) return {};
    TM_TRY(const auto file, file_.get());
    file_.written();
    TM_TRYV(file->resize(0));
    file_.written();
    return {};
}

Result<> TransactionIndex::check() const {
    TM_TRY(const auto entries, all());
    for (const auto& entry : entries) {
        if (entry.last_offset < base_) return Error{Errc::corrupt, "last offset " + std::to_string(entry.last_offset.value) + " below the segment"};
    }
    return {};
}

Result<> TransactionIndex::sync() {
    {
        MutexLock lock(mutex_);
        TM_TRYV(write_pending());
    }
    return file_.sync();
}

}  // namespace tidemark::storage
