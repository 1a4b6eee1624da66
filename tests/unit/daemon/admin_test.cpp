// Topics, configurations, the cluster and the rest of what administrators ask: wire-behaviour 2, 4, 6, 9 to 13.
#include <gmock/gmock.h>

#include <thread>

#include "daemon/served_api.h"
#include "protocol/messages/alter_configs_request.h"
#include "protocol/messages/alter_configs_response.h"
#include "protocol/messages/alter_partition_reassignments_request.h"
#include "protocol/messages/alter_partition_reassignments_response.h"
#include "protocol/messages/alter_replica_log_dirs_request.h"
#include "protocol/messages/alter_replica_log_dirs_response.h"
#include "protocol/messages/api_versions_request.h"
#include "protocol/messages/api_versions_response.h"
#include "protocol/messages/create_acls_request.h"
#include "protocol/messages/create_acls_response.h"
#include "protocol/messages/create_partitions_request.h"
#include "protocol/messages/create_partitions_response.h"
#include "protocol/messages/create_topics_request.h"
#include "protocol/messages/create_topics_response.h"
#include "protocol/messages/delete_acls_request.h"
#include "protocol/messages/delete_acls_response.h"
#include "protocol/messages/delete_records_request.h"
#include "protocol/messages/delete_records_response.h"
#include "protocol/messages/delete_topics_request.h"
#include "protocol/messages/delete_topics_response.h"
#include "protocol/messages/describe_acls_request.h"
#include "protocol/messages/describe_acls_response.h"
#include "protocol/messages/describe_cluster_request.h"
#include "protocol/messages/describe_cluster_response.h"
#include "protocol/messages/describe_configs_request.h"
#include "protocol/messages/describe_configs_response.h"
#include "protocol/messages/describe_log_dirs_request.h"
#include "protocol/messages/describe_log_dirs_response.h"
#include "protocol/messages/describe_producers_request.h"
#include "protocol/messages/describe_producers_response.h"
#include "protocol/messages/describe_quorum_request.h"
#include "protocol/messages/describe_quorum_response.h"
#include "protocol/messages/describe_topic_partitions_request.h"
#include "protocol/messages/describe_topic_partitions_response.h"
#include "protocol/messages/elect_leaders_request.h"
#include "protocol/messages/elect_leaders_response.h"
#include "protocol/messages/incremental_alter_configs_request.h"
#include "protocol/messages/incremental_alter_configs_response.h"
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"
#include "protocol/messages/list_config_resources_request.h"
#include "protocol/messages/list_config_resources_response.h"
#include "protocol/messages/list_offsets_request.h"
#include "protocol/messages/list_offsets_response.h"
#include "protocol/messages/list_partition_reassignments_request.h"
#include "protocol/messages/list_partition_reassignments_response.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"
#include "protocol/messages/offset_for_leader_epoch_request.h"
#include "protocol/messages/offset_for_leader_epoch_response.h"
#include "protocol/messages/sasl_handshake_request.h"
#include "protocol/messages/sasl_handshake_response.h"
#include "storage/log_directory.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace std::chrono_literals;
using namespace protocol;
using test::TestBroker;
using testing::ElementsAre;
using testing::IsEmpty;

class Admin : public testing::Test {
protected:
    Admin() : Admin(test::TestBrokerOptions{}) {}
    explicit Admin(test::TestBrokerOptions options) : broker(std::move(options)) {}

    template <class Response, class Request>
    Response ask(const Request& request, std::int16_t version = Request::versions.max) {
        return client.ask<Response>(request, version);
    }
    void append(const std::string& topic, const std::vector<std::string>& values) {
        auto batch = test::batch_of(values);
        const auto* partition = broker.controller().image()->find(TopicPartition{topic, 0});
        ASSERT_TRUE(broker.log(topic).append(batch, {.leader_epoch = partition->leader_epoch}));
    }

    TestBroker broker;
    test::TestClient client = broker.client();
};

// --- ApiVersions -------------------------------------------------------------------------------------------------------

TEST_F(Admin, ApiVersionsAdvertisesWhatIsServedAndNothingElse) {
    const ApiVersionsRequest request{.client_software_name = "a", .client_software_version = "1"};
    const auto response = ask<ApiVersionsResponse>(request);
    ASSERT_EQ(response.error_code, ErrorCode::none);
    ASSERT_EQ(response.api_keys.size(), served_apis().size());
    for (std::size_t i = 0; i < response.api_keys.size(); ++i) {
        const auto& api = *served_apis()[i].api;
        EXPECT_EQ(response.api_keys[i].api_key, static_cast<std::int16_t>(api.key));
        EXPECT_EQ(response.api_keys[i].min_version, api.key == ApiKey::produce ? 0 : api.versions.min) << api.name;
        EXPECT_EQ(response.api_keys[i].max_version, api.versions.max) << api.name;
        EXPECT_TRUE(api.on_broker) << api.name;
    }
    EXPECT_FALSE(response.finalized_features.empty());
    EXPECT_GE(response.finalized_features_epoch, 0);
    EXPECT_EQ(broker.server().stats().client_software.at({"a", "1"}), 1u);
}

