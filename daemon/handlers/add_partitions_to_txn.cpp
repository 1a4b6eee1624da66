// AddPartitionsToTxn (24), versions 0 to 5: transaction-coordinator 5. Up to 3 one transaction, from a client; from 4 on
// several, from brokers that ask for theirs (KIP-890). Without an authorizer everybody may do both.
#include "protocol/messages/add_partitions_to_txn_request.h"
#include "protocol/messages/add_partitions_to_txn_response.h"

#include <map>

#include "coordinator/gather.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using coordinator::Producer;
using coordinator::VerifyAnswer;
using protocol::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
using protocol::add_partitions_to_txn_response::AddPartitionsToTxnResult;
using protocol::add_partitions_to_txn_response::AddPartitionsToTxnTopicResult;

constexpr std::int16_t first_of_brokers = 4;

using Verdicts = std::map<TopicPartition, ErrorCode>;

std::set<TopicPartition> partitions_of(const std::vector<AddPartitionsToTxnTopic>& topics) {
    std::set<TopicPartition> partitions;
    for (const auto& topic : topics) {
        for (const auto index : topic.partitions) partitions.insert({topic.name, index});
    }
    return partitions;
}

/// Why nothing is attempted; empty when all is well.
Verdicts refused(const metadata::Image& image, const std::set<TopicPartition>& partitions, bool from_client) {
    Verdicts verdicts;
    bool any = false;
    for (const auto& partition : partitions) {
        auto error = ErrorCode::operation_not_attempted;
        if (from_client && is_internal_topic(partition.topic)) error = ErrorCode::topic_authorization_failed;
        else if (!image.find(partition)) error = ErrorCode::unknown_topic_or_partition;
        any |= error != ErrorCode::operation_not_attempted;
        verdicts.emplace(partition, error);
    }
    return any ? verdicts : Verdicts{};
}

/// One transaction's answer: what each partition gets, in the order of the request.
std::vector<AddPartitionsToTxnTopicResult> results(const std::vector<AddPartitionsToTxnTopic>& topics, const std::function<ErrorCode(const TopicPartition&)>& verdict) {
    std::vector<AddPartitionsToTxnTopicResult> made;
    for (const auto& topic : topics) {
        auto& result = made.emplace_back();
        result.name = topic.name;
        for (const auto index : topic.partitions) result.results_by_partition.push_back({.partition_index = index, .partition_error_code = verdict({topic.name, index})});
    }
    return made;
}

using Answer = coordinator::Gather<protocol::AddPartitionsToTxnResponse>;

struct Asked {
    std::string id;
    Producer producer;
    bool verify_only = false;
    std::vector<AddPartitionsToTxnTopic> topics;
};

/// Asks the coordinator about one transaction; `to`, a part of the answer, gets what each partition is told.
void one_transaction(Broker& broker, const std::shared_ptr<Call>& call, const std::shared_ptr<Answer>& answer, Asked asked, std::vector<AddPartitionsToTxnTopicResult>& to) {
    const bool from_client = call->version() < first_of_brokers;
    const auto partitions = partitions_of(asked.topics);
    if (const auto verdicts = refused(*broker.image(), partitions, from_client); !verdicts.empty()) {
        to = results(asked.topics, [&](const TopicPartition& partition) { return verdicts.at(partition); });
        for (const auto& [partition, error] : verdicts) call->count(error);
        return;
    }
    auto& transactions = broker.coordinators().transactions();
    if (asked.verify_only) {
        return transactions.verify_partitions(asked.id, asked.producer, partitions, [call, answer, &to, topics = std::move(asked.topics)](const VerifyAnswer& verified) {
            to = results(topics, [&](const TopicPartition& partition) { return verified.of(partition); });
            call->count(verified.error);
        });
    }
    const std::int16_t client_version = from_client ? 0 : coordinator::transaction_version_2;
    transactions.add_partitions(asked.id, asked.producer, partitions, client_version, false, [call, answer, &to, topics = std::move(asked.topics)](ErrorCode error) {
        const auto shown = producer_error(error, call->version());
        to = results(topics, [&](const TopicPartition&) { return shown; });
        call->count(shown);
    });
}

}  // namespace

void add_partitions_to_txn(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<protocol::AddPartitionsToTxnRequest>();
    if (!request) return;
    call->hold_reading();
    const auto answer = Answer::make({}, [call](const protocol::AddPartitionsToTxnResponse& whole) { call->finish(whole); });
    if (call->version() < first_of_brokers) {
        one_transaction(broker, call, answer,
                        {.id = request->v3_and_below_transactional_id,
                         .producer = {request->v3_and_below_producer_id, request->v3_and_below_producer_epoch},
                         .topics = std::move(request->v3_and_below_topics)},
                        answer->whole.results_by_topic_v3_and_below);
    } else {
        auto& answers = answer->whole.results_by_transaction;
        answers.reserve(request->transactions.size());   // the coordinator's answers are written into them
        for (auto& transaction : request->transactions) {
            auto& of_one = answers.emplace_back(AddPartitionsToTxnResult{.transactional_id = transaction.transactional_id});
            one_transaction(broker, call, answer,
                            {.id = transaction.transactional_id,
                             .producer = {transaction.producer_id, transaction.producer_epoch},
                             .verify_only = transaction.verify_only,
                             .topics = std::move(transaction.topics)},
                            of_one.topic_results);
        }
    }
}

}  // namespace tidemark::daemon::handlers
