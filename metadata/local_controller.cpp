#include "metadata/local_controller.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/log.h"
#include "metadata/features.h"
#include "metadata/replay.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;

constexpr std::int64_t producer_ids_per_block = 1000;
constexpr std::int64_t clean_up_interval_ms = 60'000;
constexpr std::size_t records_per_batch = 1000;            // of the changes at a start
constexpr std::int16_t record_transactions_from = 13;      // metadata.version

/// What this program supports, as its registration says it.
std::map<std::string, BrokerRegistration::LevelRange> registered_features() {
    std::map<std::string, BrokerRegistration::LevelRange> features;
    for (const auto& feature : supported_features()) {
        if (feature.max > 0) features[std::string(feature.name)] = {.min = feature.min, .max = feature.max};
    }
    return features;
}

/// Why this node must not open such metadata (metadata-log 5.5.8, 7.2), nothing when it may.
Result<> check_ours(const Image& image, std::int32_t node_id) {
    for (const auto& [name, topic] : image.topics) {
        for (const auto& [number, partition] : topic->partitions) {
            if (partition.replicas == std::vector<std::int32_t>{node_id}) continue;
            return Error{Errc::unsupported, fmt::format("partition {}-{} is on the brokers [{}], not on node {} alone: Tidemark opens directories of a single node only", name, number,
                                                        fmt::join(partition.replicas, ", "), node_id)};
        }
    }
    for (const auto& [resource, overrides] : image.configs) {
        if (resource.type != ResourceType::topic) continue;
        for (const auto& [key, text] : overrides) {
            const ConfigKey* known = find_config_key(ConfigScope::topic, key);
            if (known == nullptr) {
                log_warning("topic {}: the setting {}={} is unknown and has no effect", resource.name, key, text);
                continue;
            }
            const auto value = parse_config_value(*known, text);
            if (!value.has_value()) return Error{Errc::corrupt, fmt::format("topic {}: {}", resource.name, value.error().context)};
        }
    }
    return {};
}

Outcome failed(const Error& error) {
    return {error.code == Errc::too_large ? ErrorCode::policy_violation : ErrorCode::kafka_storage_error, fmt::format("The change could not be written: {}", error.message())};
}

Outcome& outcome_of(Outcome& answer) { return answer; }
Outcome& outcome_of(CreatedTopic& answer) { return answer.outcome; }
Outcome& outcome_of(DeletedTopic& answer) { return answer.outcome; }

}  // namespace

MetadataLogOptions metadata_log_options(const ConfigLayers& layers, io::Path directory) {
    MetadataLogOptions options;
    options.directory = std::move(directory);
    options.segment_bytes = broker_integer(layers, "metadata.log.segment.bytes");
    if (const auto test_size = broker_value(layers, "internal.metadata.log.segment.bytes")) options.segment_bytes = test_size->integer;
    options.segment_ms = broker_integer(layers, "metadata.log.segment.ms");
    options.snapshot_bytes = broker_integer(layers, "metadata.log.max.record.bytes.between.snapshots");
    options.snapshot_ms = broker_integer(layers, "metadata.log.max.snapshot.interval.ms");
    options.retention_bytes = broker_integer(layers, "metadata.max.retention.bytes");
    options.retention_ms = broker_integer(layers, "metadata.max.retention.ms");
    return options;
}

Result<std::unique_ptr<LocalController>> LocalController::open(io::FileSystem& files, const Clock& clock, LocalControllerOptions options) {
    options.log.node_id = options.node_id;
    if (!options.directory_ids.empty()) options.log.directory_id = options.directory_ids.front();
    TM_TRYV(MetadataLog::format(files, clock, options.log.directory, options.bootstrap));
    TM_TRY(auto opened, MetadataLog::open(files, clock, options.log));
    TM_TRYV(check_ours(*opened.image, options.node_id));
    TM_TRY(auto own_settings, read_own_settings(files, options.log.directory));
    return std::unique_ptr<LocalController>(new LocalController(files, clock, std::move(options), std::move(opened), std::move(own_settings)));
}

LocalController::LocalController(io::FileSystem& files, const Clock& clock, LocalControllerOptions options, MetadataLog::Opened opened, OwnSettings own_settings)
    : files_(files), clock_(clock), options_(std::move(options)), log_(std::move(opened.log)), log_in_transaction_(opened.in_transaction), bootstrap_(std::move(opened.bootstrap)),
      own_settings_(std::move(own_settings)), image_(std::move(opened.image)), file_(std::make_shared<const ConfigMap>(options_.file)) {
    epoch_ = log_->epoch();
    end_offset_ = log_->end_offset().value;
}

