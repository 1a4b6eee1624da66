#include "retention/clock_trust.h"

#include <charconv>

#include "base/bytes.h"
#include "base/log.h"

namespace tidemark::retention {
namespace {

constexpr std::chrono::milliseconds save_interval{60'000};

}  // namespace

void ClockJudge::start(Timestamp now, std::chrono::milliseconds since_boot, std::optional<Timestamp> highest) {
    last_ = highest_ = now;
    last_boot_ = since_boot;
    if (!highest || now >= *highest) return;
    highest_ = *highest;
    distrust(since_boot, fmt::format("the clock is {} ms behind the time that was seen before", *highest - now));
}

void ClockJudge::look(Timestamp now, std::chrono::milliseconds since_boot) {
    const auto ahead = (now - last_) - (since_boot - last_boot_).count();
    last_ = now;
    last_boot_ = since_boot;
    if (ahead > jump_max_ms_) {
        ++jumps_;
        distrust(since_boot, fmt::format("the clock jumped ahead by {} ms", ahead));
    } else if (distrusted_since_ && since_boot - *distrusted_since_ >= std::chrono::milliseconds{grace_ms_}) {
        confirm();
    }
    if (trusted() && now > highest_) highest_ = now;
}

void ClockJudge::confirm() {
    distrusted_since_.reset();
    reason_.clear();
    highest_ = last_;
}

void ClockJudge::distrust(std::chrono::milliseconds since_boot, std::string reason) {
    distrusted_since_ = since_boot;
    reason_ = std::move(reason);
}

ClockTrust::ClockTrust(io::FileSystem& files, io::Path directory, const Clock& clock, const RetentionOptions& options)
    : files_(files), path_(io::join(directory, "tidemark-clock")), clock_(clock), enabled_(options.differences.distrust_clock_jumps),
      judge_(options.clock_jump_max_ms, options.clock_jump_grace_ms) {}

void ClockTrust::start() {
    if (!enabled_) return;
    MutexLock lock(mutex_);
    std::optional<Timestamp> highest;
    if (const auto content = io::read_whole(files_, path_, 64)) {
        const auto text = as_text(*content);
        std::int64_t value = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
        if (parsed.ec == std::errc{} && value >= 0) highest = Timestamp{value};
        else log_warning("{} does not hold a time: ignored", path_);
    } else if (content.error().code != Errc::not_found) {
        log_warning("reading {}: {}", path_, content.error().message());
    }
    judge_.start(clock_.now(), clock_.since_boot(), highest);
    log_change(true);
    save();
}

void ClockTrust::tick() {
    if (!enabled_) return;
    MutexLock lock(mutex_);
    const bool before = judge_.trusted();
    judge_.look(clock_.now(), clock_.since_boot());
    log_change(before);
    if (!saved_at_ || clock_.since_boot() - *saved_at_ >= save_interval || before != judge_.trusted()) save();
}

void ClockTrust::confirm() {
    if (!enabled_) return;
    MutexLock lock(mutex_);
    const bool before = judge_.trusted();
    judge_.look(clock_.now(), clock_.since_boot());
    judge_.confirm();
    log_change(before);
    save();
}

bool ClockTrust::trusted() const {
    MutexLock lock(mutex_);
    return judge_.trusted();
}

ClockTrust::Stats ClockTrust::stats() const {
    MutexLock lock(mutex_);
    return {judge_.trusted(), judge_.reason(), judge_.jumps()};
}

void ClockTrust::save() {
    saved_at_ = clock_.since_boot();
    const auto text = std::to_string(judge_.highest().value) + "\n";
    if (const auto written = io::replace_content(files_, path_, as_bytes(text)); !written) log_warning("writing {}: {}", path_, written.error().message());
}

void ClockTrust::log_change(bool before) const {
    if (before == judge_.trusted()) return;
    if (judge_.trusted()) log_info("the clock is trusted again: deletion by time goes on");
    else log_error("{}: deletion by time and delete horizons wait until the time is confirmed or the grace time is over", judge_.reason());
}

}  // namespace tidemark::retention
