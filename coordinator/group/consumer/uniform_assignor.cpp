// The uniform assignor, group-coordinator 6.8.
//
//   same subscription         1. Each member keeps what it had, up to its share; who comes first may keep one more.
//                             2. Free partitions go to members below their share, in order.
//   different subscriptions   1. Each member keeps what it had of topics it still subscribes to.
//                             2. Topic by topic, free partitions go to the subscriber with the fewest.
//                             3. Passes over the topics move partitions from the subscriber with the most to the one
//                                with the fewest, until no topic has a difference above one, or 16 passes are done.
#include <algorithm>
#include <set>
#include <tuple>

#include "coordinator/group/consumer/assignor.h"

namespace tidemark::coordinator {

namespace {

/// Partitions of each topic that no member has yet.
class FreePartitions {
public:
    explicit FreePartitions(const std::map<Uuid, std::int32_t>& topics) {
        for (const auto& [topic, partitions] : topics) free_[topic].assign(static_cast<std::size_t>(partitions), true);
    }
    /// False when it does not exist or was taken.
    bool take(const Uuid& topic, std::int32_t partition) {
        const auto found = free_.find(topic);
        if (found == free_.end() || partition < 0 || static_cast<std::size_t>(partition) >= found->second.size()) return false;
        const bool was_free = found->second[static_cast<std::size_t>(partition)];
        found->second[static_cast<std::size_t>(partition)] = false;
        return was_free;
    }
    std::vector<std::int32_t> of(const Uuid& topic) const {
        std::vector<std::int32_t> result;
        const auto& free = free_.at(topic);
        for (std::size_t i = 0; i < free.size(); ++i) {
            if (free[i]) result.push_back(static_cast<std::int32_t>(i));
        }
        return result;
    }

private:
    std::map<Uuid, std::vector<bool>> free_;
};

Assignment assign_shares(const AssignmentInput& input) {
    Assignment result;
    if (input.members.empty()) return result;
    std::int64_t partitions = 0;
    for (const auto& [topic, count] : input.topics) partitions += count;
    const auto members = static_cast<std::int64_t>(input.members.size());
    const auto share = partitions / members;
    auto with_one_more = partitions % members;

    FreePartitions free(input.topics);
    struct Place {
        Partitions& assigned;
        std::int64_t wanted;   // partitions below the share
        bool has_extra;
    };
    std::vector<Place> places;
    places.reserve(input.members.size());
    for (const auto& [id, member] : input.members) {
        auto& place = places.emplace_back(Place{result[id], share, false});
        for (const auto& [topic, current] : member.current) {
            for (const auto partition : current) {
                const auto takes_extra = place.wanted == 0 && !place.has_extra && with_one_more > 0;
                if (place.wanted == 0 && !takes_extra) break;
                if (!free.take(topic, partition)) continue;
                place.assigned[topic].push_back(partition);
                if (takes_extra) {
                    place.has_extra = true;
                    --with_one_more;
                } else {
                    --place.wanted;
                }
            }
        }
    }
    auto place = places.begin();
    for (const auto& [topic, count] : input.topics) {
        for (const auto partition : free.of(topic)) {
            // The shares add up to all partitions, so there is always a member that lacks one.
            for (;; ++place) {
                if (place->wanted == 0 && !place->has_extra && with_one_more > 0) {
                    place->has_extra = true;
                    place->wanted = 1;
                    --with_one_more;
                }
                if (place->wanted > 0) break;
            }
            place->assigned[topic].push_back(partition);
            --place->wanted;
        }
    }
    for (auto& [id, assigned] : result) {
        for (auto& [topic, numbers] : assigned) std::ranges::sort(numbers);
    }
    return result;
}

class Balancer {
public:
    explicit Balancer(const AssignmentInput& input) : free_(input.topics) {
        for (const auto& [id, member] : input.members) {
            const auto index = members_.size();
            auto& kept = members_.emplace_back(Member{id, {}, 0});
            for (const auto& topic : member.topics) subscribers_[topic].push_back(index);
            for (const auto& [topic, current] : member.current) {
                if (!std::ranges::binary_search(member.topics, topic)) continue;
                for (const auto partition : current) {
                    if (free_.take(topic, partition)) give(kept, topic, partition);
                }
            }
        }
        for (const auto& [topic, subscribers] : subscribers_) topics_.push_back(topic);
        // Topics whose partitions are few per subscriber come last: they are what evens out the rest.
        std::ranges::sort(topics_, {}, [&](const Uuid& topic) {
            const auto subscribers = subscribers_.at(topic).size();
            return std::tuple(-static_cast<double>(input.topics.at(topic)) / static_cast<double>(subscribers), subscribers, topic);
        });
    }

