/// A coordinator of consumer groups in memory: requests in, answers and records out, a clock that moves when told to. After
/// every step a second table is filled from all records so far, and must be equal to the first: memory is what its records say.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/group/classic_groups.h"
#include "coordinator/group/consumer/consumer_groups.h"
#include "coordinator/group/consumer/group_records.h"
#include "coordinator/group/consumer/steps.h"
#include "metadata/image.h"
#include "protocol/messages/consumer_group_describe_response.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"
#include "protocol/messages/group_metadata_key.h"
#include "protocol/messages/heartbeat_response.h"
#include "protocol/messages/join_group_response.h"
#include "protocol/messages/leave_group_response.h"
#include "protocol/messages/sync_group_response.h"

namespace tidemark::coordinator {

/// Record types in order, "~" before tombstones: "5 3 7 6 8".
std::string types(const std::vector<Record>&);

class ConsumerCoordinator : public Context {
public:
    using Request = protocol::ConsumerGroupHeartbeatRequest;
    using Response = protocol::ConsumerGroupHeartbeatResponse;

    ConsumerCoordinator() {
        options->initial_rebalance_delay_ms = 0;
        options->assignment_interval.value = 0;
        shared_options = options;
        put_image([](metadata::Image& image) { image.features["group.version"] = 1; });
    }

    // --- Context -------------------------------------------------------------------------------------------------------
    Timestamp now() const override { return clock.now(); }
    Moment moment() const override { return clock.since_boot(); }
    const metadata::ImagePtr& image() const override { return image_; }
    LeaderEpoch leader_epoch() const override { return 0; }
    Result<> write(std::span<const Record> records, const WriteOptions& = {}) override;
    Result<> write(const Marker&) override { return {}; }
    void when_durable(std::function<void(ErrorCode)> done) override { done(ErrorCode::none); }

    // --- the world -----------------------------------------------------------------------------------------------------
    template <class Change>
    void put_image(Change change) {
        auto next = std::make_shared<metadata::Image>(*image_);
        change(*next);
        next->offset = image_->offset + 1;
        image_ = next;
    }
    /// Returns its id. Also for a topic that exists: it has that many partitions then.
    Uuid put_topic(const std::string& name, int partitions);
    void delete_topic(const std::string& name);
    void put_group_config(const std::string& group, const std::string& key, const std::string& value) {
        put_image([&](metadata::Image& image) { image.configs[{metadata::ResourceType::group, group}][key] = value; });
    }
    void advance(std::chrono::milliseconds by) {
        clock.advance(by);
        last_written.clear();
        consumer.tick(*this);
        classic.tick(*this);
        check();
    }

    // --- requests ------------------------------------------------------------------------------------------------------
    Response send(const Request&, std::int16_t version = 1);
    /// Epoch 0.
    Response join(const std::string& member, std::vector<std::string> topics);
    Response beat(const std::string& member, std::int32_t epoch, std::optional<Partitions> owned = {});
    /// -1, or another epoch below 0.
    Response leave(const std::string& member, std::int32_t epoch = -1, std::optional<std::string> instance = {});
    protocol::JoinGroupResponse classic_join(const protocol::JoinGroupRequest&, std::int16_t version = 9);
    protocol::SyncGroupResponse classic_sync(const protocol::SyncGroupRequest&, std::int16_t version = 5);
    ErrorCode classic_beat(const std::string& member, std::int32_t generation);
    protocol::LeaveGroupResponse classic_leave(const std::vector<std::string>& members);

    const ConsumerGroup& group() const;
    const ConsumerMember& member(const std::string& id) const;
    ClassicGroup* classic_group() const { return groups.find_as<ClassicGroup>(group_id); }

    /// What all records so far say is what is in memory.
    void check() const;
    /// As after a restart: memory is what the records say, and timers start.
    void restart();

    ManualClock clock;
    std::shared_ptr<GroupOptions> options = std::make_shared<GroupOptions>();
    GroupOptionsPtr shared_options;
    std::optional<Error> fail_writes;
    std::vector<Record> written, last_written;
    GroupTable groups;
    ClassicGroups classic{groups, shared_options};
    ConsumerGroups consumer{groups, classic, shared_options};
    std::string group_id = "g";

private:
    metadata::ImagePtr image_ = std::make_shared<metadata::Image>();
};

}  // namespace tidemark::coordinator
