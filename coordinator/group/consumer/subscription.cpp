#include "coordinator/group/consumer/subscription.h"

#include <algorithm>

#include "coordinator/group/consumer/metadata_hash.h"
#include "metadata/image.h"

namespace tidemark::coordinator {

namespace {

std::vector<std::vector<std::string>> racks_of(const metadata::Topic& topic, const metadata::Image& image) {
    std::vector<std::vector<std::string>> result;
    for (const auto& [number, partition] : topic.partitions) {
        auto& racks = result.emplace_back();
        for (const auto replica : partition.replicas) {
            if (const auto broker = image.brokers.find(replica); broker != image.brokers.end() && broker->second.rack) racks.push_back(*broker->second.rack);
        }
        std::ranges::sort(racks);
    }
    return result;
}

std::vector<Uuid> ids_of(const std::vector<std::string>& names, const metadata::Image& image) {
    std::vector<Uuid> ids;
    for (const auto& name : names) {
        if (const auto* topic = image.find(name)) ids.push_back(topic->id);
    }
    std::ranges::sort(ids);
    return ids;
}

}  // namespace

std::int64_t metadata_hash(const ConsumerGroup& group, const metadata::Image& image) {
    std::vector<std::int64_t> hashes;
    for (const auto& name : group.subscribed_topics()) {
        if (const auto* topic = image.find(name)) hashes.push_back(topic_hash({.id = topic->id, .name = name, .racks = racks_of(*topic, image)}));
    }
    return group_hash(hashes);
}

std::set<Uuid> subscribed_topic_ids(const ConsumerGroup& group, const ConsumerMember& member, const metadata::Image& image) {
    const auto ids = ids_of(group.subscribed_topics(member), image);
    return {ids.begin(), ids.end()};
}

AssignmentInput assignment_input(const ConsumerGroup& group, const metadata::Image& image) {
    AssignmentInput input{.members = {}, .topics = {}, .same_subscription = group.same_subscription()};
    for (const auto& name : group.subscribed_topics()) {
        if (const auto* topic = image.find(name)) input.topics[topic->id] = static_cast<std::int32_t>(topic->partitions.size());
    }
    std::optional<std::vector<Uuid>> shared;
    for (const auto& [id, member] : group.members()) {
        if (!shared || !input.same_subscription) shared = ids_of(group.subscribed_topics(member), image);
        const auto* target = group.target(id);
        input.members[id] = {.instance_id = member.facts.instance_id, .topics = *shared, .current = target == nullptr ? Partitions{} : *target};
    }
    return input;
}

Refusable<RegexStep> regex_step(const ConsumerGroup& group, const RegexChange& change) {
    RegexStep step;
    const auto& [before, after, now, image, refresh_interval_ms] = change;
    bool is_new = false;
    step.changed = before != after;
    if (step.changed) {
        step.drop_before = !before.empty() && group.subscribers_by_regex(before) == 1;
        if (after.empty()) {
            step.known = true;
        } else if (group.subscribers_by_regex(after) > 0) {
            step.known = group.regexes().contains(after);
        } else {
            is_new = true;
            if (const auto problem = regex_problem(after)) {
                return Refusal{protocol::ErrorCode::invalid_regular_expression, "SubscribedTopicRegex `" + after + "` is not a valid regular expression: " + *problem + "."};
            }
        }
    }
    if ((!is_new && group.subscribed_regexes().empty()) || group.regex_resolution_wanted) return step;
    if (now.value <= group.last_resolution.at.value + regex_pause_ms) return step;

    std::set<std::string> patterns;
    for (const auto& [pattern, subscribers] : group.subscribed_regexes()) patterns.insert(pattern);
    if (step.drop_before) patterns.erase(before);
    if (!after.empty()) patterns.insert(after);
    const auto unresolved = is_new || patterns.size() != group.regexes().size();
    const auto topics_may_differ = group.last_resolution.image < image;
    const auto too_old = now.value > group.last_resolution.at.value + refresh_interval_ms;
    step.resolve = !patterns.empty() && (unresolved || topics_may_differ || too_old);
    return step;
}

}  // namespace tidemark::coordinator
