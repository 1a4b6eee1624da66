#include <boost/json.hpp>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "cleaner/cleaner_pool.h"
#include "cmd/tidemark/at_rest.h"
#include "cmd/tidemark/client.h"
#include "cmd/tidemark/commands.h"
#include "config/config.h"

namespace tidemark::tool {
namespace {

namespace json = boost::json;

void show_progress(const std::string& log, std::int64_t done, std::int64_t total) {
    std::printf("%s: %lld of at most %lld MiB read\n", log.c_str(), static_cast<long long>(done >> 20), static_cast<long long>(total >> 20));
    std::fflush(stdout);
}

int ask_for(const CleanOptions& options, std::int32_t partition) {
    const auto log = TopicPartition{options.topic, partition}.text();
    const auto target = fmt::format("/v1/clean?topic={}&partition={}", encoded(options.topic), partition);
    const auto asked = ask_unix(options.daemon.admin_socket, "POST", target + (options.roll ? "&roll=yes" : ""));
    if (!asked) return failed(asked.error());
    if (!options.wait) {
        std::printf("%s will be cleaned at the next round\n", log.c_str());
        return 0;
    }
    const auto request = asked->at("request").to_number<std::int64_t>();
    std::int64_t shown = -1;
    for (;;) {
        const auto answer = ask_unix(options.daemon.admin_socket, "GET", target);
        if (!answer) return failed(answer.error());
        const auto& state = answer->as_object();
        if (state.at("requests_done").to_number<std::int64_t>() >= request) {
            const std::string result{state.at("result").as_string()};
            std::printf("%s: %s\n", log.c_str(), result.c_str());
            return result == "cleaned" || result == "nothing to clean" ? 0 : 1;
        }
        if (const auto* done = state.if_contains("bytes_read"); done != nullptr && done->to_number<std::int64_t>() != shown) {
            shown = done->to_number<std::int64_t>();
            show_progress(log, shown, state.at("bytes_total").to_number<std::int64_t>());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
}

/// The partitions of the topic, from the daemon.
Result<std::vector<std::int32_t>> partitions_of(const CleanOptions& options) {
    if (options.partition) return std::vector{*options.partition};
    TM_TRY(const auto topic, get_tcp(options.daemon.http, "/api/v1/topics/" + encoded(options.topic)));
    std::vector<std::int32_t> numbers;
    for (const auto& partition : topic.at("partitions").as_array()) numbers.push_back(partition.at("partition").to_number<std::int32_t>());
    return numbers;
}

/// Cleans one log of a directory at rest.
Result<> clean_log(cleaner::CleanerPool& pool, const std::shared_ptr<storage::Log>& log, bool roll) {
    const auto& partition = log->partition();
    if (roll) TM_TRYV(log->roll());
    const auto number = pool.request(partition);
    std::jthread progress([&](const std::stop_token& stop) {
        for (int i = 1; !stop.stop_requested(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
            const auto stats = pool.partition(partition);
            if (i % 10 == 0 && stats && stats->progress) show_progress(partition.text(), stats->progress->bytes_read, stats->progress->bytes_total);
        }
    });
    auto stats = pool.partition(partition);
    for (int round = 0; round < 2 && (!stats || stats->requests_done < number); ++round) {   // what lies below the log's start goes in a round of its own
        (void)pool.run_once();
        stats = pool.partition(partition);
    }
    progress.request_stop();
    if (!stats || stats->requests_done < number) return Error{Errc::io, partition.text() + ": another log was in the way"};
    std::printf("%s: %s\n", partition.text().c_str(), stats->request_result.c_str());
    if (stats->last_pass) {
        const auto& s = stats->last_pass->stats;
        std::printf("    %lld bytes became %lld; %lld superseded, %lld tombstones, %lld expired, %lld below the log's start\n", static_cast<long long>(s.bytes_read),
                    static_cast<long long>(s.bytes_written), static_cast<long long>(s.superseded), static_cast<long long>(s.tombstones_removed), static_cast<long long>(s.expired),
                    static_cast<long long>(s.erased));
    }
    if (stats->request_result == "cleaned" || stats->request_result == "nothing to clean") return {};
    return Error{Errc::io, partition.text() + ": " + stats->request_result};
}

int clean_at_rest(const CleanOptions& options) {
    auto rest = AtRest::open(options.log_dirs, options.config_file);
    if (!rest) return failed(rest.error());
    int status = 0;
    {
        auto settings = config::cleaner_options((*rest)->layers());
        settings.differences.idle_roll = false;   // only what was asked for
        cleaner::CleanerPool pool((*rest)->logs(), (*rest)->clock(), settings, {});
        bool found = false;
        for (const auto& log : (*rest)->logs().logs()) {
            if (log->partition().topic != options.topic || (options.partition && log->partition().partition != *options.partition)) continue;
            found = true;
            if (const auto done = clean_log(pool, log, options.roll); !done) status = std::max(status, failed(done.error()));
        }
        if (!found) status = failed(Error{Errc::invalid_argument, "there is no log of " + options.topic});
    }
    if (const auto closed = (*rest)->close(); !closed) return failed(closed.error());
    return status;
}

}  // namespace

int clean(const CleanOptions& options) {
    if (!options.log_dirs.empty()) return clean_at_rest(options);
    const auto partitions = partitions_of(options);
    if (!partitions) return failed(partitions.error());
    int status = 0;
    for (const auto partition : *partitions) status = std::max(status, ask_for(options, partition));
    return status;
}

}  // namespace tidemark::tool
