#include "metrics/daemon_metrics.h"

#include "protocol/error_code.h"

namespace tidemark::metrics {
namespace {

prometheus::MetricFamily histogram(std::string name, std::string help) {
    prometheus::MetricFamily family;
    family.name = std::move(name);
    family.help = std::move(help);
    family.type = prometheus::MetricType::Histogram;
    return family;
}

void add_connections(FamilyList& to, const daemon::ServerStats& stats) {
    add_gauge(to, "tidemark_connections", "Open client connections. Kafka: kafka.server:type=socket-server-metrics,name=connection-count", stats.connections);
    add_counter(to, "tidemark_connections_accepted_total", "Client connections accepted. Kafka: kafka.server:type=socket-server-metrics,name=connection-creation-total", stats.connections_accepted);
    auto closed = counter("tidemark_connections_closed_total", "Client connections that the daemon closed, by reason. Kafka: kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount is reason idle");
    closed.add({{"reason", "idle"}}, stats.connections_closed_idle);
    closed.add({{"reason", "not_a_request"}}, stats.connections_closed_garbage);
    closed.add({{"reason", "holds_deleted_segment"}}, stats.connections_closed_slow);
    closed.add({{"reason", "limit_per_address"}}, stats.connections_refused);
    std::move(closed).move_to(to);
    add_counter(to, "tidemark_network_received_bytes_total", "Bytes received from clients. Kafka: kafka.server:type=socket-server-metrics,name=incoming-byte-total", stats.bytes_received);
    add_counter(to, "tidemark_network_sent_bytes_total", "Bytes sent to clients. Kafka: kafka.server:type=socket-server-metrics,name=outgoing-byte-total", stats.bytes_sent);
    add_counter(to, "tidemark_network_sendfile_bytes_total", "The part of the bytes sent that went from file to socket without passing through the daemon.", stats.bytes_sent_from_files);

    auto software = gauge("tidemark_client_connections", "Open connections by the client software that they named.");
    std::size_t shown = 0, others = 0;
    for (const auto& [name_and_version, connections] : stats.client_software) {
        if (shown++ < client_software_max) software.add({{"software", name_and_version.first}, {"version", name_and_version.second}}, connections);
        else others += connections;
    }
    if (others > 0) software.add({{"software", "others"}, {"version", ""}}, others);
    std::move(software).move_to(to);
}

void add_transactions(FamilyList& to, const coordinator::TransactionStats& stats) {
    add_gauge(to, "tidemark_transactional_ids", "Transactional ids that the coordinator knows.", stats.ids);
    add_gauge(to, "tidemark_transactions_open", "Transactions that have begun and are not complete.", stats.open);
    add_gauge(to, "tidemark_transaction_oldest_seconds", "How long ago the oldest open transaction began; 0 when none is open.", stats.oldest_seconds);
    auto completed = counter("tidemark_transactions_completed_total", "Transactions whose markers are all written, by result.");
    completed.add({{"result", "committed"}}, stats.committed);
    completed.add({{"result", "aborted"}}, stats.aborted);
    std::move(completed).move_to(to);
    add_counter(to, "tidemark_transactions_timed_out_total", "Transactions aborted because their timeout had passed.", stats.timed_out);
    add_counter(to, "tidemark_transactional_ids_expired_total", "Transactional ids that were not used for so long that they were forgotten.", stats.expired_ids);
    add_gauge(to, "tidemark_transaction_markers_outstanding", "Markers of decided transactions that are not written yet. Kafka: kafka.coordinator.transaction:type=TransactionMarkerChannelManager,name=UnknownDestinationQueueSize is the nearest", stats.markers_outstanding);
}

void add_work(FamilyList& to, const daemon::ServerStats& stats) {
    add_gauge(to, "tidemark_queued_request_bytes", "Bytes of requests that were read and not yet answered. Kafka: kafka.network:type=RequestChannel,name=RequestQueueSize counts requests", stats.queued_request_bytes);
    add_gauge(to, "tidemark_fetches_waiting", "Fetches that wait for data. Kafka: kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,delayedOperation=Fetch", stats.fetches_waiting);
    add_gauge(to, "tidemark_fetch_sessions", "Incremental fetch sessions. Kafka: kafka.server:type=FetchSessionCache,name=NumIncrementalFetchSessions", stats.fetch_sessions);
    add_gauge(to, "tidemark_fetch_session_partitions", "Partitions in them. Kafka: kafka.server:type=FetchSessionCache,name=NumIncrementalFetchPartitionsCached", stats.fetch_session_partitions);
    add_counter(to, "tidemark_fetch_sessions_evicted_total", "Sessions that made room for others. Kafka: kafka.server:type=FetchSessionCache,name=IncrementalFetchSessionEvictionsPerSec", stats.fetch_sessions_evicted);
    add_counter(to, "tidemark_cold_reads_total", "Reads that the page cache could not serve.", stats.cold_reads);
    add_counter(to, "tidemark_cold_read_bytes_total", "Bytes of reads that the page cache could not serve.", stats.cold_read_bytes);
    auto jobs = gauge("tidemark_disk_jobs", "Work on the threads that may wait for the disk. Kafka: kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent is the nearest");
    jobs.add({{"state", "running"}}, stats.disk_jobs_running);
    jobs.add({{"state", "waiting"}}, stats.disk_jobs_waiting);
    std::move(jobs).move_to(to);

    auto lag = gauge("tidemark_event_loop_lag_seconds", "How late the loop's last beat was.");
    auto lag_max = gauge("tidemark_event_loop_lag_max_seconds", "How late the loop's latest beat was since the last scrape.");
    auto connections = gauge("tidemark_event_loop_connections", "Connections of the loop.");
    for (std::size_t i = 0; i < stats.loops.size(); ++i) {
        const Labels labels{{"loop", std::to_string(i)}};
        lag.add(labels, stats.loops[i].lag_seconds);
        lag_max.add(labels, stats.loops[i].lag_seconds_max);
        connections.add(labels, stats.loops[i].connections);
    }
    for (auto* family : {&lag, &lag_max, &connections}) std::move(*family).move_to(to);
}

void add_apis(FamilyList& to, const std::vector<daemon::ApiStats>& apis) {
    auto requests = counter("tidemark_requests_total", "Requests. Kafka: kafka.network:type=RequestMetrics,name=RequestsPerSec,request=…,version=…");
    auto errors = counter("tidemark_request_errors_total", "Error codes in answers. Kafka: kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=…,error=…");
    auto in = counter("tidemark_request_bytes_total", "Bytes of requests. Kafka: kafka.network:type=RequestMetrics,name=RequestBytes,request=…");
    auto out = counter("tidemark_response_bytes_total", "Bytes of answers.");
    auto total = histogram("tidemark_request_duration_seconds", "From a request's last byte read to its answer's last byte written, waiting for data included. Kafka: kafka.network:type=RequestMetrics,name=TotalTimeMs,request=…");
    auto local = histogram("tidemark_request_local_duration_seconds", "The handler's own part of a request's time. Kafka: kafka.network:type=RequestMetrics,name=LocalTimeMs,request=…");
    for (const auto& api : apis) {
        const std::string name{api.name};
        for (const auto& [version, count] : api.requests_by_version) requests.add({{"api", name}, {"version", std::to_string(version)}}, count);
        for (const auto& [code, count] : api.errors) errors.add({{"api", name}, {"error", std::string(protocol::to_string(static_cast<protocol::ErrorCode>(code)))}}, count);
        if (api.requests == 0) continue;  // an API that nobody used has no histogram of zeros
        in.add({{"api", name}}, api.request_bytes);
        out.add({{"api", name}}, api.answer_bytes);
        add_histogram(total, {{"api", name}}, daemon::latency_bounds, api.total.buckets, api.total.sum_seconds);
        add_histogram(local, {{"api", name}}, daemon::latency_bounds, api.local.buckets, api.local.sum_seconds);
    }
    for (auto* family : {&requests, &errors, &in, &out}) std::move(*family).move_to(to);
    if (!total.metric.empty()) to.push_back(std::move(total));
    if (!local.metric.empty()) to.push_back(std::move(local));
}

void add_topics(FamilyList& to, const std::map<std::string, daemon::TopicStats>& topics) {
    auto bytes_in = counter("tidemark_topic_bytes_in_total", "Bytes of record batches appended for producers. Kafka: kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=…");
    auto bytes_out = counter("tidemark_topic_bytes_out_total", "Bytes of record batches sent to consumers. Kafka: kafka.server:type=BrokerTopicMetrics,name=BytesOutPerSec,topic=…");
    auto records_in = counter("tidemark_topic_records_in_total", "Records appended for producers. Kafka: kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=…");
    auto produces = counter("tidemark_topic_produce_requests_total", "Partitions of this topic in produce requests. Kafka: kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec,topic=…");
    auto fetches = counter("tidemark_topic_fetch_requests_total", "Partitions of this topic in fetch requests. Kafka: kafka.server:type=BrokerTopicMetrics,name=TotalFetchRequestsPerSec,topic=…");
    auto failed_produces = counter("tidemark_topic_failed_produce_requests_total", "The refused ones. Kafka: kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec,topic=…");
    auto failed_fetches = counter("tidemark_topic_failed_fetch_requests_total", "The refused ones. Kafka: kafka.server:type=BrokerTopicMetrics,name=FailedFetchRequestsPerSec,topic=…");
    for (const auto& [topic, stats] : topics) {
        const Labels labels{{"topic", topic}};
        bytes_in.add(labels, stats.bytes_in);
        bytes_out.add(labels, stats.bytes_out);
        records_in.add(labels, stats.records_in);
        produces.add(labels, stats.produce_requests);
        fetches.add(labels, stats.fetch_requests);
        failed_produces.add(labels, stats.failed_produce_requests);
        failed_fetches.add(labels, stats.failed_fetch_requests);
    }
    for (auto* family : {&bytes_in, &bytes_out, &records_in, &produces, &fetches, &failed_produces, &failed_fetches}) std::move(*family).move_to(to);
}

}  // namespace

FamilyList families_of(const daemon::ServerStats& stats) {
    FamilyList families;
    add_connections(families, stats);
    add_work(families, stats);
    add_transactions(families, stats.transactions);
    add_apis(families, stats.apis);
    add_topics(families, stats.topics);
    return families;
}

}  // namespace tidemark::metrics
