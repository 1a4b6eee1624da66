/// Every API that is served: one function each, in the .cpp of that name (acls.cpp: four).
///
/// Three kinds, told apart by their place in served_apis.cpp: `here` returns its answer at once; `on_disk` does the same
/// on the disk pool, since it may wait for the disk, and the connection reads no further until it is done; `begin` gets
/// the call and finishes it itself, now or later.
#pragma once

#include <memory>

namespace tidemark::protocol {
#define TM_API(name) struct name##Request; struct name##Response
TM_API(AlterConfigs); TM_API(AlterPartitionReassignments); TM_API(AlterReplicaLogDirs);
TM_API(ApiVersions); TM_API(CreateAcls); 
TM_API(CreatePartitions); TM_API(CreateTopics); TM_API(DeleteAcls); TM_API(DeleteRecords); TM_API(DeleteTopics);
TM_API(DescribeAcls); TM_API(DescribeClientQuotas); TM_API(DescribeCluster); TM_API(DescribeConfigs);
TM_API(DescribeLogDirs); TM_API(DescribeProducers); TM_API(DescribeQuorum);
TM_API(DescribeTopicPartitions); TM_API(DescribeUserScramCredentials); TM_API(ElectLeaders);
TM_API(Fetch); TM_API(FindCoordinator); TM_API(IncrementalAlterConfigs);
TM_API(ListConfigResources); TM_API(ListOffsets); TM_API(ListPartitionReassignments); TM_API(Metadata);
TM_API(OffsetForLeaderEpoch); TM_API(Produce); TM_API(SaslAuthenticate);
TM_API(SaslHandshake); TM_API(UpdateFeatures);
#undef TM_API
}  // namespace tidemark::protocol

namespace tidemark::daemon {
class Broker;
class Call;
}  // namespace tidemark::daemon

namespace tidemark::daemon::handlers {

// begin
void api_versions(Broker&, const std::shared_ptr<Call>&);
void produce(Broker&, const std::shared_ptr<Call>&);
void fetch(Broker&, const std::shared_ptr<Call>&);
void list_offsets(Broker&, const std::shared_ptr<Call>&);
void join_group(Broker&, const std::shared_ptr<Call>&);
void sync_group(Broker&, const std::shared_ptr<Call>&);
void heartbeat(Broker&, const std::shared_ptr<Call>&);
void leave_group(Broker&, const std::shared_ptr<Call>&);
void offset_commit(Broker&, const std::shared_ptr<Call>&);
void offset_fetch(Broker&, const std::shared_ptr<Call>&);
void offset_delete(Broker&, const std::shared_ptr<Call>&);
void list_groups(Broker&, const std::shared_ptr<Call>&);
void describe_groups(Broker&, const std::shared_ptr<Call>&);
void delete_groups(Broker&, const std::shared_ptr<Call>&);
void consumer_group_heartbeat(Broker&, const std::shared_ptr<Call>&);
void consumer_group_describe(Broker&, const std::shared_ptr<Call>&);
void init_producer_id(Broker&, const std::shared_ptr<Call>&);
void add_partitions_to_txn(Broker&, const std::shared_ptr<Call>&);
void add_offsets_to_txn(Broker&, const std::shared_ptr<Call>&);
void end_txn(Broker&, const std::shared_ptr<Call>&);
void write_txn_markers(Broker&, const std::shared_ptr<Call>&);
void describe_transactions(Broker&, const std::shared_ptr<Call>&);
void list_transactions(Broker&, const std::shared_ptr<Call>&);
void txn_offset_commit(Broker&, const std::shared_ptr<Call>&);

// here
protocol::MetadataResponse metadata(Broker&, Call&, protocol::MetadataRequest&);
protocol::FindCoordinatorResponse find_coordinator(Broker&, Call&, protocol::FindCoordinatorRequest&);
protocol::SaslHandshakeResponse sasl_handshake(Broker&, Call&, protocol::SaslHandshakeRequest&);
protocol::SaslAuthenticateResponse sasl_authenticate(Broker&, Call&, protocol::SaslAuthenticateRequest&);
protocol::OffsetForLeaderEpochResponse offset_for_leader_epoch(Broker&, Call&, protocol::OffsetForLeaderEpochRequest&);
protocol::DescribeAclsResponse describe_acls(Broker&, Call&, protocol::DescribeAclsRequest&);
protocol::CreateAclsResponse create_acls(Broker&, Call&, protocol::CreateAclsRequest&);
protocol::DeleteAclsResponse delete_acls(Broker&, Call&, protocol::DeleteAclsRequest&);
protocol::DescribeConfigsResponse describe_configs(Broker&, Call&, protocol::DescribeConfigsRequest&);
protocol::ElectLeadersResponse elect_leaders(Broker&, Call&, protocol::ElectLeadersRequest&);
protocol::AlterPartitionReassignmentsResponse alter_partition_reassignments(Broker&, Call&, protocol::AlterPartitionReassignmentsRequest&);
protocol::ListPartitionReassignmentsResponse list_partition_reassignments(Broker&, Call&, protocol::ListPartitionReassignmentsRequest&);
protocol::DescribeClientQuotasResponse describe_client_quotas(Broker&, Call&, protocol::DescribeClientQuotasRequest&);
protocol::DescribeUserScramCredentialsResponse describe_user_scram_credentials(Broker&, Call&, protocol::DescribeUserScramCredentialsRequest&);
protocol::DescribeQuorumResponse describe_quorum(Broker&, Call&, protocol::DescribeQuorumRequest&);
protocol::DescribeClusterResponse describe_cluster(Broker&, Call&, protocol::DescribeClusterRequest&);
protocol::DescribeProducersResponse describe_producers(Broker&, Call&, protocol::DescribeProducersRequest&);
protocol::ListConfigResourcesResponse list_config_resources(Broker&, Call&, protocol::ListConfigResourcesRequest&);
protocol::DescribeTopicPartitionsResponse describe_topic_partitions(Broker&, Call&, protocol::DescribeTopicPartitionsRequest&);

// on_disk
protocol::CreateTopicsResponse create_topics(Broker&, Call&, protocol::CreateTopicsRequest&);
protocol::DeleteTopicsResponse delete_topics(Broker&, Call&, protocol::DeleteTopicsRequest&);
protocol::DeleteRecordsResponse delete_records(Broker&, Call&, protocol::DeleteRecordsRequest&);
protocol::AlterConfigsResponse alter_configs(Broker&, Call&, protocol::AlterConfigsRequest&);
protocol::AlterReplicaLogDirsResponse alter_replica_log_dirs(Broker&, Call&, protocol::AlterReplicaLogDirsRequest&);
protocol::DescribeLogDirsResponse describe_log_dirs(Broker&, Call&, protocol::DescribeLogDirsRequest&);
protocol::CreatePartitionsResponse create_partitions(Broker&, Call&, protocol::CreatePartitionsRequest&);
protocol::IncrementalAlterConfigsResponse incremental_alter_configs(Broker&, Call&, protocol::IncrementalAlterConfigsRequest&);
protocol::UpdateFeaturesResponse update_features(Broker&, Call&, protocol::UpdateFeaturesRequest&);

}  // namespace tidemark::daemon::handlers
