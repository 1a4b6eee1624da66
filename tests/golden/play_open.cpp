// `recover`: opening after a stop of either kind. `lookup`: offsets by time, of a log that was stopped cleanly.
#include "storage/segment.h"
#include "tests/golden/golden_case.h"

namespace tidemark::golden {
namespace {

std::optional<Offset> high_watermark_of(const json::object& args) {
    const auto given = number_or_null(args, "highWatermark");
    return given ? std::optional{Offset{*given}} : std::nullopt;
}

void compare_segments(const storage::Log& log, const json::object& kafkas, Differences& differences) {
    json::array bases, sizes;
    const auto segments = log.segments();
    for (const auto& segment : *segments) {
        bases.push_back(segment->base_offset().value);
        sizes.push_back(segment->bytes());
    }
    differences.expect_equal("segments", json::serialize(bases), json::serialize(kafkas.at("segments")));
    differences.expect_equal("segment sizes", json::serialize(sizes), json::serialize(kafkas.at("segmentSizes")));
}

std::string text_of(const std::optional<storage::FoundOffset>& found) {
    return found ? fmt::format("{} at {} epoch {}", found->offset.value, found->timestamp.value, found->leader_epoch) : "none";
}

std::string text_of(const json::object& found) {
    const auto offset = number_or_null(found, "offset");
    return offset ? fmt::format("{} at {} epoch {}", *offset, number_or_null(found, "timestamp").value_or(-1), number_or_null(found, "leaderEpoch").value_or(-1)) : "none";
}

Result<std::optional<storage::FoundOffset>> look_up(const storage::Log& log, std::int64_t query) {
    constexpr auto isolation = storage::Isolation::log_end;
    if (query == -1) return std::optional{log.latest_offset(isolation)};
    if (query == -2 || query == -4) return std::optional{log.earliest_offset()};
    if (query == -3) return log.offset_of_max_timestamp(isolation);
    return log.offset_for_time(Timestamp{query}, isolation);
}

}  // namespace

Differences play_recover(const Case& golden, std::size_t action) {
    Differences differences;
    const auto& step = golden.actions().at(action).as_object();
    const auto& args = step.at("args").as_object();
    const auto& outcome = step.at("outcome").as_object();
    OpenCase open(golden, golden.settings(args), Timestamp{number(args.at("now"))});
    open.copy(golden, golden.directory_before(action));
    const auto opened = open.open({.clean = outcome.at("clean").as_bool(), .high_watermark = high_watermark_of(args), .producers_now = true});
    if (outcome.contains("failed")) {
        if (opened) differences.add("opened, where Kafka failed: " + json::serialize(outcome.at("failed")));
        return differences;
    }
    if (!opened) {
        differences.fail("opening", opened.error());
        return differences;
    }
    compare_offsets(*open.log, outcome.at("result").as_object(), differences);
    compare_segments(*open.log, outcome.at("result").as_object(), differences);
    compare_producers(*open.log, outcome.at("producers").as_array(), differences);
    if (const auto closed = open.close(); !closed) differences.fail("closing", closed.error());
    open.compare(golden, std::string{step.at("dir").as_string()}, std::to_string(action + 1), differences);
    return differences;
}

Differences play_lookup(const Case& golden, std::size_t action) {
    Differences differences;
    const auto& step = golden.actions().at(action).as_object();
    const auto& args = step.at("args").as_object();
    OpenCase open(golden, golden.directory_before(action), golden.settings(args), Timestamp{number(args.at("now"))}, high_watermark_of(args));
    for (const auto& result : step.at("outcome").at("results").as_array()) {
        const auto& kafkas = result.as_object();
        const auto query = number(kafkas.at("query"));
        const auto found = look_up(*open.log, query);
        if (!found) differences.fail(fmt::format("lookup of {}", query), found.error());
        else differences.expect_equal(fmt::format("lookup of {}", query).c_str(), text_of(*found), text_of(kafkas));
    }
    return differences;
}

}  // namespace tidemark::golden