TEST_F(Admin, ApiVersionsOfAnUnknownVersionIsAnsweredInVersionZero) {
    // As a newer client sends it: a flexible header, whatever the body.
    auto bytes = request_frame({.request_api_version = 5, .correlation_id = 7}, ApiVersionsRequest{})->bytes;
    store_be<std::int16_t>(bytes.data() + 6, 9);
    client.send_bytes(bytes);
    const auto frame = client.receive_frame();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->size(), 16u);
    Reader reader{Bytes{*frame}};
    EXPECT_EQ(reader.int32(), 7);
    const auto response = parse<ApiVersionsResponse>(reader, 0);
    ASSERT_TRUE(response);
    EXPECT_EQ(response->error_code, ErrorCode::unsupported_version);
    ASSERT_EQ(response->api_keys.size(), 1u);
    EXPECT_EQ(response->api_keys[0].api_key, 18);
    EXPECT_EQ(ask<ApiVersionsResponse>(ApiVersionsRequest{}, 2).error_code, ErrorCode::none) << "the connection stays";
}

TEST_F(Admin, ApiVersionsChecksNamesAndIdentity) {
    for (const auto* name : {"", "a b", "-x", "x-", "ä"}) {
        EXPECT_EQ(ask<ApiVersionsResponse>(ApiVersionsRequest{.client_software_name = name, .client_software_version = "1"}, 3).error_code, ErrorCode::invalid_request) << name;
    }
    EXPECT_EQ(ask<ApiVersionsResponse>(ApiVersionsRequest{.client_software_name = "a.b-c", .client_software_version = "1"}, 3).error_code, ErrorCode::none);
    const auto with = [&](std::optional<std::string> cluster, std::int32_t node) {
        return ask<ApiVersionsResponse>(ApiVersionsRequest{.client_software_name = "a", .client_software_version = "1", .cluster_id = cluster, .node_id = node}, 5).error_code;
    };
    EXPECT_EQ(with(broker.broker().cluster_id(), 1), ErrorCode::none);
    EXPECT_EQ(with("other", 1), ErrorCode::rebootstrap_required);
    EXPECT_EQ(with(broker.broker().cluster_id(), 2), ErrorCode::rebootstrap_required);
    EXPECT_EQ(with(std::nullopt, 1), ErrorCode::invalid_request);
    EXPECT_EQ(with("x", -1), ErrorCode::invalid_request);
}

TEST_F(Admin, ApiVersionsThreeHidesFeaturesThatBeginAtZero) {
    const ApiVersionsRequest request{.client_software_name = "a", .client_software_version = "1"};
    const auto names = [](const ApiVersionsResponse& response) {
        std::vector<std::string> all;
        for (const auto& feature : response.supported_features) all.push_back(feature.name);
        return all;
    };
    EXPECT_THAT(names(ask<ApiVersionsResponse>(request, 3)), ElementsAre("metadata.version"));
    EXPECT_THAT(names(ask<ApiVersionsResponse>(request, 4)), testing::Contains("transaction.version"));
}

// --- Metadata ----------------------------------------------------------------------------------------------------------

using protocol::metadata_request::MetadataRequestTopic;

std::map<std::string, ErrorCode> errors_of(const MetadataResponse& response) {
    std::map<std::string, ErrorCode> errors;
    for (const auto& topic : response.topics) EXPECT_TRUE(errors.emplace(topic.name.value_or("(null)"), topic.error_code).second);
    return errors;
}

TEST_F(Admin, MetadataKnowsNullFromEmpty) {
    broker.create_topic("a");
    broker.create_topic("b", 3);
    EXPECT_EQ(ask<MetadataResponse>(MetadataRequest{}, 0).topics.size(), 2u);
    for (std::int16_t version = 1; version <= 13; ++version) {
        const auto all = ask<MetadataResponse>(MetadataRequest{.topics = std::nullopt}, version);
        ASSERT_EQ(all.topics.size(), 2u) << version;
        EXPECT_EQ(all.topics[1].partitions.size(), 3u);
        EXPECT_EQ(all.topics[0].topic_id.is_zero(), version < 10);
        EXPECT_EQ(all.topics[0].partitions[0].leader_epoch, version < 7 ? -1 : 0);
        EXPECT_THAT(ask<MetadataResponse>(MetadataRequest{}, version).topics, IsEmpty()) << version;
        ASSERT_EQ(all.brokers.size(), 1u);
        EXPECT_EQ(all.brokers[0].port, broker.port());
    }
}

TEST_F(Admin, MetadataOfTopicsByName) {
    broker.create_topic("a");
    MetadataRequest request{.allow_auto_topic_creation = false};
    for (const auto* name : {"a", "no-such", "bad name", "a", "__consumer_offsets"}) request.topics->push_back({.name = name});
    const auto response = ask<MetadataResponse>(request);
    EXPECT_THAT(errors_of(response), ElementsAre(testing::Pair("__consumer_offsets", ErrorCode::unknown_topic_or_partition), testing::Pair("a", ErrorCode::none),
                                                 testing::Pair("bad name", ErrorCode::invalid_topic_exception), testing::Pair("no-such", ErrorCode::unknown_topic_or_partition)));
    for (const auto& topic : response.topics) EXPECT_EQ(topic.is_internal, topic.name == "__consumer_offsets");
}

