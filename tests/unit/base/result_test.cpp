#include "base/result.h"

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace tidemark {
namespace {

Result<int> number(bool good) {
    if (!good) return Error{Errc::corrupt, "no number"};
    return 42;
}

Result<> done(bool good) {
    if (!good) return Error{Errc::io, "not done", std::make_error_code(std::errc::io_error)};
    return {};
}

Result<std::string> two_numbers(bool first, bool second) {
    TM_TRY(const auto a, number(first));
    TM_TRY(auto b, number(second));
    ++b;
    return std::to_string(a) + "," + std::to_string(b);
}

TEST(Result, TryBindsValuesAndReturnsTheFirstError) {
    EXPECT_EQ(two_numbers(true, true).value(), "42,43");
    for (const auto& failed : {two_numbers(false, true), two_numbers(true, false)}) {
        ASSERT_FALSE(failed.has_value());
        EXPECT_EQ(failed.error().code, Errc::corrupt);
        EXPECT_EQ(failed.error().context, "no number");
    }
}

TEST(Result, TryBindsInAnIfWithoutBraces) {
    const auto once = [](bool wanted, bool good) -> Result<int> {
        int tries = 0;
        if (wanted) TM_TRYV(done(good));
        return ++tries;
    };
    EXPECT_EQ(once(true, true).value(), 1);
    EXPECT_EQ(once(false, false).value(), 1);
    EXPECT_EQ(once(true, false).error().code, Errc::io);
}

TEST(Result, TryMovesWhatCannotBeCopied) {
    const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
    const auto use = [&]() -> Result<int> {
        TM_TRY(const auto pointer, make());
        return *pointer;
    };
    EXPECT_EQ(use().value(), 7);
}

TEST(Result, TryAssignsToWhatIsThere) {
    int value = 0;
    const auto assign = [&]() -> Result<> {
        TM_TRY(value, number(true));
        return {};
    };
    EXPECT_TRUE(assign().has_value());
    EXPECT_EQ(value, 42);
}

/// A coroutine that runs at once and keeps its Result.
struct Task {
    struct promise_type {
        std::optional<Result<int>> result;
        Task get_return_object() { return Task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_value(Result<int> r) { result.emplace(std::move(r)); }
        void unhandled_exception() { std::terminate(); }
    };
    explicit Task(std::coroutine_handle<promise_type> h) : handle(h) {}
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task() { handle.destroy(); }
    const Result<int>& result() const { return *handle.promise().result; }
    std::coroutine_handle<promise_type> handle;
};

Task in_coroutine(bool first, bool second) {
    TM_CO_TRY(const int value, number(first));
    TM_CO_TRYV(done(second));
    co_return Result<int>(value + 1);
}

TEST(Result, TryLeavesACoroutine) {
    EXPECT_EQ(in_coroutine(true, true).result().value(), 43);
    EXPECT_EQ(in_coroutine(false, true).result().error().code, Errc::corrupt);
    EXPECT_EQ(in_coroutine(true, false).result().error().code, Errc::io);
}

TEST(Error, SaysCodeContextAndWhatTheSystemSaid) {
    EXPECT_EQ((Error{Errc::corrupt, "0.log at 8192: CRC mismatch"}.message()), "corrupt: 0.log at 8192: CRC mismatch");
    EXPECT_EQ(Error{.code = Errc::aborted}.message(), "aborted");
    const auto error = done(false).error();
    EXPECT_EQ(error.message(), "io: not done: " + error.os.message());
}

TEST(Error, GrowsContextToTheFront) {
    EXPECT_EQ(in_context(Error{Errc::io, "at 8192"}, "0.log").context, "0.log: at 8192");
    EXPECT_EQ(in_context(Error{.code = Errc::io}, "0.log").context, "0.log");
}

TEST(Error, ThrowsItsMessageWhenAMissingValueIsTaken) {
    try {
        static_cast<void>(number(false).value());
        FAIL() << "value() of an error returned";
    } catch (const std::exception& e) {
        EXPECT_STREQ(e.what(), "corrupt: no number");
    }
}

TEST(Error, HasANameForEachCode) {
    std::set<std::string> names;
    for (int code = 0; code <= static_cast<int>(Errc::offset_overflow); ++code) {
        const std::string name = to_string(static_cast<Errc>(code));
        EXPECT_NE(name, "unknown") << code;
        EXPECT_TRUE(names.insert(name).second) << name << " twice";
    }
}

}  // namespace
}  // namespace tidemark
