// Steps of a script: `extend`, which goes on with a stored directory, and the `build` that a case begins with.
#include <algorithm>

#include "base/bytes.h"
#include "storage/directory_names.h"
#include "storage/segment.h"
#include "tests/golden/batches.h"
#include "tests/golden/clean_round.h"

namespace tidemark::golden {
namespace {

/// Plays one step after the other. What the log's settings and leader epoch are changes on the way.
class Player {
public:
    Player(OpenCase& open, LeaderEpoch leader_epoch) : open_(open), leader_epoch_(leader_epoch) {}

    void play(const json::array& steps) {
        for (const auto& step : steps) {
            play(step.as_object());
            open_.directory->run_background();
        }
    }

private:
    storage::Log& log() { return *open_.log; }
    BatchPlace place() { return {.now = open_.clock.now(), .base = log().log_end_offset(), .leader_epoch = leader_epoch_}; }

    /// The wall clock of the script; what waits for a delay sees the same time pass.
    void set_clock(Timestamp to) {
        if (to >= open_.clock.now()) open_.clock.advance(std::chrono::milliseconds{to - open_.clock.now()});
        else open_.clock.jump_to(to);
    }
    void append(const json::object& batch) {
        auto bytes = build_batch(batch, {.now = open_.clock.now()});
        const auto appended = log().append(bytes, {.leader_epoch = leader_epoch_});
        const auto* may_fail = batch.if_contains("mayFail");
        if (!appended && (may_fail == nullptr || !may_fail->as_bool())) must(appended);
        touch();
        follow();
    }
    /// As the leader of a broker that still took old formats: at the log's end, with the topic's kind of timestamp.
    void append_legacy(const json::object& batch) {
        auto bytes = build_batch(batch, place());
        if (log().config()->timestamp_type == record::TimestampType::log_append_time) set_append_time(bytes, open_.clock.now());
        must(log().append(bytes, {.origin = record::Origin::replication, .leader_epoch = leader_epoch_}));
        follow();
    }
    void append_as_follower(const json::array& batches) {
        for (const auto& batch : batches) {
            auto bytes = build_batch(batch.as_object(), place());
            must(log().append(bytes, {.origin = record::Origin::replication, .leader_epoch = leader_epoch_}));
            follow();
        }
    }
    void append_marker(const json::object& marker) {
        auto bytes = build_marker(marker, {.now = open_.clock.now()});
        const auto version = number_or_null(marker, "txnVersion").value_or(0);
        must(log().append(bytes, {.origin = record::Origin::coordinator, .leader_epoch = leader_epoch_, .transaction_version = static_cast<std::int16_t>(version)}));
        follow();
    }
    /// The oracle counts a refused append as a write.
    void touch() { must(open_.files.set_modified(log().segments()->back()->log_path(), open_.clock.now())); }
    /// Kafka makes an empty segment anew.
    void roll() {
        must(log().roll());
        touch();
    }
    void follow() {
        if (high_watermark_) log().set_high_watermark(*high_watermark_);
    }
    void configure(const json::object& config) {
        for (const auto& [key, value] : config) open_.settings[std::string{key}] = std::string{value.as_string()};
        log().set_config(std::make_shared<const storage::LogConfig>(log_config(open_.settings)));
    }
    void reopen(bool clean) {
        if (clean) must(open_.close());
        else open_.crash();
        must(open_.open({.clean = clean}));
        follow();
    }
    /// On the log as a clean stop leaves it, which is stopped again afterwards.
    void clean_or_retain(bool clean) {
        reopen(true);
        if (clean) run_clean_round(open_);
        else must(retention::apply_retention(log(), open_.clock.now(), open_.switches().retention));
        reopen(true);
    }
    void play(const json::object& step) {
        const auto name = step.begin()->key();
        const auto& value = step.begin()->value();
        if (const auto* times = step.if_contains("repeat")) {
            for (auto i = number(*times); i > 0; --i) {
                for (const auto& inner : step.at("steps").as_array()) play(inner.as_object());
            }
        } else if (name == "advance") set_clock(open_.clock.now() + number(value));
        else if (name == "now") set_clock(Timestamp{number(value)});
        else if (name == "append") append(value.as_object());
        else if (name == "legacy") append_legacy(value.as_object());
        else if (name == "follower") append_as_follower(value.as_array());
        else if (name == "marker") append_marker(value.as_object());
        else if (name == "roll") roll();
        else if (name == "leaderEpoch") must(log().assign_epoch(leader_epoch_ = static_cast<LeaderEpoch>(number(value))));
        else if (name == "config") configure(value.as_object());
        else if (name == "hw") log().set_high_watermark(*(high_watermark_ = Offset{number(value)}));
        else if (name == "logStartOffset") must(log().delete_records_before(Offset{number(value)}));
        else if (name == "snapshot") must(log().take_producer_snapshot());
        else if (name == "flush") must(log().flush(false));
        else if (name == "expireProducers") log().expire_producers(open_.clock.now());
        else if (name == "truncateTo") must(log().truncate_to(Offset{number(value)}));
        else if (name == "reopen") reopen(value.as_string() == "clean");
        else if ((name == "clean" || name == "retain") && value.as_object().empty()) clean_or_retain(name == "clean");
        else throw std::runtime_error("unknown step " + json::serialize(step));
    }