TEST_F(Admin, MetadataOfTopicsById) {
    const auto id = broker.create_topic("a");
    MetadataRequest request;
    request.topics->push_back({.topic_id = id, .name = std::nullopt});
    request.topics->push_back({.name = "a"});   // ids win, names are ignored
    const auto unknown = Uuid::random();
    request.topics->push_back({.topic_id = unknown, .name = std::nullopt});
    const auto response = ask<MetadataResponse>(request);
    ASSERT_EQ(response.topics.size(), 2u);
    EXPECT_EQ(response.topics[0].name, "a");
    EXPECT_EQ(response.topics[1].error_code, ErrorCode::unknown_topic_id);
    EXPECT_FALSE(response.topics[1].name);
    EXPECT_EQ(ask<MetadataResponse>(request, 11).topics.at(0).error_code, ErrorCode::invalid_request) << "before version 12 an id asks for nothing";
}

TEST_F(Admin, MetadataCreatesTopicsOnTheWay) {
    MetadataRequest request;
    request.topics->push_back({.name = "made"});
    EXPECT_EQ(ask<MetadataResponse>(request).topics.at(0).error_code, ErrorCode::unknown_topic_or_partition) << "this answer still says so";
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!broker.controller().image()->find("made") && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(ask<MetadataResponse>(request).topics.at(0).error_code, ErrorCode::none);
    (*request.topics)[0].name = "not-made";
    request.allow_auto_topic_creation = false;
    ask<MetadataResponse>(request);
    ask<MetadataResponse>(MetadataRequest{.topics = std::nullopt});
    EXPECT_FALSE(broker.controller().image()->find("not-made"));
}

TEST_F(Admin, OperationsAreToldWhenAskedFor) {
    broker.create_topic("a");
    const auto silent = ask<MetadataResponse>(MetadataRequest{.topics = std::nullopt}, 10);
    EXPECT_EQ(silent.topics.at(0).topic_authorized_operations, std::numeric_limits<std::int32_t>::min());
    const auto told = ask<MetadataResponse>(MetadataRequest{.topics = std::nullopt, .include_cluster_authorized_operations = true, .include_topic_authorized_operations = true}, 10);
    EXPECT_EQ(told.topics.at(0).topic_authorized_operations, 3576);
    EXPECT_EQ(told.cluster_authorized_operations, 8096);
}

TEST_F(Admin, DescribeClusterOfBothKinds) {
    const auto response = ask<DescribeClusterResponse>(DescribeClusterRequest{.include_cluster_authorized_operations = true});
    EXPECT_EQ(response.error_code, ErrorCode::none);
    EXPECT_EQ(response.cluster_id, broker.broker().cluster_id());
    EXPECT_EQ(response.brokers.size(), 1u);
    EXPECT_EQ(response.cluster_authorized_operations, 8096);
    const auto controllers = ask<DescribeClusterResponse>(DescribeClusterRequest{.endpoint_type = 2});
    EXPECT_EQ(controllers.error_code, ErrorCode::mismatched_endpoint_type);
    EXPECT_EQ(controllers.cluster_id, "");
    EXPECT_EQ(controllers.controller_id, -1);
    EXPECT_EQ(ask<DescribeClusterResponse>(DescribeClusterRequest{.endpoint_type = 7}).error_code, ErrorCode::unsupported_endpoint_type);
}

TEST_F(Admin, TopicPartitionsComeInPages) {
    broker.create_topic("a", 2);
    broker.create_topic("b", 3);
    DescribeTopicPartitionsRequest request{.response_partition_limit = 3};
    const auto first = ask<DescribeTopicPartitionsResponse>(request);
    ASSERT_EQ(first.topics.size(), 2u);
    EXPECT_EQ(first.topics[1].partitions.size(), 1u);
    ASSERT_TRUE(first.next_cursor);
    EXPECT_EQ(first.next_cursor->topic_name, "b");
    EXPECT_EQ(first.next_cursor->partition_index, 1);
    request.cursor = {.topic_name = "b", .partition_index = 1};
    const auto second = ask<DescribeTopicPartitionsResponse>(request);
    ASSERT_EQ(second.topics.size(), 1u);
    EXPECT_EQ(second.topics[0].partitions.size(), 2u);
    EXPECT_FALSE(second.next_cursor);
    request.topics.push_back({.name = "a"});
    EXPECT_EQ(ask<DescribeTopicPartitionsResponse>(request).topics.at(0).error_code, ErrorCode::invalid_request) << "the cursor's topic is not in the list";
}

// --- topics ------------------------------------------------------------------------------------------------------------

TEST_F(Admin, CreateTopicsInEveryVersion) {
    for (std::int16_t version = 2; version <= 7; ++version) {
        CreateTopicsRequest request;
        const auto name = "t" + std::to_string(version);
        request.topics.push_back({.name = name, .num_partitions = 2, .replication_factor = 1, .configs = {{.name = "retention.ms", .value = "1000"}}});
        const auto response = ask<CreateTopicsResponse>(request, version);
        ASSERT_EQ(response.topics.size(), 1u);
        const auto& topic = response.topics[0];
        EXPECT_EQ(topic.error_code, ErrorCode::none);
        EXPECT_FALSE(topic.error_message);
        if (version >= 7) {
            EXPECT_EQ(topic.topic_id, broker.controller().image()->find(name)->id);
        }
        if (version < 5) continue;
        EXPECT_EQ(topic.num_partitions, 2);
        EXPECT_EQ(topic.replication_factor, 1);
        const auto retention = std::ranges::find(*topic.configs, "retention.ms", &create_topics_response::CreatableTopicConfigs::name);
        ASSERT_NE(retention, topic.configs->end());
        EXPECT_EQ(retention->value, "1000");
        EXPECT_EQ(retention->config_source, 1);
        EXPECT_TRUE(std::ranges::is_sorted(*topic.configs, {}, &create_topics_response::CreatableTopicConfigs::name));
    }
}

