// The table of what is served, and the only place where a handler gets its API key.
#include "daemon/served_api.h"

#include <algorithm>
#include <array>

#include "daemon/handlers/handler.h"
#include "daemon/handlers/handlers.h"
#include "protocol/messages/alter_configs_request.h"
#include "protocol/messages/alter_configs_response.h"
#include "protocol/messages/alter_partition_reassignments_request.h"
#include "protocol/messages/alter_partition_reassignments_response.h"
#include "protocol/messages/alter_replica_log_dirs_request.h"
#include "protocol/messages/alter_replica_log_dirs_response.h"
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
#include "protocol/messages/describe_client_quotas_request.h"
#include "protocol/messages/describe_client_quotas_response.h"
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
#include "protocol/messages/describe_user_scram_credentials_request.h"
#include "protocol/messages/describe_user_scram_credentials_response.h"
#include "protocol/messages/elect_leaders_request.h"
#include "protocol/messages/elect_leaders_response.h"
#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"
#include "protocol/messages/incremental_alter_configs_request.h"
#include "protocol/messages/incremental_alter_configs_response.h"
#include "protocol/messages/list_config_resources_request.h"
#include "protocol/messages/list_config_resources_response.h"
#include "protocol/messages/list_partition_reassignments_request.h"
#include "protocol/messages/list_partition_reassignments_response.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"
#include "protocol/messages/offset_for_leader_epoch_request.h"
#include "protocol/messages/offset_for_leader_epoch_response.h"
#include "protocol/messages/sasl_authenticate_request.h"
#include "protocol/messages/sasl_authenticate_response.h"
#include "protocol/messages/sasl_handshake_request.h"
#include "protocol/messages/sasl_handshake_response.h"
#include "protocol/messages/update_features_request.h"
#include "protocol/messages/update_features_response.h"

namespace tidemark::daemon {

namespace {

std::vector<ServedApi> make_table() {
    using namespace handlers;
    using protocol::ApiKey;
    std::vector<ServedApi> table{
        begin(ApiKey::produce, &produce),
        begin(ApiKey::fetch, &fetch),
        begin(ApiKey::list_offsets, &list_offsets),
        begin(ApiKey::offset_commit, &offset_commit),
        begin(ApiKey::offset_fetch, &offset_fetch),
        begin(ApiKey::join_group, &join_group),
        begin(ApiKey::heartbeat, &heartbeat),
        begin(ApiKey::leave_group, &leave_group),
        begin(ApiKey::sync_group, &sync_group),
        begin(ApiKey::describe_groups, &describe_groups),
        begin(ApiKey::list_groups, &list_groups),
        begin(ApiKey::delete_groups, &delete_groups),
        begin(ApiKey::offset_delete, &offset_delete),
        begin(ApiKey::consumer_group_heartbeat, &consumer_group_heartbeat),
        begin(ApiKey::consumer_group_describe, &consumer_group_describe),
        here<&metadata>(),
        here<&find_coordinator>(),
        here<&sasl_handshake>(),
        begin(ApiKey::api_versions, &api_versions),
        on_disk<&create_topics>(),
        on_disk<&delete_topics>(),
        on_disk<&delete_records>(),
        begin(ApiKey::init_producer_id, &init_producer_id),
        begin(ApiKey::add_partitions_to_txn, &add_partitions_to_txn),
        begin(ApiKey::add_offsets_to_txn, &add_offsets_to_txn),
        begin(ApiKey::end_txn, &end_txn),
        begin(ApiKey::write_txn_markers, &write_txn_markers),
        begin(ApiKey::txn_offset_commit, &txn_offset_commit),
        here<&offset_for_leader_epoch>(),
        here<&describe_acls>(),
        here<&create_acls>(),
        here<&delete_acls>(),
        on_disk<&describe_configs>(),   // large answers to small requests: not on a loop that others wait for
        on_disk<&alter_configs>(),
        on_disk<&alter_replica_log_dirs>(),
        on_disk<&describe_log_dirs>(),
        here<&sasl_authenticate>(),
        on_disk<&create_partitions>(),
        here<&elect_leaders>(),
        on_disk<&incremental_alter_configs>(),
        here<&alter_partition_reassignments>(),
        here<&list_partition_reassignments>(),
        here<&describe_client_quotas>(),
        here<&describe_user_scram_credentials>(),
        here<&describe_quorum>(),
        here<&describe_cluster>(),
        here<&describe_producers>(),
        begin(ApiKey::describe_transactions, &describe_transactions),
        begin(ApiKey::list_transactions, &list_transactions),
        here<&list_config_resources>(),
        here<&describe_topic_partitions>(),
        on_disk<&update_features>(),
    };
    std::ranges::sort(table, {}, [](const ServedApi& served) { return served.api->key; });
    return table;
}

const std::vector<ServedApi>& table() {
    static const std::vector<ServedApi> made = make_table();
    return made;
}

}  // namespace

std::span<const ServedApi> served_apis() { return table(); }

const ServedApi* find_served_api(std::int16_t key) {
    // A request each: an array by key instead of a search.
    static const auto by_key = [] {
        std::array<const ServedApi*, 128> places{};
        for (const auto& served : table()) places[static_cast<std::size_t>(served.api->key)] = &served;
        return places;
    }();
    return key >= 0 && static_cast<std::size_t>(key) < by_key.size() ? by_key[static_cast<std::size_t>(key)] : nullptr;
}

}  // namespace tidemark::daemon
