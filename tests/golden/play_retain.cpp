// `retain`: one round of retention.
#include "storage/segment.h"
#include "tests/golden/clean_round.h"

namespace tidemark::golden {

namespace {

void compare_segments(const retention::LogState& ours, const json::array& kafkas, Differences& differences) {
    std::string mine, theirs;
    for (const auto& s : ours.segments) {
        mine += fmt::format("{}: {} bytes, modified {}, largest {} {}\n", s.base_offset.value, s.bytes, s.modified.value().value, s.largest_record_timestamp.value_or(no_timestamp).value,
                            s.largest_timestamp().value().value);
    }
    for (const auto& s : kafkas) {
        theirs += fmt::format("{}: {} bytes, modified {}, largest {} {}\n", number(s.at("baseOffset")), number(s.at("size")), number(s.at("lastModified")),
                              number_or_null(s.as_object(), "largestRecordTimestamp").value_or(-1), number(s.at("largestTimestamp")));
    }
    differences.expect_equal("segments", mine, theirs);
}

}  // namespace

Differences play_retain(const Case& golden, std::size_t action) {
    Differences differences;
    const auto& step = golden.actions().at(action).as_object();
    const auto& args = step.at("args").as_object();
    const auto& outcome = step.at("outcome").as_object();
    const auto high_watermark = number_or_null(args, "highWatermark");
    OpenCase open(golden, golden.directory_before(action), golden.settings(args), Timestamp{number(args.at("now"))},
                  high_watermark ? std::optional{Offset{*high_watermark}} : std::nullopt);
    auto& log = *open.log;
    const auto& decision = outcome.at("decision").as_object();
    compare_offsets(log, decision, differences);
    if (const auto state = retention::read_log_state(log, retention::Times::all)) compare_segments(*state, decision.at("segments").as_array(), differences);
    else differences.fail("reading the log's state", state.error());

    const auto applied = retention::apply_retention(log, open.clock.now(), golden.switches().retention);
    if (!applied) differences.fail("retention", applied.error());
    else compare_deletions(*applied, outcome.at("deletions").as_array(), differences);
    compare_offsets(log, outcome.at("result").as_object(), differences);
    compare_producers(log, outcome.at("producers").as_array(), differences);
    if (const auto closed = open.close(); !closed) differences.fail("closing", closed.error());
    open.compare(golden, std::string{step.at("dir").as_string()}, std::to_string(action + 1), differences);
    return differences;
}

}  // namespace tidemark::golden
