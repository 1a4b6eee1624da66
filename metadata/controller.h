/// How handlers change metadata. Alone, tidemarkd writes the log itself (local_controller.h); a remote quorum is another
/// implementation of the same calls (design: metadata).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "metadata/image.h"
#include "protocol/error_code.h"

namespace tidemark::metadata {

/// Kafka's error code and the text that goes with it; none is success.
struct Outcome {
    protocol::ErrorCode code = protocol::ErrorCode::none;
    std::optional<std::string> message;
    bool ok() const { return code == protocol::ErrorCode::none; }
};

struct NewTopic {
    std::string name;
    std::int32_t partitions = -1;                      ///< -1: num.partitions
    std::int16_t replication_factor = -1;
    std::map<std::int32_t, std::vector<std::int32_t>> assignments = {};
    std::vector<std::pair<std::string, std::optional<std::string>>> configs = {};   ///< in the order given
};
struct CreatedTopic {
    Outcome outcome;
    Uuid id;
    std::int32_t partitions = -1;
    std::int16_t replication_factor = -1;
};

struct NewPartitions {
    std::string topic;
    std::int32_t count = 0;
    std::optional<std::vector<std::vector<std::int32_t>>> assignments = {};
};

enum class AlterOp : std::int8_t { set = 0, remove = 1, append = 2, subtract = 3 };
struct ConfigChange {
    std::string key;
    std::int8_t op = 0;                                ///< as it came: unknown ones get Kafka's answer
    std::optional<std::string> value;
};
struct AlterConfigs {
    std::int8_t resource_type = 2;                     ///< as it came
    std::string resource_name;
    std::vector<ConfigChange> changes;
    bool replace_all = false;                          ///< AlterConfigs (33): keys not listed are removed
};

enum class FeatureUpdateType : std::int8_t { unknown = 0, upgrade = 1, safe_downgrade = 2, unsafe_downgrade = 3 };
struct FeatureUpdate {
    std::string name;
    std::int16_t level = 0;                            ///< 0 removes it
    FeatureUpdateType type = FeatureUpdateType::upgrade;   ///< as it came
};

struct TopicToDelete {
    std::optional<std::string> name = {};
    Uuid id = {};
};
struct DeletedTopic {
    Outcome outcome;
    std::optional<std::string> name;
    Uuid id;
};

/// The raft side of the metadata log, as DescribeQuorum shows it.
struct QuorumInfo {
    LeaderEpoch epoch = 0;                             ///< of the leader, this node
    Offset end_offset{};                               ///< of the log; alone it is the high watermark as well
};

/// Told after a change is durable and before Controller::image() shows it, in offset order, one at a time: a partition that
/// a handler sees has its log. Must not change metadata itself. Whoever works on elsewhere keeps the image.
/// The daemon's implementation creates and removes logs and hands out new settings.
class ImageListener {
public:
    virtual ~ImageListener() = default;
    virtual void image_changed(const ImagePtr& before, const ImagePtr& after) = 0;
};

/// All calls block until the change is durable and applied: run them where waiting for the disk is allowed.
/// Results stand in the order of the requests. Threads: any.
class Controller {
public:
    virtual ~Controller() = default;
    virtual std::shared_ptr<const Image> image() const = 0;                    ///< never blocks
    virtual QuorumInfo quorum() const = 0;                                     ///< never blocks

    virtual std::vector<CreatedTopic> create_topics(const std::vector<NewTopic>&, bool validate_only) = 0;
    virtual std::vector<DeletedTopic> delete_topics(const std::vector<TopicToDelete>&) = 0;
    virtual std::vector<Outcome> create_partitions(const std::vector<NewPartitions>&, bool validate_only) = 0;
    virtual std::vector<Outcome> alter_configs(const std::vector<AlterConfigs>&, bool validate_only) = 0;
    /// All of them or, when one is refused, none.
    virtual std::vector<Outcome> update_features(const std::vector<FeatureUpdate>&, bool validate_only) = 0;
    /// Next producer id of this node's block; a new block of 1000 is written when it is used up.
    virtual Result<ProducerId> next_producer_id() = 0;
};

}  // namespace tidemark::metadata
