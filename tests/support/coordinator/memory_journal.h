/// An internal topic's partition in memory, which fails and is slow when a test says so.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "coordinator/journal.h"
#include "record/record.h"

namespace tidemark::test {

class MemoryJournal final : public coordinator::Journal {
public:
    /// Of the next appends, until it is reset.
    std::optional<Errc> fail_appends;
    /// Nothing becomes durable until sync().
    bool hold_syncs = false;

    Offset start_offset() const override { return start_; }
    Offset end_offset() const override { return end_; }
    Result<std::vector<std::byte>> read(Offset from, std::int64_t bytes_max) override {
        std::vector<std::byte> bytes;
        for (const auto& batch : batches) {
            const auto view = record::BatchView::parse(batch).value();
            if (view.last_offset() < from) continue;
            if (!bytes.empty() && static_cast<std::int64_t>(bytes.size() + batch.size()) > bytes_max) break;
            append_bytes(bytes, batch);
        }
        return bytes;
    }
    Result<Offset> append(MutableBytes batch, const coordinator::JournalAppend&) override {
        if (fail_appends) return Error{*fail_appends, "told to fail"};
        const auto first = end_;
        record::in_place::set_base_offset(batch, first);
        batches.push_back(to_vector(batch));
        end_ = record::BatchView::parse(batch).value().next_offset();
        return first;
    }
    void when_durable(Offset, std::function<void(Result<>)> done) override {
        if (hold_syncs) waiting_.push_back(std::move(done));
        else done({});
    }

    /// Everything so far is durable, or, with an error, never will be.
    void sync(Result<> outcome = {}) {
        hold_syncs = false;
        for (auto& done : std::exchange(waiting_, {})) done(outcome);
    }
    /// As the cleaner and retention leave it: nothing below `start`.
    void start_at(Offset start) {
        start_ = start;
        std::erase_if(batches, [&](const auto& batch) { return record::BatchView::parse(batch).value().last_offset() < start; });
    }
    /// As it lies in a file.
    void add_raw(Bytes bytes) {
        record::BatchCursor cursor{bytes};
        while (const auto batch = cursor.next().value()) {
            batches.push_back(to_vector(batch->bytes()));
            end_ = batch->next_offset();
        }
    }

    std::vector<std::vector<std::byte>> batches;

private:
    Offset start_{0}, end_{0};
    std::vector<std::function<void(Result<>)>> waiting_;
};

}  // namespace tidemark::test