TEST_F(Admin, CreateTopicsRefuses) {
    broker.create_topic("there");
    CreateTopicsRequest request;
    const auto add = [&](const char* name, std::int32_t partitions = 1, std::int16_t factor = 1) -> create_topics_request::CreatableTopic& {
        return request.topics.emplace_back(create_topics_request::CreatableTopic{.name = name, .num_partitions = partitions, .replication_factor = factor});
    };
    add("twice");
    add("twice");
    add("__cluster_metadata");
    add("there");
    add("bad name");
    add("no-partitions", 0);
    add("too-many-replicas", 1, 2);
    add("bad-config").configs.push_back({.name = "no.such.key", .value = "1"});
    add("good", -1, -1);
    std::map<std::string, ErrorCode> errors;
    for (const auto& topic : ask<CreateTopicsResponse>(request).topics) errors[topic.name] = topic.error_code;
    EXPECT_THAT(errors, ElementsAre(testing::Pair("__cluster_metadata", ErrorCode::invalid_request), testing::Pair("bad name", ErrorCode::invalid_topic_exception),
                                    testing::Pair("bad-config", ErrorCode::invalid_config), testing::Pair("good", ErrorCode::none),
                                    testing::Pair("no-partitions", ErrorCode::invalid_partitions), testing::Pair("there", ErrorCode::topic_already_exists),
                                    testing::Pair("too-many-replicas", ErrorCode::invalid_replication_factor), testing::Pair("twice", ErrorCode::invalid_request)));
}

TEST_F(Admin, ValidateOnlyCreatesNothing) {
    CreateTopicsRequest request{.validate_only = true};
    request.topics.push_back({.name = "t", .num_partitions = 1, .replication_factor = 1});
    EXPECT_EQ(ask<CreateTopicsResponse>(request).topics.at(0).error_code, ErrorCode::none);
    EXPECT_FALSE(broker.controller().image()->find("t"));
}

TEST_F(Admin, DeleteTopicsByNameAndById) {
    const auto a = broker.create_topic("a");
    broker.create_topic("b");
    const auto c = broker.create_topic("c");
    DeleteTopicsRequest request;
    request.topics.push_back({.name = "b"});
    request.topics.push_back({.topic_id = a});
    request.topics.push_back({.name = "no-such"});
    request.topics.push_back({.topic_id = Uuid::of(9)});
    request.topics.push_back({.name = "c", .topic_id = c});
    request.topics.push_back({});
    const auto response = ask<DeleteTopicsResponse>(request);
    std::multimap<ErrorCode, std::optional<std::string>> names;
    for (const auto& topic : response.responses) names.emplace(topic.error_code, topic.name);
    EXPECT_EQ(names.count(ErrorCode::none), 2u);
    EXPECT_EQ(names.count(ErrorCode::unknown_topic_or_partition), 1u);
    EXPECT_EQ(names.count(ErrorCode::unknown_topic_id), 1u);
    EXPECT_EQ(names.count(ErrorCode::invalid_request), 2u);
    EXPECT_FALSE(broker.logs().find({"a", 0}));
    EXPECT_TRUE(broker.logs().find({"c", 0}));
    EXPECT_EQ(ask<DeleteTopicsResponse>(DeleteTopicsRequest{.topic_names = {"c"}}, 5).responses.at(0).error_code, ErrorCode::none);
}

TEST_F(Admin, ATopicNamedAndMeantByItsIdIsDeletedByNobody) {
    const auto a = broker.create_topic("a");
    DeleteTopicsRequest request;
    request.topics.push_back({.name = "a"});
    request.topics.push_back({.topic_id = a});
    const auto response = ask<DeleteTopicsResponse>(request);
    ASSERT_EQ(response.responses.size(), 1u);
    EXPECT_EQ(response.responses[0].name, "a");
    EXPECT_EQ(response.responses[0].topic_id, a);
    EXPECT_EQ(response.responses[0].error_code, ErrorCode::invalid_request);
    EXPECT_TRUE(broker.logs().find({"a", 0}));
}

TEST_F(Admin, DeletionCanBeDisabled) {
    broker.create_topic("a");
    auto options = *broker.broker().options();
    options.delete_topics = false;
    broker.server().set_options(options);
    EXPECT_EQ(ask<DeleteTopicsResponse>(DeleteTopicsRequest{.topic_names = {"a"}}, 3).responses.at(0).error_code, ErrorCode::topic_deletion_disabled);
    EXPECT_EQ(ask<DeleteTopicsResponse>(DeleteTopicsRequest{.topic_names = {"a"}}, 2).responses.at(0).error_code, ErrorCode::invalid_request);
}

