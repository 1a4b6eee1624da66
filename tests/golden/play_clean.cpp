// `clean`: a round of the cleaner's thread.
#include <cmath>

#include "storage/directory_names.h"
#include "storage/segment.h"
#include "tests/golden/clean_round.h"

namespace tidemark::golden {
namespace {

using cleaner::CleaningDecision;

/// Kafka writes 9223372036854775807 for "none".
std::int64_t or_none(std::optional<Timestamp> t) { return t ? t->value : std::numeric_limits<std::int64_t>::max(); }

/// Reading the text of a number may miss its last bit.
void expect_close(const char* what, double ours, double kafkas, Differences& differences) {
    if (std::abs(ours - kafkas) > 1e-12) differences.expect_equal(what, ours, kafkas);
}

void compare_decision(const CleaningDecision& ours, const storage::LogConfig& config, std::optional<Offset> checkpoint, const json::object& kafkas, Differences& differences) {
    differences.expect_equal("cleaner checkpoint", checkpoint.value_or(Offset{-1}).value, number_or_null(kafkas, "cleanerCheckpoint").value_or(-1));
    differences.expect_equal("first dirty offset", ours.first_dirty.value, number(kafkas.at("firstDirtyOffset")));
    differences.expect_equal("first uncleanable offset", ours.first_uncleanable.value, number(kafkas.at("firstUncleanableOffset")));
    differences.expect_equal("checkpoint repair", ours.repaired_checkpoint.has_value(), kafkas.at("forceUpdateCheckpoint").as_bool());
    std::vector<std::int64_t> estimates, kafkas_estimates;
    for (const auto& t : ours.estimates) estimates.push_back(or_none(t));
    for (const auto& t : kafkas.at("firstBatchTimestamps").as_array()) kafkas_estimates.push_back(number(t));
    differences.expect_equal("first batch timestamps", fmt::format("{}", fmt::join(estimates, " ")), fmt::format("{}", fmt::join(kafkas_estimates, " ")));
    differences.expect_equal("earliest uncompacted timestamp", or_none(ours.earliest_uncompacted),
                             number_or_null(kafkas, "earliestUncompactedTimestamp").value_or(or_none(std::nullopt)));
    if (const auto deadline = number_or_null(kafkas, "mustCleanDeadlineMs")) {
        const auto earliest = ours.deadline && ours.held_deadline ? std::min(*ours.deadline, *ours.held_deadline) : ours.deadline ? *ours.deadline : ours.held_deadline.value_or(Timestamp{-1});
        differences.expect_equal("deadline", earliest.value, *deadline);
    }
    differences.expect_equal("compaction delay", ours.delay_ms, number(kafkas.at("maxCompactionDelayMs")));
    // Kafka asks for cleanable bytes only when it selects.
    differences.expect_equal("must clean", ours.delay_ms > 0, kafkas.at("mustClean").as_bool());
    differences.expect_equal("clean bytes", ours.clean_bytes, number(kafkas.at("cleanBytes")));
    differences.expect_equal("cleanable bytes", ours.cleanable_bytes, number(kafkas.at("cleanableBytes")));
    differences.expect_equal("total bytes", ours.total_bytes(), number(kafkas.at("totalBytes")));
    if (const auto& ratio = kafkas.at("cleanableRatio"); ratio.is_number()) expect_close("ratio", ours.ratio(), ratio.to_number<double>(), differences);
    else differences.expect_equal("ratio is a number", ours.ratio() == ours.ratio(), false);
    differences.expect_equal("min.cleanable.dirty.ratio", config.min_cleanable_dirty_ratio, kafkas.at("minCleanableDirtyRatio").to_number<double>());
}

void compare_stats(const cleaner::PassStats& ours, const json::object& kafkas, Differences& differences) {
    differences.expect_equal("end offset", ours.end_offset.value, number(kafkas.at("endOffset")));
    differences.expect_equal("bytes read", ours.bytes_read, number(kafkas.at("bytesRead")));
    differences.expect_equal("bytes written", ours.bytes_written, number(kafkas.at("bytesWritten")));
    differences.expect_equal("map bytes read", ours.map_bytes_read, number(kafkas.at("mapBytesRead")));
    differences.expect_equal("map messages read", ours.map_messages_read, number(kafkas.at("mapMessagesRead")));
    differences.expect_equal("messages read", ours.messages_read, number(kafkas.at("messagesRead")));
    differences.expect_equal("invalid messages read", ours.invalid_messages_read, number(kafkas.at("invalidMessagesRead")));
    differences.expect_equal("messages written", ours.messages_written, number(kafkas.at("messagesWritten")));
    expect_close("buffer utilization", ours.buffer_utilization, kafkas.at("bufferUtilization").to_number<double>(), differences);
}

std::string text_of(const cleaner::PassStats& s) {
    return json::serialize(json::object{{"endOffset", s.end_offset.value},
                                        {"bytesRead", s.bytes_read},
                                        {"bytesWritten", s.bytes_written},
                                        {"mapBytesRead", s.map_bytes_read},
                                        {"mapMessagesRead", s.map_messages_read},
                                        {"messagesRead", s.messages_read},
                                        {"invalidMessagesRead", s.invalid_messages_read},
                                        {"messagesWritten", s.messages_written},
                                        {"bufferUtilization", s.buffer_utilization}});
}

}  // namespace

void compare_deletions(const retention::Applied& ours, const json::array& kafkas, Differences& differences) {
    std::string mine, theirs;
    for (const auto& d : ours.decision.deletions) {
        const auto& segment = ours.state.segments[d.segment];
        const auto reason = d.rule != retention::Rule::retention_ms ? std::string{to_string(d.rule)}
                            : d.by_file_time ? "retention.ms by file modification time" : "retention.ms by largest record timestamp";
        mine += fmt::format("{} ({} bytes, {}) ", segment.base_offset.value, segment.bytes, reason);
    }
    for (const auto& d : kafkas) theirs += fmt::format("{} ({} bytes, {}) ", number(d.at("baseOffset")), number(d.at("size")), std::string{d.at("reason").as_string()});
    differences.expect_equal("deletions", mine, theirs);
}

CleanRound clean_round(OpenCase& open, std::optional<Offset> checkpoint, const Switches& switches) {
    auto& log = *open.log;
    const auto state = must(cleaner::read_log_state(log, checkpoint));
    CleanRound round{.decision = cleaner::decide(state, *log.config(), open.clock.now(), 15'000, switches.cleaner), .checkpoint = checkpoint};
    if (round.decision.repaired_checkpoint) round.checkpoint = round.decision.repaired_checkpoint;
    const cleaner::Candidate candidate{&round.decision, {}};
    if (cleaner::select_next({&candidate, 1}, {}, open.clock.now(), switches.cleaner)) {
        cleaner::Workspace work{.map = cleaner::OffsetMap({.buffer_bytes = number_setting(open.settings, "log.cleaner.dedupe.buffer.size", 1 << 20)}, cleaner::HashKey{1, 2})};
        cleaner::Throttle throttle(open.clock);
        const cleaner::PassOptions options{.buffer_bytes = number_setting(open.settings, "log.cleaner.io.buffer.size", 512 << 10) / 2,
                                           .broker_message_bytes_max = number_setting(open.settings, "message.max.bytes", 1'048'588), .differences = switches.cleaner};
        round.pass = cleaner::run_pass(log, {.first_dirty = round.decision.first_dirty, .cleanable_end = round.decision.cleanable_end}, options, work, throttle, open.clock,
                                       [] { return Result<>{}; });
        round.checkpoint = *round.pass ? (*round.pass)->end_offset : round.decision.first_dirty;
        // After what was not asked for, Kafka's thread does not come to deletion in this round.
        if (!*round.pass && round.pass->error().code != Errc::aborted) return round;
    }
    round.retention = retention::apply_retention(log, open.clock.now(), switches.retention);
    return round;
}

Differences play_clean(const Case& golden, std::size_t action) {
    Differences differences;
    const auto& step = golden.actions().at(action).as_object();
    const auto& args = step.at("args").as_object();
    const auto& outcome = step.at("outcome").as_object();
    const auto high_watermark = number_or_null(args, "highWatermark");
    OpenCase open(golden, golden.directory_before(action), golden.settings(args), Timestamp{number(args.at("now"))}, high_watermark ? std::optional{Offset{*high_watermark}} : std::nullopt);
    auto& log = *open.log;
    const auto given = number_or_null(args, "checkpoint");
    const auto checkpoint = given ? std::optional{Offset{*given}} : open.checkpoint(storage::file_name::cleaner_checkpoint);
    compare_offsets(log, outcome.at("decision").as_object(), differences);

    const auto round = clean_round(open, checkpoint, golden.switches());
    compare_decision(round.decision, *log.config(), checkpoint, outcome.at("decision").as_object(), differences);
    differences.expect_equal("selected", round.pass.has_value(), outcome.at("decision").at("selected").as_bool());
    if (round.pass) {
        const auto* failed = outcome.if_contains("failed");
        const auto* stats = outcome.if_contains("stats");
        if (*round.pass && failed) differences.add("cleaned, where Kafka failed: " + json::serialize(*failed));
        else if (!*round.pass && !failed) differences.fail("cleaning", round.pass->error());
        else if (*round.pass && !stats) differences.add("cleaned, where Kafka did not: " + text_of(**round.pass));
        else if (*round.pass) compare_stats(**round.pass, stats->as_object(), differences);
    }
    if (round.retention) {
        if (!*round.retention) differences.fail("retention", round.retention->error());
        else compare_deletions(**round.retention, outcome.at("deletions").as_array(), differences);
        const auto& result = outcome.at("result").as_object();
        compare_offsets(log, result, differences);
        differences.expect_equal("new cleaner checkpoint", round.checkpoint.value_or(Offset{-1}).value, number_or_null(result, "cleanerCheckpoint").value_or(-1));
        compare_producers(log, outcome.at("producers").as_array(), differences);
    }
    if (const auto closed = open.close(); !closed) differences.fail("closing", closed.error());
    open.compare(golden, std::string{step.at("dir").as_string()}, std::to_string(action + 1), differences);
    return differences;
}

}  // namespace tidemark::golden
