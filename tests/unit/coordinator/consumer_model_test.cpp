// Clients that do what KIP-848 asks of them, against a coordinator whose clock, disk and topics misbehave. What must hold:
// no partition is ever two members' at the same time, and once the world is quiet every partition is somebody's.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "tests/unit/coordinator/consumer_fixture.h"

namespace tidemark::coordinator {
namespace {

using namespace std::chrono_literals;
using protocol::ErrorCode;

struct ModelClient {
    std::string id;
    std::int32_t epoch = 0;
    Partitions owned = {};
    std::vector<std::string> topics = {};
    bool says_all = true;   ///< its next request is a full one, since the answer to the last was lost, or it joins
};

class Model {
public:
    Model() {
        for (const auto* name : {"t0", "t1", "t2"}) c.put_topic(name, *rc::gen::inRange(1, 6));
    }

    void step() {
        switch (*rc::gen::inRange(0, 12)) {
            case 0: return join();
            case 1: return leave();
            case 2: return resubscribe();
            case 3: return c.advance(std::chrono::milliseconds{*rc::gen::inRange(0, 4000)});
            case 4: c.put_topic("t" + std::to_string(*rc::gen::inRange(0, 3)), *rc::gen::inRange(1, 8)); return;
            case 5: return c.restart();
            case 6: c.fail_writes = *rc::gen::arbitrary<bool>() ? std::optional{Error{Errc::no_space, "full"}} : std::nullopt; return;
            default: return beat(*rc::gen::inRange(0, 4) == 0);
        }
    }

    /// Everybody's heartbeats arrive, nothing changes.
    void settle() {
        c.fail_writes.reset();
        for (int round = 0; round < 40; ++round) {
            c.advance(100ms);
            for (auto& client : clients) exchange(client, false);
        }
    }

    void assert_disjoint() const {
        std::set<std::pair<Uuid, std::int32_t>> all;
        for (const auto& client : clients) {
            if (!is_member(client)) continue;   // it was removed, and stops when it hears of it
            for (const auto& [topic, partitions] : client.owned) {
                for (const auto partition : partitions) RC_ASSERT((all.insert({topic, partition}).second));
            }
        }
    }

    void assert_complete() const {
        if (clients.empty()) return;
        RC_ASSERT(c.group().state() == ConsumerGroup::State::stable);
        std::set<std::pair<Uuid, std::int32_t>> all, expected;
        std::set<std::string> topics;
        for (const auto& client : clients) {
            RC_ASSERT(client.owned == without_epochs(c.member(client.id).current.assigned));
            topics.insert(client.topics.begin(), client.topics.end());
            for (const auto& [topic, partitions] : client.owned) {
                RC_ASSERT(std::ranges::count(client.topics, c.image()->find(topic)->name) == 1);
                for (const auto partition : partitions) all.insert({topic, partition});
            }
        }
        for (const auto& name : topics) {
            const auto* topic = c.image()->find(name);
            for (const auto& [partition, state] : topic->partitions) expected.insert({topic->id, partition});
        }
        RC_ASSERT(all == expected);
    }

private:
    bool is_member(const ModelClient& client) const {
        const auto* group = c.groups.find_as<ConsumerGroup>("g");
        const auto* member = group == nullptr ? nullptr : group->find(client.id);
        return member != nullptr && client.epoch > 0 && member->current.epoch >= client.epoch;
    }

    std::vector<std::string> some_topics() const {
        std::vector<std::string> topics;
        for (const auto* name : {"t0", "t1", "t2"}) {
            if (*rc::gen::inRange(0, 3) > 0) topics.push_back(name);
        }
        return topics;
    }

    void join() {
        if (clients.size() >= 5) return;
        clients.push_back({.id = "m" + std::to_string(next_id_++), .topics = some_topics()});
        exchange(clients.back(), false);
    }
    void leave() {
        if (clients.empty()) return;
        const auto place = clients.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(clients.size()));
        if (c.leave(place->id).error_code == ErrorCode::not_coordinator) return;   // not written: it stays
        clients.erase(place);
    }
    void resubscribe() {
        if (clients.empty()) return;
        auto& client = clients[*rc::gen::inRange<std::size_t>(0, clients.size())];
        client.topics = some_topics();
        client.says_all = true;
        exchange(client, false);
    }
    void beat(bool answer_is_lost) {
        if (clients.empty()) return;
        exchange(clients[*rc::gen::inRange<std::size_t>(0, clients.size())], answer_is_lost);
    }

    void exchange(ModelClient& client, bool answer_is_lost) {
        ConsumerCoordinator::Request request;
        request.group_id = "g";
        request.member_id = client.id;
        request.member_epoch = client.epoch;
        request.topic_partitions.emplace();
        for (const auto& [topic, partitions] : client.owned) {
            auto& entry = request.topic_partitions->emplace_back();
            entry.topic_id = topic;
            entry.partitions = partitions;
        }
        if (client.says_all) {
            request.rebalance_timeout_ms = 5000;
            request.subscribed_topic_names = client.topics;
        }
        const auto response = c.send(request);
        client.says_all = answer_is_lost || response.error_code != ErrorCode::none;
        if (answer_is_lost) return;
        if (response.error_code == ErrorCode::fenced_member_epoch || response.error_code == ErrorCode::unknown_member_id || response.error_code == ErrorCode::group_id_not_found) {
            client.epoch = 0;   // gives up everything and joins again
            client.owned.clear();
            return;
        }
        if (response.error_code != ErrorCode::none) return;
        client.epoch = response.member_epoch;
        if (!response.assignment) return;
        client.owned.clear();
        for (const auto& topic : response.assignment->topic_partitions) client.owned[topic.topic_id] = topic.partitions;
    }

    ConsumerCoordinator c;
    std::vector<ModelClient> clients;
    int next_id_ = 0;
};

RC_GTEST_PROP(ConsumerGroupModel, NoPartitionIsTwoMembersAndEveryoneGetsItsShareInTheEnd, ()) {
    Model model;
    const auto steps = *rc::gen::inRange(0, 80);
    for (int i = 0; i < steps; ++i) {
        model.step();
        model.assert_disjoint();
    }
    model.settle();
    model.assert_disjoint();
    model.assert_complete();
}

}  // namespace
}  // namespace tidemark::coordinator
