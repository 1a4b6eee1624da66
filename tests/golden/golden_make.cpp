// golden_make [--crash] CASE DIRECTORY: plays the whole script of a golden case, its build and every action, on the project's
// own storage with our defaults, and writes the log directory that comes of it. Prints what the log holds as JSON, in the
// words of the oracle's dump, so that Apache Kafka's classes can be asked whether they see the same. --crash ends as a kill
// does; otherwise the log is closed in order.
#include <spdlog/spdlog.h>

#include <boost/beast/core/detail/base64.hpp>

#include <cstdio>
#include <iostream>

#include "record/record.h"
#include "storage/batch_reader.h"
#include "storage/segment.h"
#include "tests/golden/golden_case.h"

namespace tidemark::golden {
namespace {

json::value base64(std::optional<Bytes> bytes) {
    namespace coding = boost::beast::detail::base64;
    if (!bytes) return nullptr;
    std::string text(coding::encoded_size(bytes->size()), '\0');
    text.resize(coding::encode(text.data(), bytes->data(), bytes->size()));
    return json::value(text);
}

json::object describe(const record::BatchView& batch, FilePosition position, record::RecordReader& reader) {
    json::array records;
    must(reader.open(batch));
    for (;;) {
        const auto r = must(reader.next());
        if (!r) break;
        records.push_back(json::object{{"offset", r->offset.value}, {"timestamp", r->timestamp.value}, {"key", base64(r->key)}, {"value", base64(r->value)}});
    }
    return {{"position", position.value}, {"size", batch.size()}, {"lastOffset", batch.last_offset().value}, {"magic", batch.magic()}, {"crc", batch.crc()}, {"records", records}};
}

json::array describe_segments(const storage::Log& log) {
    json::array all;
    record::RecordReader reader;
    const auto segments = log.segments();
    for (const auto& segment : *segments) {
        json::array batches;
        const auto file = must(segment->file());
        storage::BatchWalk walk(*file, FilePosition{0}, segment->bytes());
        for (;;) {
            const auto batch = must(walk.next());
            if (!batch) break;
            batches.push_back(describe(*batch, walk.position(), reader));
        }
        all.push_back(json::object{{"baseOffset", segment->base_offset().value}, {"size", segment->bytes()}, {"batches", batches}});
    }
    return all;
}

json::array describe_producers(const storage::Log& log) {
    json::array all;
    for (const auto& p : log.producers()) {
        all.push_back(json::object{{"producerId", p.producer_id},
                                   {"producerEpoch", p.epoch},
                                   {"coordinatorEpoch", p.coordinator_epoch},
                                   {"lastTimestamp", p.last_timestamp.value},
                                   {"lastSequence", p.last_sequence},
                                   {"currentTxnFirstOffset", p.current_transaction_first_offset ? json::value(p.current_transaction_first_offset->value) : json::value(nullptr)}});
    }
    return all;
}

json::object describe(const OpenCase& open) {
    const auto& log = *open.log;
    must(log.load_producers());
    return {{"now", open.clock.now().value},
            {"result", json::object{{"logStartOffset", log.log_start_offset().value},
                                    {"highWatermark", log.high_watermark().value},
                                    {"lastStableOffset", log.last_stable_offset().value},
                                    {"logEndOffset", log.log_end_offset().value}}},
            {"producers", describe_producers(log)},
            {"segments", describe_segments(log)}};
}

/// The actions as steps: each begins on a log that was stopped cleanly, at its own time.
json::array steps_of(const Case& golden) {
    json::array steps;
    for (const auto& action : golden.actions()) {
        const std::string kind{action.at("outcome").at("action").as_string()};
        const auto& args = action.at("args").as_object();
        if (kind == "lookup") continue;
        steps.push_back(json::object{{"now", args.at("now")}});
        if (kind == "extend") steps.insert(steps.end(), args.at("steps").as_array().begin(), args.at("steps").as_array().end());
        else if (kind == "recover") steps.push_back(json::object{{"reopen", "unclean"}});
        else steps.push_back(json::object{{kind, json::object{}}});
    }
    return steps;
}

void make(const std::string& path, const std::string& directory, bool crash) {
    const Case golden(path, Switches::ours());
    const auto& script = golden.script();
    std::map<std::string, std::string> settings;
    for (const auto& [key, value] : script.at("config").as_object()) settings[std::string{key}] = std::string{value.as_string()};
    OpenCase open(golden, std::move(settings), Timestamp{number(script.at("startMs"))});
    must(open.open({}));
    const auto leader_epoch = static_cast<LeaderEpoch>(number_or_null(script, "leaderEpoch").value_or(0));
    play_steps(open, script.at("build").as_array(), leader_epoch);
    play_steps(open, steps_of(golden), leader_epoch);
    auto described = describe(open);
    if (crash) open.crash();
    else must(open.close());
    open.write_to(directory);
    // A start forgets the producers that have expired, and what was known of them beyond the records.
    must(open.open({.clean = !crash, .producers_now = true}));
    described["producers"] = describe_producers(*open.log);
    std::cout << described << '\n';
}

}  // namespace
}  // namespace tidemark::golden

int main(int argc, char** argv) {
    const bool crash = argc > 1 && std::string_view{argv[1]} == "--crash";
    if (argc != (crash ? 4 : 3)) {
        std::fputs("usage: golden_make [--crash] CASE DIRECTORY\n", stderr);
        return 2;
    }
    spdlog::set_level(spdlog::level::off);  // standard output is for the answer
    try {
        tidemark::golden::make(argv[argc - 2], argv[argc - 1], crash);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
