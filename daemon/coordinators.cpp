#include "daemon/coordinators.h"

#include <algorithm>
#include <future>

#include "coordinator/internal_topics.h"
#include "daemon/broker.h"
#include "metadata/effective_config.h"

namespace tidemark::daemon {

namespace {

metadata::ConfigLayers layers_of(const Broker& broker, const metadata::Image& image) { return metadata::config_layers(image, broker.node_id(), *broker.file_config()); }

coordinator::RuntimeOptions group_runtime(const Broker& broker, const metadata::ConfigLayers& layers) {
    const auto number = [&](std::string_view key) { return metadata::broker_integer(layers, key); };
    return {.topic = std::string{coordinator::group_topic},
            .node_id = broker.node_id(),
            .load_buffer_bytes = number("offsets.load.buffer.size"),
            .commit_timeout_ms = number("offsets.commit.timeout.ms"),
            .codec = static_cast<record::Codec>(number("offsets.topic.compression.codec")),
            .base_sequence = 0};
}

/// How long an answer waits for its sync: as long as clients wait for answers.
constexpr std::int64_t transaction_write_ms_max = 30'000;

coordinator::RuntimeOptions transaction_runtime(const Broker& broker, const metadata::ConfigLayers& layers) {
    return {.topic = std::string{coordinator::transaction_topic},
            .node_id = broker.node_id(),
            .load_buffer_bytes = metadata::broker_integer(layers, "transaction.state.log.load.buffer.size"),
            .commit_timeout_ms = transaction_write_ms_max,
            .base_sequence = -1};
}

coordinator::TransactionOptions transaction_options(const metadata::ConfigLayers& layers) {
    const auto number = [&](std::string_view key) { return metadata::broker_integer(layers, key); };
    return {.timeout_ms_max = static_cast<std::int32_t>(number("transaction.max.timeout.ms")),
            .expiration_ms = number("transactional.id.expiration.ms"),
            .abort_interval_ms = number("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            .expire_interval_ms = number("transaction.remove.expired.transaction.cleanup.interval.ms"),
            .retry_ms_max = number("add.partitions.to.txn.retry.backoff.max.ms"),
            .two_phase_commit = metadata::broker_boolean(layers, "transaction.two.phase.commit.enable")};
}

coordinator::RuntimeParts runtime_parts(Broker& broker) {
    const bool wait_for_disk = broker.options()->durability != storage::Durability::page_cache;
    return {.clock = broker.clock(),
            .open_journal = [&broker, wait_for_disk](const TopicPartition& partition) -> std::shared_ptr<coordinator::Journal> {
                auto log = broker.logs().find(partition);
                return log ? coordinator::journal_of(std::move(log), wait_for_disk) : nullptr;
            },
            .executor = [&broker](std::function<void()> job) { broker.disk().submit(std::move(job)); }};
}

}  // namespace

Coordinators::Coordinators(Broker& broker)
    : broker_(broker),
      groups_(group_runtime(broker, layers_of(broker, *broker.image())), runtime_parts(broker), coordinator::group_options(layers_of(broker, *broker.image()))),
      transactions_(transaction_options(layers_of(broker, *broker.image())), transaction_runtime(broker, layers_of(broker, *broker.image())),
                    {.runtime = runtime_parts(broker),
                     .image = [&broker] { return broker.image(); },
                     .next_producer_id = [&broker] { return broker.controller().next_producer_id(); },
                     .write_group_marker = [this](std::int32_t partition, const coordinator::Marker& marker, const std::function<void(protocol::ErrorCode)>& done) {
                         groups_.write_marker(partition, marker, [done](const coordinator::Coded<coordinator::GroupCoordinator::MarkerWritten>& written) {
                             done(written ? written->error : written.error().code);
                         });
                     }}) {}

void Coordinators::image_changed(const metadata::ImagePtr& image) {
    MutexLock lock(mutex_);
    if (image->offset < seen_) return;
    seen_ = image->offset;
    groups_.image_changed(image, coordinator::group_options(layers_of(broker_, *image)));
    transactions_.image_changed(image);
}

void Coordinators::tick() {
    groups_.tick();
    transactions_.tick();
}

void Coordinators::stop() {
    transactions_.stop();
    groups_.stop();
}

std::vector<GroupStats> Coordinators::group_stats() {
    using Found = std::vector<coordinator::GroupStats>;
    const auto promise = std::make_shared<std::promise<Found>>();
    auto future = promise->get_future();
    groups_.stats([promise](coordinator::Coded<Found> found) { promise->set_value(found ? *std::move(found) : Found{}); });
    if (future.wait_for(std::chrono::seconds{1}) != std::future_status::ready) return {};
    std::vector<GroupStats> all;
    for (auto& group : future.get()) {
        auto& stats = all.emplace_back(GroupStats{.id = std::move(group.id), .type = std::string{coordinator::to_string(group.type)}, .state = std::move(group.state), .members = group.members});
        for (auto& [topic, partition, offset] : group.offsets) {
            const auto log = broker_.logs().find({topic, partition});
            const auto lag = log ? std::optional{std::max<std::int64_t>(log->high_watermark().value - offset, 0)} : std::nullopt;
            stats.partitions.push_back({.topic = std::move(topic), .partition = partition, .committed = offset, .lag = lag});
        }
    }
    return all;
}

void Coordinators::create_group_topic() { broker_.create_topic_in_background(coordinator::group_topic_settings(layers_of(broker_, *broker_.image()))); }

void Coordinators::create_transaction_topic() { broker_.create_topic_in_background(coordinator::transaction_topic_settings(layers_of(broker_, *broker_.image()))); }

}  // namespace tidemark::daemon