    Assignment run() && {
        for (const auto& topic : topics_) hand_out(topic);
        for (int pass = 0; pass < passes_max; ++pass) {
            bool moved = false;
            for (const auto& topic : topics_) moved |= even_out(topic);
            if (!moved) break;
        }
        Assignment result;
        for (auto& member : members_) {
            auto& assigned = result[member.id];
            for (auto& [topic, partitions] : member.assigned) {
                if (!partitions.empty()) assigned[topic].assign(partitions.begin(), partitions.end());
            }
        }
        return result;
    }

private:
    static constexpr int passes_max = 16;

    struct Member {
        std::string id;
        std::map<Uuid, std::set<std::int32_t>> assigned;
        std::size_t load;
    };
    using ByLoad = std::set<std::pair<std::size_t, std::size_t>>;   // load, index of the member

    static void give(Member& member, const Uuid& topic, std::int32_t partition) {
        member.assigned[topic].insert(partition);
        ++member.load;
    }
    std::pair<std::size_t, std::size_t> place(std::size_t member) const { return {members_[member].load, member}; }

    void hand_out(const Uuid& topic) {
        const auto free = free_.of(topic);
        if (free.empty()) return;
        ByLoad by_load;
        for (const auto member : subscribers_.at(topic)) by_load.insert(place(member));
        for (const auto partition : free) {
            const auto member = by_load.begin()->second;
            by_load.erase(by_load.begin());
            give(members_[member], topic, partition);
            by_load.insert(place(member));
        }
    }

    bool even_out(const Uuid& topic) {
        const auto& subscribers = subscribers_.at(topic);
        if (subscribers.size() < 2) return false;
        ByLoad by_load, owners;
        for (const auto member : subscribers) {
            by_load.insert(place(member));
            if (const auto own = members_[member].assigned.find(topic); own != members_[member].assigned.end() && !own->second.empty()) owners.insert(place(member));
        }
        bool moved = false;
        while (!owners.empty()) {
            const auto most = *owners.rbegin();
            const auto fewest = *by_load.begin();
            if (most.first <= fewest.first + 1) break;
            owners.erase(most);
            owners.erase(fewest);
            by_load.erase(most);
            by_load.erase(fewest);
            auto& from = members_[most.second];
            auto& partitions = from.assigned[topic];
            const auto partition = *partitions.rbegin();
            partitions.erase(partition);
            --from.load;
            give(members_[fewest.second], topic, partition);
            by_load.insert(place(most.second));
            by_load.insert(place(fewest.second));
            if (!partitions.empty()) owners.insert(place(most.second));
            owners.insert(place(fewest.second));
            moved = true;
        }
        return moved;
    }

    FreePartitions free_;
    std::vector<Member> members_;
    std::map<Uuid, std::vector<std::size_t>> subscribers_;
    std::vector<Uuid> topics_;
};

}  // namespace

Assignment assign_uniform(const AssignmentInput& input) {
    return input.same_subscription ? assign_shares(input) : Balancer(input).run();
}

}  // namespace tidemark::coordinator