LocalController::~LocalController() = default;

// --- start and stop ------------------------------------------------------------------------------------------------

Result<> LocalController::start() {
    MutexLock lock(mutex_);
    TM_ASSERT(!started_);
    const Offset leader_change = log_->end_offset();
    TM_TRYV(log_->begin_epoch());
    started_ = true;
    epoch_ = log_->epoch();
    ImageBuilder builder(image_.get());
    builder.pass(log_->end_offset() - 1);
    end_offset_ = log_->end_offset().value;
    image_.put(std::move(builder).build());
    log_info("[__cluster_metadata-0] epoch {} begins at offset {}", log_->epoch(), leader_change.value);
    if (log_in_transaction_) {
        // The records before it are void: the image was replayed without them.
        const protocol::MetadataRecord abort = protocol::AbortTransactionRecord{.reason = "Controller failover"};
        TM_TRYV(log_->append(std::span(&abort, 1), image_.get()->metadata_version()));
        ImageBuilder after(image_.get());
        after.pass(log_->end_offset() - 1);
        end_offset_ = log_->end_offset().value;
        image_.put(std::move(after).build());
        log_in_transaction_ = false;
    }
    TM_TRYV(write_bootstrap());
    TM_TRYV(register_broker());
    TM_TRYV(lead_partitions());
    return restore_own_settings();
}

Result<> LocalController::write_bootstrap() {
    if (bootstrap_.empty()) return {};
    std::vector<protocol::MetadataRecord> records = std::exchange(bootstrap_, {});
    std::int16_t version = 0, elr = 0;
    for (const auto& record : records) {
        const auto* feature = std::get_if<protocol::FeatureLevelRecord>(&record);
        if (feature == nullptr) continue;
        if (feature->name == "metadata.version") version = feature->feature_level;
        if (feature->name == "eligible.leader.replicas.version") elr = feature->feature_level;
    }
    if (elr >= 1) {
        const ConfigLayers file_only{.broker = {}, .cluster = {}, .file = options_.file};
        records.emplace_back(protocol::ConfigRecord{.resource_type = static_cast<std::int8_t>(ResourceType::broker), .resource_name = "", .name = "min.insync.replicas",
                                                    .value = std::to_string(broker_integer(file_only, "min.insync.replicas"))});
    }
    if (version >= record_transactions_from) {
        records.insert(records.begin(), protocol::BeginTransactionRecord{.name = "Bootstrap records"});
        records.emplace_back(protocol::EndTransactionRecord{});
    }
    return commit(records);
}

Result<> LocalController::register_broker() {
    const auto image = image_.get();
    const auto found = image->brokers.find(options_.node_id);
    BrokerRegistration wanted;
    wanted.id = options_.node_id;
    wanted.endpoints = options_.endpoints;
    wanted.log_dirs = options_.directory_ids;
    std::ranges::sort(wanted.log_dirs);
    wanted.rack = options_.rack;
    wanted.features = registered_features();
    wanted.fenced = false;

    std::vector<protocol::MetadataRecord> records;
    const auto same = [&](const BrokerRegistration& stored) {
        BrokerRegistration copy = stored;
        copy.epoch = wanted.epoch;
        copy.incarnation = wanted.incarnation;
        copy.fenced = wanted.fenced;
        std::ranges::sort(copy.log_dirs);
        if (copy.cordoned_log_dirs && copy.cordoned_log_dirs->empty()) copy.cordoned_log_dirs.reset();
        return copy == wanted;
    };
    std::int64_t epoch = log_->end_offset().value;   // of the first record of the batch that registers
    if (found != image->brokers.end() && same(found->second)) {
        epoch = found->second.epoch;
        if (found->second.fenced) records.emplace_back(protocol::BrokerRegistrationChangeRecord{.broker_id = options_.node_id, .broker_epoch = epoch, .fenced = -1});
    } else {
        wanted.epoch = epoch;
        wanted.incarnation = Uuid::random();
        wanted.fenced = true;
        records.emplace_back(register_broker_record(wanted, image->metadata_version()));
        records.emplace_back(protocol::BrokerRegistrationChangeRecord{.broker_id = options_.node_id, .broker_epoch = epoch, .fenced = -1});
    }
    broker_epoch_ = epoch;
    return commit(records);
}

Uuid LocalController::directory_of(const TopicPartition& partition, const Partition& state) {
    if (const auto found = found_directories_.find(partition); found != found_directories_.end()) return found->second;
    const auto& ids = options_.directory_ids;
    if (state.directories.size() == 1 && std::ranges::find(ids, state.directories.front()) != ids.end()) return state.directories.front();
    if (ids.empty()) return state.directories.empty() ? Uuid{} : state.directories.front();
    return ids.front();
}