TEST_F(Admin, CreatePartitions) {
    broker.create_topic("a");
    CreatePartitionsRequest request;
    request.topics.push_back({.name = "a", .count = 3, .assignments = std::nullopt});
    request.topics.push_back({.name = "no-such", .count = 3, .assignments = std::nullopt});
    const auto response = ask<CreatePartitionsResponse>(request);
    EXPECT_EQ(response.results.at(0).error_code, ErrorCode::none);
    EXPECT_EQ(response.results.at(1).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_TRUE(broker.logs().find({"a", 2}));
    EXPECT_EQ(ask<CreatePartitionsResponse>(request).results.at(0).error_code, ErrorCode::invalid_partitions);
}

TEST_F(Admin, DeleteRecords) {
    broker.create_topic("a");
    broker.create_topic("compacted", 1, {{"cleanup.policy", "compact"}});
    append("a", {"1", "2", "3"});
    const auto delete_before = [&](const char* topic, std::int64_t offset, std::int32_t partition = 0) {
        DeleteRecordsRequest request;
        request.topics.push_back({.name = topic, .partitions = {{.partition_index = partition, .offset = offset}}});
        return ask<DeleteRecordsResponse>(request).topics.at(0).partitions.at(0);
    };
    EXPECT_EQ(delete_before("a", 2).low_watermark, 2);
    EXPECT_EQ(delete_before("a", 1).low_watermark, 2);
    EXPECT_EQ(delete_before("a", 4).error_code, ErrorCode::offset_out_of_range);
    EXPECT_EQ(delete_before("a", 4).low_watermark, -1);
    EXPECT_EQ(delete_before("a", -2).error_code, ErrorCode::offset_out_of_range);
    EXPECT_EQ(delete_before("a", -1).low_watermark, 3);
    EXPECT_EQ(delete_before("a", 0, 9).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(delete_before("__consumer_offsets", 0).error_code, ErrorCode::invalid_topic_exception);
    EXPECT_EQ(delete_before("compacted", 0).error_code, ErrorCode::policy_violation);
}

TEST_F(Admin, OfAPartitionNamedTwiceTheLastOffsetCounts) {
    broker.create_topic("a", 2);
    append("a", {"1", "2", "3"});
    DeleteRecordsRequest request;
    request.topics.push_back({.name = "a", .partitions = {{.partition_index = 0, .offset = 2}, {.partition_index = 1, .offset = 0}}});
    request.topics.push_back({.name = "b", .partitions = {}});
    request.topics.push_back({.name = "a", .partitions = {{.partition_index = 0, .offset = 1}}});
    const auto response = ask<DeleteRecordsResponse>(request);
    ASSERT_EQ(response.topics.size(), 1u);
    ASSERT_EQ(response.topics[0].partitions.size(), 2u);
    EXPECT_EQ(response.topics[0].partitions[0].low_watermark, 1);
}

// --- offsets -----------------------------------------------------------------------------------------------------------

TEST_F(Admin, ListOffsetsOfEveryKind) {
    broker.create_topic("a");
    record::BatchBuilder builder;
    builder.start({});
    const auto now = SystemClock{}.now();
    for (int i = 0; i < 3; ++i) builder.append(Offset{i}, now + i * 100, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> batch;
    builder.finish(batch);
    ASSERT_TRUE(broker.log("a").append(batch, {}));
    const auto list = [&](std::int64_t timestamp, std::int16_t version = 11) {
        ListOffsetsRequest request{.replica_id = -1};
        request.topics.push_back({.name = "a", .partitions = {{.partition_index = 0, .timestamp = timestamp}}});
        return ask<ListOffsetsResponse>(request, version).topics.at(0).partitions.at(0);
    };
    for (std::int16_t version = 1; version <= 11; ++version) {
        EXPECT_EQ(list(-1, version).offset, 3) << version;
        EXPECT_EQ(list(-2, version).offset, 0) << version;
        EXPECT_EQ(list(now.value + 1, version).offset, 1) << version;
        EXPECT_EQ(list(now.value + 1, version).timestamp, now.value + 100) << version;
        EXPECT_EQ(list(-1, version).leader_epoch, version >= 4 ? 0 : -1);
    }
    EXPECT_EQ(list(now.value + 201).offset, -1);
    EXPECT_EQ(list(now.value + 201).error_code, ErrorCode::none);
    EXPECT_EQ(list(-3).offset, 2);
    EXPECT_EQ(list(-3).timestamp, now.value + 200);
    EXPECT_EQ(list(-4).offset, 0);
    EXPECT_EQ(list(-5).offset, -1);
    EXPECT_EQ(list(-6).offset, -1);
    EXPECT_EQ(list(-3, 6).error_code, ErrorCode::unsupported_version);
    EXPECT_EQ(list(-4, 7).error_code, ErrorCode::unsupported_version);
    EXPECT_EQ(list(-5, 8).error_code, ErrorCode::unsupported_version);
    EXPECT_EQ(list(-6, 10).error_code, ErrorCode::unsupported_version);
    EXPECT_EQ(list(-7).error_code, ErrorCode::unsupported_version);
}

TEST_F(Admin, LeaderEpochsAreChecked) {
    broker.create_topic("a");
    append("a", {"1"});
    ASSERT_TRUE(broker.controller().raise_leader_epochs({{"a", 0}}));
    append("a", {"2", "3"});
    const auto end_of = [&](std::int32_t epoch, std::int32_t current = -1) {
        OffsetForLeaderEpochRequest request;
        request.topics.push_back({.topic = "a", .partitions = {{.partition = 0, .current_leader_epoch = current, .leader_epoch = epoch}}});
        return ask<OffsetForLeaderEpochResponse>(request).topics.at(0).partitions.at(0);
    };
    EXPECT_EQ(end_of(0).end_offset, 1);
    EXPECT_EQ(end_of(1).end_offset, 3);
    EXPECT_EQ(end_of(2).end_offset, -1);
    EXPECT_EQ(end_of(2).error_code, ErrorCode::none);
    EXPECT_EQ(end_of(-1).end_offset, -1);
    EXPECT_EQ(end_of(0, 0).error_code, ErrorCode::fenced_leader_epoch);
    EXPECT_EQ(end_of(0, 2).error_code, ErrorCode::unknown_leader_epoch);
    EXPECT_EQ(end_of(0, 1).error_code, ErrorCode::none);
}

// --- configurations ----------------------------------------------------------------------------------------------------

TEST_F(Admin, ConfigsAreDescribedAndChanged) {
    broker.create_topic("a", 1, {{"retention.ms", "1000"}});
    const auto describe = [&](std::int8_t type, const std::string& name, std::optional<std::vector<std::string>> keys = std::nullopt) {
        DescribeConfigsRequest request{.include_synonyms = true};
        request.resources.push_back({.resource_type = type, .resource_name = name, .configuration_keys = std::move(keys)});
        return ask<DescribeConfigsResponse>(request).results.at(0);
    };
    const auto retention = [&] { return describe(2, "a", std::vector<std::string>{"retention.ms", "no.such.key"}).configs.at(0); };
    EXPECT_EQ(retention().value, "1000");
    EXPECT_EQ(retention().config_source, 1);
    EXPECT_FALSE(retention().synonyms.empty());
    EXPECT_EQ(describe(2, "no-such").error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(describe(2, "").error_code, ErrorCode::invalid_topic_exception);
    EXPECT_EQ(describe(4, "2").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(describe(4, "x").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(describe(4, "1").error_code, ErrorCode::none);
    EXPECT_GT(describe(4, "1").configs.size(), 300u);
    // With eligible leader replicas the cluster's min.insync.replicas is written when the directory is formatted.
    const auto cluster = describe(4, "").configs;
    ASSERT_EQ(cluster.size(), 1u);
    EXPECT_EQ(cluster.at(0).name, "min.insync.replicas");
    EXPECT_EQ(describe(16, "").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(describe(32, "g").error_code, ErrorCode::none);
    EXPECT_EQ(describe(99, "x").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(describe(8, "1").configs.at(0).name, "root");

    const auto alter = [&](const char* topic, const char* key, std::int8_t op, std::optional<std::string> value) {
        IncrementalAlterConfigsRequest request;
        request.resources.push_back({.resource_type = 2, .resource_name = topic, .configs = {{.name = key, .config_operation = op, .value = std::move(value)}}});
        return ask<IncrementalAlterConfigsResponse>(request).responses.at(0).error_code;
    };
    EXPECT_EQ(alter("a", "retention.ms", 0, "2000"), ErrorCode::none);
    EXPECT_EQ(retention().value, "2000");
    EXPECT_EQ(broker.log("a").config()->retention_ms, 2000) << "the log has it already";
    EXPECT_EQ(alter("a", "retention.ms", 1, std::nullopt), ErrorCode::none);
    EXPECT_EQ(broker.log("a").config()->retention_ms, 604'800'000);
    EXPECT_EQ(alter("a", "no.such.key", 0, "1"), ErrorCode::invalid_config);
    EXPECT_EQ(alter("a", "retention.ms", 0, std::nullopt), ErrorCode::invalid_request);
    EXPECT_EQ(alter("no-such", "retention.ms", 0, "1"), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(alter("a", "retention.ms", 9, "1"), ErrorCode::unknown_server_error);

    AlterConfigsRequest replace;
    replace.resources.push_back({.resource_type = 2, .resource_name = "a", .configs = {{.name = "cleanup.policy", .value = "compact"}}});
    EXPECT_EQ(ask<AlterConfigsResponse>(replace).responses.at(0).error_code, ErrorCode::none);
    EXPECT_TRUE(broker.log("a").config()->compacts);
    replace.resources.push_back(replace.resources[0]);
    for (const auto& response : ask<AlterConfigsResponse>(replace).responses) EXPECT_EQ(response.error_code, ErrorCode::invalid_request);
}

TEST_F(Admin, BrokersDefaultsReachEveryLog) {
    broker.create_topic("a");
    IncrementalAlterConfigsRequest request;
    request.resources.push_back({.resource_type = 4, .resource_name = "", .configs = {{.name = "log.retention.ms", .value = "77000"}}});
    EXPECT_EQ(ask<IncrementalAlterConfigsResponse>(request).responses.at(0).error_code, ErrorCode::none);
    EXPECT_EQ(broker.log("a").config()->retention_ms, 77'000);
}

TEST_F(Admin, ResourcesAreListed) {
    broker.create_topic("a");
    const auto list = [&](std::vector<std::int8_t> types, std::int16_t version = 1) { return ask<ListConfigResourcesResponse>(ListConfigResourcesRequest{.resource_types = std::move(types)}, version); };
    EXPECT_THAT(list({}, 0).config_resources, IsEmpty());
    EXPECT_EQ(list({2}).config_resources.at(0).resource_name, "a");
    EXPECT_EQ(list({4}).config_resources.at(0).resource_name, "1");
    EXPECT_EQ(list({}).config_resources.size(), 3u);
    EXPECT_EQ(list({3}).error_code, ErrorCode::unsupported_version);
}

// --- the rest ----------------------------------------------------------------------------------------------------------

TEST_F(Admin, LogDirsAreDescribed) {
    broker.create_topic("a", 2);
    append("a", {"1"});
    const auto all = ask<DescribeLogDirsResponse>(DescribeLogDirsRequest{.topics = std::nullopt});
    ASSERT_EQ(all.results.size(), 1u);
    EXPECT_EQ(all.results[0].log_dir, "/data");
    ASSERT_EQ(all.results[0].topics.size(), 1u);
    EXPECT_EQ(all.results[0].topics[0].partitions.size(), 2u);
    EXPECT_GT(all.results[0].topics[0].partitions[0].partition_size, 0);
    EXPECT_EQ(all.results[0].topics[0].partitions[1].partition_size, 0);
    EXPECT_THAT(ask<DescribeLogDirsResponse>(DescribeLogDirsRequest{}).results.at(0).topics, IsEmpty());
    DescribeLogDirsRequest some;
    some.topics->push_back({.topic = "a", .partitions = {1, 7}});
    EXPECT_EQ(ask<DescribeLogDirsResponse>(some).results.at(0).topics.at(0).partitions.size(), 1u);

    const auto move = [&](const char* path, const char* topic) {
        AlterReplicaLogDirsRequest request;
        request.dirs.push_back({.path = path, .topics = {{.name = topic, .partitions = {0}}}});
        return ask<AlterReplicaLogDirsResponse>(request).results.at(0).partitions.at(0).error_code;
    };
    EXPECT_EQ(move("/data", "a"), ErrorCode::none);
    EXPECT_EQ(move("/nowhere", "a"), ErrorCode::log_dir_not_found);
    EXPECT_EQ(move("/data", "no-such"), ErrorCode::unknown_topic_or_partition);
}

class TwoDirectories : public Admin {
protected:
    TwoDirectories() : Admin({.storage = {.log_dirs = {"/a", "/b"}}}) {}
};

TEST_F(TwoDirectories, AReplicaMovesWhileItIsWritten) {
    broker.create_topic("t");
    append("t", {"0"});
    auto& log = broker.log("t");
    const auto from = log.log_dir().path();
    const std::string to = from == "/a" ? "/b" : "/a";
    AlterReplicaLogDirsRequest request;
    request.dirs.push_back({.path = to, .topics = {{.name = "t", .partitions = {0}}}});
    EXPECT_EQ(ask<AlterReplicaLogDirsResponse>(request).results.at(0).partitions.at(0).error_code, ErrorCode::none);
    int appended = 1;
    for (const auto deadline = std::chrono::steady_clock::now() + 30s; log.log_dir().path() != to && std::chrono::steady_clock::now() < deadline; ++appended) {
        append("t", {std::to_string(appended)});
    }
    append("t", {"last"});
    EXPECT_EQ(log.log_dir().path(), to);
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{appended + 1});
    for (const auto& directory : ask<DescribeLogDirsResponse>(DescribeLogDirsRequest{.topics = std::nullopt}).results) {
        ASSERT_EQ(directory.topics.size(), directory.log_dir == to ? 1u : 0u) << directory.log_dir;
        if (directory.log_dir != to) continue;
        EXPECT_GT(directory.topics[0].partitions.at(0).partition_size, 0);
        EXPECT_FALSE(directory.topics[0].partitions[0].is_future_key);
    }
}

TEST_F(TwoDirectories, AChoiceBeforeTheTopicIsHeeded) {
    for (const std::string to : {"/b", "/a"}) {
        const auto name = "of-" + to.substr(1);
        AlterReplicaLogDirsRequest request;
        request.dirs.push_back({.path = to, .topics = {{.name = name, .partitions = {0, 1}}}});
        const auto response = ask<AlterReplicaLogDirsResponse>(request);
        for (const auto& partition : response.results.at(0).partitions) EXPECT_EQ(partition.error_code, ErrorCode::unknown_topic_or_partition);
        broker.create_topic(name, 2);
        for (int p = 0; p < 2; ++p) EXPECT_EQ(broker.log(name, p).log_dir().path(), to);
    }
}

TEST_F(Admin, ProducersAreDescribed) {
    const auto id = broker.create_topic("a");
    auto records = test::batch_of({"x", "y"}, {.producer_id = 5, .producer_epoch = 2, .base_sequence = 0});
    ask<ProduceResponse>(test::produce_request("a", id, 0, records));
    DescribeProducersRequest request;
    request.topics.push_back({.name = "a", .partition_indexes = {0, 3}});
    request.topics.push_back({.name = "no-such", .partition_indexes = {0}});
    request.topics.push_back({.name = "bad name", .partition_indexes = {0}});
    const auto response = ask<DescribeProducersResponse>(request);
    const auto& producers = response.topics.at(0).partitions.at(0).active_producers;
    ASSERT_EQ(producers.size(), 1u);
    EXPECT_EQ(producers[0].producer_id, 5);
    EXPECT_EQ(producers[0].producer_epoch, 2);
    EXPECT_EQ(producers[0].last_sequence, 1);
    EXPECT_EQ(producers[0].current_txn_start_offset, -1);
    EXPECT_EQ(response.topics.at(0).partitions.at(1).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(response.topics.at(1).partitions.at(0).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(response.topics.at(2).partitions.at(0).error_code, ErrorCode::invalid_topic_exception);
}

TEST_F(Admin, QuorumIsThisNode) {
    DescribeQuorumRequest request;
    request.topics.push_back({.topic_name = "__cluster_metadata", .partitions = {{.partition_index = 0}, {.partition_index = 1}}});
    const auto response = ask<DescribeQuorumResponse>(request);
    const auto& partition = response.topics.at(0).partitions.at(0);
    EXPECT_EQ(partition.leader_id, 1);
    EXPECT_GT(partition.leader_epoch, 0);
    EXPECT_EQ(partition.high_watermark, broker.controller().quorum().end_offset.value);
    ASSERT_EQ(partition.current_voters.size(), 1u);
    EXPECT_EQ(partition.current_voters[0].replica_id, 1);
    EXPECT_EQ(response.topics.at(0).partitions.at(1).error_code, ErrorCode::unknown_topic_or_partition);
}

TEST_F(Admin, NothingIsToBeElectedOrMoved) {
    broker.create_topic("a");
    const auto elect = [&](const char* topic, std::int32_t partition) {
        ElectLeadersRequest request;
        request.topic_partitions->push_back({.topic = topic, .partitions = {partition}});
        return ask<ElectLeadersResponse>(request).replica_election_results.at(0).partition_result.at(0).error_code;
    };
    EXPECT_EQ(elect("a", 0), ErrorCode::election_not_needed);
    EXPECT_EQ(elect("a", 1), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(elect("no-such", 0), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(ask<ElectLeadersResponse>(ElectLeadersRequest{.election_type = 5}).error_code, ErrorCode::invalid_request);

    const auto reassign = [&](const char* topic, std::optional<std::vector<std::int32_t>> replicas) {
        AlterPartitionReassignmentsRequest request;
        request.topics.push_back({.name = topic, .partitions = {{.partition_index = 0, .replicas = std::move(replicas)}}});
        return ask<AlterPartitionReassignmentsResponse>(request).responses.at(0).partitions.at(0).error_code;
    };
    using Replicas = std::vector<std::int32_t>;
    EXPECT_EQ(reassign("a", Replicas{1}), ErrorCode::none);
    EXPECT_EQ(reassign("a", Replicas{2}), ErrorCode::invalid_replica_assignment);
    EXPECT_EQ(reassign("a", Replicas{1, 1}), ErrorCode::invalid_replica_assignment);
    EXPECT_EQ(reassign("a", Replicas{}), ErrorCode::invalid_replica_assignment);
    EXPECT_EQ(reassign("a", std::nullopt), ErrorCode::no_reassignment_in_progress);
    EXPECT_EQ(reassign("no-such", Replicas{1}), ErrorCode::unknown_topic_or_partition);
    EXPECT_THAT(ask<ListPartitionReassignmentsResponse>(ListPartitionReassignmentsRequest{}).topics, IsEmpty());
}

TEST_F(Admin, ProducerIdsAreHandedOutOnce) {
    const auto first = ask<InitProducerIdResponse>(InitProducerIdRequest{.transactional_id = std::nullopt}, 5);
    const auto second = ask<InitProducerIdResponse>(InitProducerIdRequest{.transactional_id = std::nullopt, .producer_id = 5, .producer_epoch = 3}, 5);
    EXPECT_EQ(second.producer_id, first.producer_id + 1);
    EXPECT_EQ(second.producer_epoch, 0);
    EXPECT_EQ(ask<InitProducerIdResponse>(InitProducerIdRequest{.transactional_id = ""}, 5).error_code, ErrorCode::invalid_request);
    EXPECT_EQ(ask<InitProducerIdResponse>(InitProducerIdRequest{.transactional_id = std::nullopt, .producer_id = 5}, 5).error_code, ErrorCode::invalid_request);
}

TEST_F(Admin, NothingIsSecured) {
    EXPECT_EQ(ask<DescribeAclsResponse>(DescribeAclsRequest{.resource_type_filter = 1, .pattern_type_filter = 1, .operation = 1, .permission_type = 1}).error_code, ErrorCode::security_disabled);
    CreateAclsRequest create;
    create.creations.resize(2);
    EXPECT_EQ(ask<CreateAclsResponse>(create).results.size(), 2u);
    DeleteAclsRequest remove;
    remove.filters.resize(1);
    EXPECT_EQ(ask<DeleteAclsResponse>(remove).filter_results.at(0).error_code, ErrorCode::security_disabled);
    EXPECT_EQ(ask<SaslHandshakeResponse>(SaslHandshakeRequest{.mechanism = "PLAIN"}).error_code, ErrorCode::illegal_sasl_state);
    EXPECT_EQ(ask<ApiVersionsResponse>(ApiVersionsRequest{}, 2).error_code, ErrorCode::none) << "the connection stays";
}

TEST_F(Admin, RequestsAreCounted) {
    ask<MetadataResponse>(MetadataRequest{.topics = {{{.name = "no-such"}}}, .allow_auto_topic_creation = false});
    const auto stats = broker.server().stats();
    const auto metadata = std::ranges::find(stats.apis, std::string_view{"Metadata"}, &ApiStats::name);
    ASSERT_NE(metadata, stats.apis.end());
    EXPECT_EQ(metadata->requests, 1u);
    EXPECT_EQ(metadata->requests_by_version.at(13), 1u);
    EXPECT_EQ(metadata->errors.at(3), 1u);
    EXPECT_EQ(metadata->local.count(), 1u);
    EXPECT_GT(metadata->request_bytes, 0u);
}

}  // namespace
}  // namespace tidemark::daemon