    OpenCase& open_;
    LeaderEpoch leader_epoch_;
    std::optional<Offset> high_watermark_;
};

/// Steps that are played with no arguments only.
bool is_plain(const json::array& steps) {
    return std::ranges::all_of(steps, [](const json::value& step) {
        const auto& s = step.as_object();
        const auto* clean = s.contains("clean") ? s.if_contains("clean") : s.if_contains("retain");
        const auto* inner = s.if_contains("steps");
        return (clean == nullptr || clean->as_object().empty()) && (inner == nullptr || is_plain(inner->as_array()));
    });
}

LeaderEpoch leader_epoch_of(const json::object& object) { return static_cast<LeaderEpoch>(number_or_null(object, "leaderEpoch").value_or(0)); }

}  // namespace

void run_clean_round(OpenCase& open) {
    const auto round = clean_round(open, open.checkpoint(storage::file_name::cleaner_checkpoint), open.switches());
    if (round.pass && !*round.pass) throw std::runtime_error(round.pass->error().message());
    if (round.retention) must(*round.retention);
    open.write_checkpoint(storage::file_name::cleaner_checkpoint, round.checkpoint);
}

void play_steps(OpenCase& open, const json::array& steps, LeaderEpoch leader_epoch) { Player(open, leader_epoch).play(steps); }

Differences play_extend(const Case& golden, std::size_t action) {
    Differences differences;
    const auto& step = golden.actions().at(action).as_object();
    const auto& args = step.at("args").as_object();
    const auto& outcome = step.at("outcome").as_object();
    OpenCase open(golden, golden.directory_before(action), golden.settings(args), Timestamp{number(args.at("now"))}, std::nullopt);
    play_steps(open, args.at("steps").as_array(), leader_epoch_of(args));
    differences.expect_equal("the clock", open.clock.now().value, number(outcome.at("now")));
    compare_offsets(*open.log, outcome.at("result").as_object(), differences);
    compare_producers(*open.log, outcome.at("producers").as_array(), differences);
    if (const auto closed = open.close(); !closed) differences.fail("closing", closed.error());
    open.compare(golden, std::string{step.at("dir").as_string()}, std::to_string(action + 1), differences);
    return differences;
}

bool has_playable_build(const Case& golden) {
    const auto& script = golden.script();
    const auto* close = script.if_contains("close");
    if (script.empty() || script.contains("raw") || script.contains("tamper") || script.contains("mtimes")) return false;
    return (close == nullptr || close->as_string() == "clean") && is_plain(script.at("build").as_array());
}

Differences play_build(const Case& golden) {
    Differences differences;
    const auto& script = golden.script();
    std::map<std::string, std::string> settings;
    for (const auto& [key, value] : script.at("config").as_object()) settings[std::string{key}] = std::string{value.as_string()};
    OpenCase open(golden, std::move(settings), Timestamp{number(script.at("startMs"))});
    std::optional<Uuid> topic_id;
    if (const auto* id = script.if_contains("topicId")) topic_id = Uuid::parse(std::string_view{id->as_string()}).value();
    must(open.open({}, topic_id));
    play_steps(open, script.at("build").as_array(), leader_epoch_of(script));
    differences.expect_equal("the clock", open.clock.now().value, number(golden.build().at("now")));
    compare_offsets(*open.log, golden.build().at("atClose").as_object(), differences);
    compare_producers(*open.log, golden.build().at("producers").as_array(), differences);
    if (const auto closed = open.close(); !closed) differences.fail("closing", closed.error());
    open.compare(golden, "before", "build", differences);
    return differences;
}

}  // namespace tidemark::golden
