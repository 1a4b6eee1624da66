// Power is lost at every write of a transaction's way: its records and offsets are there together afterwards, or not at all.
#include <gmock/gmock.h>

#include "io/faulty_file_system.h"
#include "protocol/messages/end_txn_request.h"
#include "protocol/messages/end_txn_response.h"
#include "protocol/messages/fetch_request.h"
#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"
#include "protocol/messages/offset_fetch_request.h"
#include "protocol/messages/offset_fetch_response.h"
#include "protocol/messages/txn_offset_commit_request.h"
#include "protocol/messages/txn_offset_commit_response.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

constexpr std::int64_t committed_offset = 41;

/// A client of a broker over a disk. What it does asks again for as long as the answer is one that passes.
class Session {
public:
    explicit Session(io::FileSystem& disk)
        : broker_({.file = {{"transaction.state.log.num.partitions", "1"}, {"offsets.topic.num.partitions", "1"}}, .files = &disk}), client_(broker_.client()) {
        for (const std::int8_t key_type : {std::int8_t{0}, std::int8_t{1}}) {
            again([&] { return client_.ask<FindCoordinatorResponse>(FindCoordinatorRequest{.key_type = key_type, .coordinator_keys = {"any"}}, 6).coordinators.at(0).error_code; });
        }
    }
    Uuid make_topic() { return broker_.create_topic("t", 2); }

    /// Ends what another producer of this id has begun.
    void begin() {
        again([&] {
            const auto answer = client_.ask<InitProducerIdResponse>(InitProducerIdRequest{.transactional_id = "tx", .transaction_timeout_ms = 60'000}, 5);
            id_ = answer.producer_id;
            epoch_ = answer.producer_epoch;
            return answer.error_code;
        });
    }
    ErrorCode produce(Uuid topic, std::int32_t partition) {
        auto records = test::batch_of({"value"}, {.producer_id = id_, .producer_epoch = epoch_, .base_sequence = 0, .transactional = true});
        auto request = test::produce_request("t", topic, partition, records);
        request.transactional_id = "tx";
        return client_.ask<ProduceResponse>(request, 13).responses.at(0).partition_responses.at(0).error_code;
    }
    ErrorCode send_offset(Uuid topic) {
        TxnOffsetCommitRequest request{.transactional_id = "tx", .group_id = "g", .producer_id = id_, .producer_epoch = epoch_};
        request.topics.push_back({.topic_id = topic, .partitions = {{.partition_index = 0, .committed_offset = committed_offset}}});
        return client_.ask<TxnOffsetCommitResponse>(request, 6).topics.at(0).partitions.at(0).error_code;
    }
    ErrorCode commit() {
        return client_.ask<EndTxnResponse>(EndTxnRequest{.transactional_id = "tx", .producer_id = id_, .producer_epoch = epoch_, .committed = true}, 5).error_code;
    }

    /// How many parts of the transaction a reader sees, once everything is decided: two records and an offset.
    int visible_parts(Uuid topic) {
        int parts = 0;
        for (std::int32_t partition = 0; partition < 2; ++partition) {
            again([&] {
                FetchRequest request{.max_wait_ms = 0, .min_bytes = 0, .isolation_level = 1};
                request.topics.push_back({.topic_id = topic, .partitions = {{.partition = partition, .partition_max_bytes = 1 << 20}}});
                auto answer = client_.ask<FetchResponse>(request, 17);
                auto& data = answer.responses.at(0).partitions.at(0);
                if (data.error_code != ErrorCode::none) return data.error_code;
                if (data.last_stable_offset != data.high_watermark) return ErrorCode::concurrent_transactions;
                const bool aborted = data.aborted_transactions && !data.aborted_transactions->empty();
                parts += has_records(data) && !aborted;
                return ErrorCode::none;
            });
        }
        again([&] {
            OffsetFetchRequest request{.require_stable = true};
            request.groups.push_back({.group_id = "g"});
            request.groups.back().topics->push_back({.topic_id = topic, .partition_indexes = {0}});
            const auto group = client_.ask<OffsetFetchResponse>(request, 10).groups.at(0);
            if (group.error_code != ErrorCode::none) return group.error_code;
            const auto& offset = group.topics.at(0).partitions.at(0);
            parts += offset.error_code == ErrorCode::none && offset.committed_offset == committed_offset;
            return offset.error_code;
        });
        return parts;
    }

private:
    /// Other than markers.
    static bool has_records(fetch_response::PartitionData& data) {
        record::BatchCursor cursor{data.records ? data.records->bytes : MutableBytes{}};
        for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
            if (!(*batch)->is_control()) return true;
        }
        return false;
    }
    static void again(const std::function<ErrorCode()>& ask) {
        const auto end = std::chrono::steady_clock::now() + 20s;
        auto error = ask();
        const auto passes = [&] {
            return error == ErrorCode::coordinator_not_available || error == ErrorCode::coordinator_load_in_progress || error == ErrorCode::not_coordinator ||
                   error == ErrorCode::concurrent_transactions || error == ErrorCode::unstable_offset_commit;
        };
        while (passes() && std::chrono::steady_clock::now() < end) error = ask();
        ASSERT_EQ(error, ErrorCode::none);
    }

    test::TestBroker broker_;
    test::TestClient client_;
    ProducerId id_ = no_producer_id;
    ProducerEpoch epoch_ = -1;
};

TEST(TransactionsWithoutPower, AreAllOrNothingWhereverItWasLost) {
    io::FaultyFileSystem fresh;
    Uuid topic;
    {
        Session session{fresh};
        topic = session.make_topic();
        session.begin();
    }
    int lost = 0, kept = 0;
    for (int step = 0;; ++step) {
        SCOPED_TRACE("power lost at step " + std::to_string(step));
        io::FaultyFileSystem disk{{}, fresh.after_restart()};
        bool acknowledged = false;
        {
            Session session{disk};
            session.begin();
            disk.inject({.lose_power_at = step});
            acknowledged = session.produce(topic, 0) == ErrorCode::none && session.produce(topic, 1) == ErrorCode::none && session.send_offset(topic) == ErrorCode::none &&
                           session.commit() == ErrorCode::none;
        }
        const bool finished = !disk.tripped();
        auto after = disk.after_restart({.seed = static_cast<std::uint64_t>(step)});
        Session session{after};
        session.begin();
        const auto parts = session.visible_parts(topic);
        EXPECT_TRUE(parts == 0 || parts == 3) << parts << " of 3 parts";
        if (acknowledged) {
            EXPECT_EQ(parts, 3);
        }
        ++(parts == 0 ? lost : kept);
        if (finished) break;
        ASSERT_LT(step, 1000);
    }
    EXPECT_GT(lost, 5);
    EXPECT_GT(kept, 1);
}

}  // namespace
}  // namespace tidemark::daemon