Result<> LocalController::lead_partitions() {
    const auto image = image_.get();
    std::vector<protocol::MetadataRecord> records;
    for (const auto& [name, topic] : image->topics) {
        for (const auto& [number, partition] : topic->partitions) {
            const auto change = plan_leadership(topic->id, number, partition, options_.node_id, directory_of({name, number}, partition), image->metadata_version());
            if (!change) continue;
            records.emplace_back(*change);
            if (records.size() == records_per_batch) TM_TRYV(commit(std::exchange(records, {})));
        }
    }
    found_directories_.clear();
    return commit(records);
}

Result<> LocalController::restore_own_settings() {
    const auto image = image_.get();
    std::vector<protocol::MetadataRecord> records;
    for (const auto& [key, value] : own_settings_) {
        const Topic* topic = image->find(key.first);
        if (topic == nullptr || image->overrides(ResourceType::topic, topic->name).contains(key.second)) continue;
        log_info("topic {}: {}={} is set again; the metadata log had lost it", topic->name, key.second, value);
        records.emplace_back(protocol::ConfigRecord{.resource_type = static_cast<std::int8_t>(ResourceType::topic), .resource_name = topic->name, .name = key.second, .value = value});
    }
    TM_TRYV(commit(records));
    own_settings_restored_ = true;
    const auto image_now = image_.get();
    auto now = own_settings_of(*image_now);
    if (now == own_settings_) return {};
    own_settings_ = std::move(now);
    return write_own_settings(files_, options_.log.directory, *image_now, own_settings_);
}

Result<std::int64_t> LocalController::stop() {
    MutexLock lock(mutex_);
    const std::int64_t epoch = broker_epoch_;
    if (started_ && !stopped_) {
        TM_TRYV(commit({protocol::BrokerRegistrationChangeRecord{.broker_id = options_.node_id, .broker_epoch = epoch, .fenced = 1}}));
    }
    stopped_ = true;
    return epoch;
}

void LocalController::add_listener(ImageListener* listener) {
    MutexLock lock(mutex_);
    listeners_.push_back(listener);
}

void LocalController::assign_directories(const std::unordered_map<TopicPartition, Uuid>& found) {
    MutexLock lock(mutex_);
    TM_ASSERT(!started_);
    found_directories_ = found;
}

Result<> LocalController::raise_leader_epochs(const std::vector<TopicPartition>& partitions) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    std::vector<protocol::MetadataRecord> records;
    for (const TopicPartition& partition : partitions) {
        const Topic* topic = image->find(partition.topic);
        if (topic == nullptr || !topic->partitions.contains(partition.partition)) continue;
        records.emplace_back(protocol::PartitionChangeRecord{.partition_id = partition.partition, .topic_id = topic->id, .leader = options_.node_id});
        if (records.size() == records_per_batch) TM_TRYV(commit(std::exchange(records, {})));
    }
    return commit(records);
}

// --- changes -------------------------------------------------------------------------------------------------------

ChangeContext LocalController::context(const Image& image, const ConfigMap& file) const {
    return {.image = image, .file = file, .node_id = options_.node_id, .directory_ids = options_.directory_ids};
}

Result<> LocalController::commit(const std::vector<protocol::MetadataRecord>& records) {
    if (records.empty()) return {};
    if (!started_ || stopped_) return Error{Errc::unsupported, "the controller does not lead"};
    const auto before = image_.get();
    // Applied first: what would not replay is never written.
    ImageBuilder builder(before);
    Offset offset = log_->end_offset();
    for (const auto& record : records) {
        TM_TRYV(builder.apply(record, offset));
        ++offset;
    }
    const std::int16_t metadata_version = builder.image().metadata_version();
    const auto after = std::move(builder).build();

    // The file of our own settings never says more than the log: what goes is taken out of it first, what comes is put in
    // last. A crash in between leaves a setting that is in the log only, which the next start puts in.
    auto settings = own_settings_restored_ ? own_settings_of(*after) : own_settings_;
    OwnSettings staying;
    for (const auto& [key, value] : own_settings_) {
        if (settings.contains(key)) staying.emplace(key, value);
    }
    if (staying.size() != own_settings_.size()) {
        TM_TRYV(write_own_settings(files_, options_.log.directory, *before, staying));
        own_settings_ = std::move(staying);
    }
    TM_TRYV(log_->append(records, metadata_version));
    if (settings != own_settings_) {
        if (const auto written = write_own_settings(files_, options_.log.directory, *after, settings); !written.has_value()) {
            log_error("settings of topics that Apache Kafka does not know could not be noted beside the metadata log: {}", written.error().message());
        } else {
            own_settings_ = std::move(settings);
        }
    }
    publish(after);
    snapshot_if_due();
    return {};
}

void LocalController::publish(std::shared_ptr<const Image> after) {
    end_offset_ = log_->end_offset().value;
    // Listeners first: whoever sees a partition in the image finds its log.
    const auto before = image_.get();
    for (ImageListener* listener : listeners_) listener->image_changed(before, after);
    image_.put(std::move(after));
}

void LocalController::snapshot_if_due() {
    if (!log_->snapshot_is_due()) return;
    const auto written = log_->write_snapshot(*image_.get());
    static LogLimit limit{60'000};
    if (written.has_value()) return;
    if (const auto held = limit.admit(); held >= 0) log_error("[__cluster_metadata-0] no snapshot: {} ({} more not shown)", written.error().message(), held);
}

void LocalController::tick() {
    MutexLock lock(mutex_);
    if (!started_ || stopped_) return;
    snapshot_if_due();
    const Timestamp now = clock_.now();
    if (last_clean_up_ && now - *last_clean_up_ >= 0 && now - *last_clean_up_ < clean_up_interval_ms) return;
    last_clean_up_ = now;
    if (const auto cleaned = log_->clean_up(); !cleaned.has_value()) log_error("[__cluster_metadata-0] old segments and snapshots stay: {}", cleaned.error().message());
}

template <class Answer>
std::vector<Answer> LocalController::carry_out(Plan<Answer> plan, bool validate_only) {
    if (validate_only) return std::move(plan.answers);
    if (const auto committed = commit(plan.records); !committed.has_value()) {
        for (Answer& answer : plan.answers) {
            if (!outcome_of(answer).ok()) continue;
            if constexpr (std::is_same_v<Answer, CreatedTopic>) answer = {};
            outcome_of(answer) = failed(committed.error());
        }
    }
    return std::move(plan.answers);
}

std::vector<CreatedTopic> LocalController::create_topics(const std::vector<NewTopic>& topics, bool validate_only) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    const auto file = file_.get();
    return carry_out(plan_create_topics(context(*image, *file), topics), validate_only);
}

std::vector<DeletedTopic> LocalController::delete_topics(const std::vector<TopicToDelete>& topics) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    const auto file = file_.get();
    return carry_out(plan_delete_topics(context(*image, *file), topics), false);
}

std::vector<Outcome> LocalController::create_partitions(const std::vector<NewPartitions>& topics, bool validate_only) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    const auto file = file_.get();
    return carry_out(plan_create_partitions(context(*image, *file), topics), validate_only);
}

std::vector<Outcome> LocalController::alter_configs(const std::vector<AlterConfigs>& changes, bool validate_only) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    const auto file = file_.get();
    return carry_out(plan_alter_configs(context(*image, *file), changes), validate_only);
}

std::vector<Outcome> LocalController::update_features(const std::vector<FeatureUpdate>& updates, bool validate_only) {
    MutexLock lock(mutex_);
    const auto image = image_.get();
    const auto file = file_.get();
    return carry_out(plan_update_features(context(*image, *file), updates), validate_only);
}

Result<ProducerId> LocalController::next_producer_id() {
    MutexLock ids_lock(producer_ids_mutex_);
    if (next_producer_id_ == producer_ids_end_) {
        MutexLock lock(mutex_);
        const ProducerId first = image_.get()->next_producer_id;
        if (first > std::numeric_limits<std::int64_t>::max() - producer_ids_per_block) return Error{Errc::unsupported, "all producer ids have been used"};
        TM_TRYV(commit({protocol::ProducerIdsRecord{.broker_id = options_.node_id, .broker_epoch = broker_epoch_, .next_producer_id = first + producer_ids_per_block}}));
        next_producer_id_ = first;
        producer_ids_end_ = first + producer_ids_per_block;
    }
    return next_producer_id_++;
}

// --- what others ask -----------------------------------------------------------------------------------------------

std::shared_ptr<const Image> LocalController::image() const { return image_.get(); }

QuorumInfo LocalController::quorum() const { return {.epoch = epoch_.load(), .end_offset = Offset{end_offset_.load()}}; }

std::int64_t LocalController::log_bytes() const {
    MutexLock lock(mutex_);
    return log_->bytes();
}

ConfigLayers LocalController::layers() const { return config_layers(*image_.get(), options_.node_id, *file_.get()); }

void LocalController::set_file(ConfigMap file) { file_.put(std::make_shared<const ConfigMap>(std::move(file))); }

}  // namespace tidemark::metadata
