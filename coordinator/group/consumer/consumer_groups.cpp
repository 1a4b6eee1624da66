#include "coordinator/group/consumer/consumer_groups.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/group/classic_groups.h"
#include "coordinator/group/consumer/group_draft.h"
#include "coordinator/group/consumer/group_records.h"
#include "coordinator/group/consumer/reconciliation.h"
#include "coordinator/group/consumer/steps.h"
#include "coordinator/group/consumer/subscription.h"
#include "metadata/config_schema.h"
#include "metadata/image.h"
#include "protocol/messages/consumer_group_describe_response.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"

namespace tidemark::coordinator {

using Request = protocol::ConsumerGroupHeartbeatRequest;
using Response = protocol::ConsumerGroupHeartbeatResponse;

namespace {

constexpr std::chrono::milliseconds write_retry{500};   // as Kafka's timers wait after a failed append

/// A group's own setting within the broker's bounds, or the broker's.
std::int32_t setting(const metadata::Image& image, const std::string& group, const char* key, const GroupSetting& broker) {
    const auto& overrides = image.overrides(metadata::ResourceType::group, group);
    const auto found = overrides.find(key);
    if (found == overrides.end()) return broker.value;
    const auto parsed = metadata::parse_config_value(*metadata::find_config_key(metadata::ConfigScope::group, key), found->second);
    return parsed ? std::clamp(static_cast<std::int32_t>(parsed->integer), broker.min, broker.max) : broker.value;
}

std::chrono::milliseconds session_timeout(const Context& context, const std::string& group, const ConsumerMember& member, const GroupOptions& options) {
    if (member.facts.classic) return std::chrono::milliseconds{member.facts.classic->session_timeout_ms};
    return std::chrono::milliseconds{setting(*context.image(), group, "consumer.session.timeout.ms", options.session_timeout)};
}

std::optional<Partitions> owned_partitions(const Request& request) {
    if (!request.topic_partitions) return std::nullopt;
    Partitions owned;
    for (const auto& topic : *request.topic_partitions) {
        if (!topic.partitions.empty()) owned[topic.topic_id] = topic.partitions;
    }
    return owned;
}

void merge(MemberFacts& facts, const Request& request, const Client& client) {
    if (request.instance_id) facts.instance_id = request.instance_id;
    if (request.rack_id) facts.rack_id = request.rack_id;
    if (request.rebalance_timeout_ms != -1) facts.rebalance_timeout_ms = request.rebalance_timeout_ms;
    if (request.server_assignor) facts.assignor = request.server_assignor;
    if (request.subscribed_topic_names) facts.topics = sorted_names(*request.subscribed_topic_names);
    if (request.subscribed_topic_regex) facts.regex = *request.subscribed_topic_regex;
    facts.client_id = client.id;
    facts.client_host = client.host;
    facts.classic.reset();
}

bool is_enabled(const metadata::Image& image, const GroupOptions& options) { return options.consumer_protocol && image.feature("group.version") >= 1; }

Response::Assignment to_response(const HeldPartitions& held) {
    Response::Assignment assignment;
    for (const auto& [topic, partitions] : without_epochs(held)) {
        auto& entry = assignment.topic_partitions.emplace_back();
        entry.topic_id = topic;
        entry.partitions = partitions;
    }
    return assignment;
}

}  // namespace

// --- a heartbeat -------------------------------------------------------------------------------------------------------

void ConsumerGroups::heartbeat(Context& context, const Client& client, const Request& request, std::int16_t version, Reply<Response> reply) {
    auto response = start(context, client, request, version);
    if (response) return context.answer(std::move(reply), *std::move(response));
    Response refused;
    refused.error_code = response.error().code;
    refused.error_message = response.error().message;
    context.answer(std::move(reply), std::move(refused));
}

Refusable<Response> ConsumerGroups::start(Context& context, const Client& client, const Request& request, std::int16_t version) {
    if (!is_enabled(*context.image(), *options_)) return Refusal{ErrorCode::unsupported_version, "The consumer group protocol is not enabled."};
    TM_TRYV(check_heartbeat(request, version, *options_));
    auto* const found = groups_.find(request.group_id);
    if (auto* group = dynamic_cast<ConsumerGroup*>(found)) return stay(context, *group, {}, client, request);
    if (request.member_epoch != 0) return Refusal{ErrorCode::group_id_not_found, found == nullptr ? "Consumer group " + request.group_id + " not found." : "Group " + request.group_id + " is not a consumer group."};

    auto made = std::make_unique<ConsumerGroup>(request.group_id);
    std::vector<Record> first;
    auto* const classic = dynamic_cast<ClassicGroup*>(found);
    if (classic != nullptr) {
        classic->add_tombstones(first);
        if (!classic->is_empty()) {
            TM_TRY(made, upgraded(*classic, *context.image(), *options_));
            std::ranges::move(records_of(*made), std::back_inserter(first));
        }
    }
    TM_TRY(auto response, stay(context, *made, std::move(first), client, request));
    if (classic != nullptr) {
        log_info("[{}] becomes a consumer group", request.group_id);
        classic_.let_go(context, *classic, ErrorCode::rebalance_in_progress);
    }
    start_timers(context, groups_.put(std::move(made)));
    return response;
}

Refusable<Response> ConsumerGroups::stay(Context& context, ConsumerGroup& group, std::vector<Record> first, const Client& client, const Request& request) {
    if (request.member_epoch < 0) return leave(context, group, request);
    TM_TRYV(check_size(group, request.member_id, request.instance_id, options_->consumer_size_max));
    const auto owned = owned_partitions(request);
    TM_TRY(const auto sender, find_sender(group, {.member_id = request.member_id.empty() ? new_member_id() : request.member_id,
                                                  .instance_id = request.instance_id,
                                                  .epoch = request.member_epoch,
                                                  .joins = request.member_epoch == 0,
                                                  .classic = false,
                                                  .owned = owned}));
    GroupDraft draft(group, std::move(first));
    if (sender.replaces) draft.replace_member(*sender.replaces, sender.id);
    const auto* known = group.find(sender.id);
    auto facts = known == nullptr ? MemberFacts{} : known->facts;
    merge(facts, request, client);

    TM_TRY(const auto update, update_member(context, draft, sender.id, std::move(facts), true));
    assign_if_due(context, draft);
    TM_TRY(const auto change, reconcile_member(context, draft, sender.id, update.subscription_changed, owned));
    TM_TRYV(write(context, draft));
    after_update(context, group, update);
    if (sender.replaces && *sender.replaces != sender.id) cancel_timers(group.id(), *sender.replaces);
    const auto& member = *group.find(sender.id);
    set_member_timers(context, group, member, change);

    const bool whole = request.rebalance_timeout_ms != -1 && (request.subscribed_topic_names || request.subscribed_topic_regex) && request.topic_partitions;
    Response response;
    response.member_id = member.id;
    response.member_epoch = member.current.epoch;
    response.heartbeat_interval_ms = setting(*context.image(), group.id(), "consumer.heartbeat.interval.ms", options_->heartbeat_interval);
    if (request.member_epoch == 0 || whole || change.assigned) response.assignment = to_response(member.current.assigned);
    return response;
}

Refusable<ConsumerGroups::Update> ConsumerGroups::update_member(Context& context, GroupDraft& draft, const std::string& id, MemberFacts facts, bool assignor_counts) {
    const auto& group = draft.group();
    const auto* known = group.find(id);
    const auto before = known == nullptr ? MemberFacts{} : known->facts;
    TM_TRY(const auto regex, regex_step(group, {.before = before.regex,
                                                .after = facts.regex,
                                                .now = context.now(),
                                                .image = context.image()->offset,
                                                .refresh_interval_ms = options_->regex_refresh_interval_ms}));
    const auto topics_changed = before.topics != facts.topics;
    const auto assignor_before = assignor_counts ? assignor_of(group, *options_) : std::string{};
    if (known == nullptr || before != facts) draft.put_member(id, std::move(facts));
    if (regex.drop_before) draft.erase_regex(before.regex);

    const auto bump = topics_changed || (regex.changed && regex.known) || (assignor_counts && assignor_of(group, *options_) != assignor_before);
    if (bump || group.hash_checked_at != context.image()->offset) {
        const auto hash = metadata_hash(group, *context.image());
        if (bump || hash != group.metadata_hash()) draft.put_epoch(group.epoch() + 1, hash);
    }
    return Update{.subscription_changed = topics_changed || regex.changed, .resolve_regexes = regex.resolve};
}

void ConsumerGroups::after_update(Context& context, ConsumerGroup& group, const Update& update) {
    group.hash_checked_at = context.image()->offset;
    if (!update.resolve_regexes) return;
    group.regex_resolution_wanted = true;
    deadlines_.set(key(group, "", Timer::regex), context.moment());
}

void ConsumerGroups::assign_if_due(Context& context, GroupDraft& draft) const {
    const auto& group = draft.group();
    if (group.epoch() <= group.assignment_epoch()) return;
    const auto interval = setting(*context.image(), group.id(), "consumer.assignment.interval.ms", options_->assignment_interval);
    if (group.assigned_at().value != 0 && interval != 0 && context.now() < group.assigned_at() + interval) return;
    const auto* assignor = find_assignor(assignor_of(group, *options_));
    auto assignment = (assignor == nullptr ? assignors.front() : *assignor).assign(assignment_input(group, *context.image()));
    for (auto& [id, partitions] : assignment) {
        const auto* target = group.target(id);
        if (target == nullptr || *target != partitions) draft.put_target(id, std::move(partitions));
    }
    draft.put_assignment_epoch(group.epoch(), context.now());
}

Refusable<ConsumerGroups::Change> ConsumerGroups::reconcile_member(Context& context, GroupDraft& draft, const std::string& id, bool subscription_changed, const std::optional<Partitions>& owned) const {
    const auto& group = draft.group();
    const auto& member = *group.find(id);
    if (!subscription_changed && member.is_at(group.assignment_epoch())) return Change{};
    const auto* target = group.target(id);
    const auto subscribed = subscribed_topic_ids(group, member, *context.image());
    auto next = reconcile({.current = member.current,
                           .target = target == nullptr ? Partitions{} : *target,
                           .target_epoch = group.assignment_epoch(),
                           .subscribed = subscribed,
                           .subscription_changed = subscription_changed,
                           .is_held = [&](const Uuid& topic, std::int32_t partition) { return group.is_held(topic, partition); },
                           .owned = owned});
    if (!next) return Refusal{ErrorCode::fenced_member_epoch, "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."};
    const Change change{.any = *next != member.current, .assigned = next->assigned != member.current.assigned};
    if (change.any) draft.put_assignment(id, *std::move(next));
    return change;
}

Refusable<> ConsumerGroups::write(Context& context, GroupDraft& draft) {
    if (const auto written = context.write(draft.records(), {.replay = false}); !written) return append_refusal(written.error());
    draft.keep();
    return {};
}

// --- leaving -----------------------------------------------------------------------------------------------------------

Refusable<Response> ConsumerGroups::leave(Context& context, ConsumerGroup& group, const Request& request) {
    TM_TRY(const auto sender, find_sender(group, {.member_id = request.member_id, .instance_id = request.instance_id, .epoch = 0, .joins = false, .classic = true, .owned = {}}));
    Response response;
    response.member_id = request.member_id;
    response.member_epoch = request.member_epoch;
    if (request.member_epoch == leaving_epoch) {
        log_info("[{}] member {} left", group.id(), sender.id);
        TM_TRYV(remove(context, group, {sender.id}));
        return response;
    }
    auto away = group.find(sender.id)->current;
    away.epoch = leaving_static_epoch;
    away.pending_revocation.clear();
    for (auto& [topic, partitions] : away.assigned) {
        for (auto& [partition, epoch] : partitions) epoch = 0;
    }
    GroupDraft draft(group);
    draft.put_assignment(sender.id, std::move(away));
    TM_TRYV(write(context, draft));
    return response;
}

Refusable<> ConsumerGroups::remove(Context& context, ConsumerGroup& group, const std::vector<std::string>& member_ids) {
    if (member_ids.empty()) return {};
    GroupDraft draft(group);
    if (can_downgrade_without(group, member_ids, *options_)) return downgrade(context, group, draft, member_ids, true);
    std::set<std::string> patterns;
    for (const auto& id : member_ids) {
        patterns.insert(group.find(id)->facts.regex);
        draft.erase_member(id);
    }
    for (const auto& pattern : patterns) {
        if (!pattern.empty() && group.subscribers_by_regex(pattern) == 0) draft.erase_regex(pattern);
    }
    draft.put_epoch(group.epoch() + 1, metadata_hash(group, *context.image()));
    if (group.is_empty()) draft.put_assignment_epoch(group.epoch(), Timestamp{0});
    TM_TRYV(write(context, draft));
    for (const auto& id : member_ids) cancel_timers(group.id(), id);
    return {};
}

Refusable<> ConsumerGroups::downgrade(Context& context, ConsumerGroup& group, GroupDraft& draft, const std::vector<std::string>& leaving, bool rebalance) {
    auto classic = downgraded(group, leaving, *context.image(), context.now());
    group.add_tombstones(draft.records());
    draft.records().push_back(classic->metadata_record());
    TM_TRYV(write(context, draft));
    log_info("[{}] becomes a classic group again: no member of the consumer protocol is left", group.id());
    let_go(group);
    auto& put = groups_.put(std::move(classic));   // from here on there is no consumer group
    classic_.adopt(context, put);
    if (rebalance) classic_.rebalance(context, put);
    return {};
}

protocol::consumer_group_describe_response::DescribedGroup ConsumerGroups::describe(const Context& context, const std::string& group_id) const {
    const auto refused = [&](ErrorCode code, const std::string& why) {
        protocol::consumer_group_describe_response::DescribedGroup answer;
        answer.group_id = group_id;
        answer.error_code = code;
        answer.error_message = why;
        return answer;
    };
    if (!is_enabled(*context.image(), *options_)) return refused(ErrorCode::unsupported_version, "The consumer group protocol is not enabled.");
    if (group_id.empty()) return refused(ErrorCode::invalid_group_id, "The configured groupId is invalid.");
    const auto* found = groups_.find(group_id);
    if (found == nullptr) return refused(ErrorCode::group_id_not_found, "Group " + group_id + " not found.");
    const auto* group = dynamic_cast<const ConsumerGroup*>(found);
    if (group == nullptr) return refused(ErrorCode::group_id_not_found, "Group " + group_id + " is not a consumer group.");
    return described(*group, *context.image(), *options_);
}

// --- time --------------------------------------------------------------------------------------------------------------

void ConsumerGroups::restart_session(Context& context, const ConsumerGroup& group, const ConsumerMember& member) {
    deadlines_.set(key(group, member.id, Timer::session), context.moment() + session_timeout(context, group.id(), member, *options_));
}

void ConsumerGroups::set_member_timers(Context& context, const ConsumerGroup& group, const ConsumerMember& member, const Change& change) {
    restart_session(context, group, member);
    if (!change.any || member.is_classic()) return;
    const auto rebalance = key(group, member.id, Timer::rebalance);
    if (member.current.state == MemberState::unrevoked_partitions) {
        deadlines_.set(rebalance, context.moment() + std::chrono::milliseconds{member.facts.rebalance_timeout_ms});
    } else {
        deadlines_.cancel(rebalance);
    }
}

void ConsumerGroups::start_timers(Context& context, ConsumerGroup& group) {
    for (const auto& [pattern, resolved] : group.regexes()) {
        if (resolved.at > group.last_resolution.at) group.last_resolution = {.topics = {}, .image = resolved.image, .at = resolved.at};
    }
    for (const auto& [id, member] : group.members()) {
        restart_session(context, group, member);
        if (member.current.state == MemberState::unrevoked_partitions) {
            deadlines_.set(key(group, id, Timer::rebalance), context.moment() + std::chrono::milliseconds{member.facts.rebalance_timeout_ms});
        }
    }
}

Result<> ConsumerGroups::replay(std::int16_t type, const ReplayedRecord& record) {
    const auto find = [&](const std::string& id, bool create) -> Result<ConsumerGroup*> {
        auto* found = groups_.find(id);
        if (auto* group = dynamic_cast<ConsumerGroup*>(found)) return group;
        const auto* classic = dynamic_cast<const ClassicGroup*>(found);
        if (!create) return nullptr;
        if (found != nullptr && (classic == nullptr || !classic->is_simple())) return Error{Errc::corrupt, id + " is another kind of group"};
        return &groups_.put(std::make_unique<ConsumerGroup>(id));
    };
    return replay_consumer_group(type, record.key, record.value, {.find = find, .erase = [&](const std::string& id) { groups_.erase(id); }});
}

void ConsumerGroups::loaded(Context& context) {
    for (const auto& [id, group] : groups_) {
        if (auto* consumer = dynamic_cast<ConsumerGroup*>(group.get())) start_timers(context, *consumer);
    }
}

void ConsumerGroups::let_go(const ConsumerGroup& group) {
    for (const auto& [id, member] : group.members()) cancel_timers(group.id(), id);
    deadlines_.cancel(key(group, "", Timer::regex));
}

void ConsumerGroups::cancel_timers(const std::string& group, const std::string& member) {
    for (const auto timer : {Timer::session, Timer::rebalance, Timer::join, Timer::sync}) deadlines_.cancel({group, member, timer});
}

void ConsumerGroups::tick(Context& context) {
    while (const auto due = deadlines_.pop_due(context.moment())) {
        auto* group = groups_.find_as<ConsumerGroup>(due->group);
        if (group == nullptr) continue;
        Refusable<> done = boost::system::in_place_value;
        if (due->timer == Timer::regex) {
            done = resolve_regexes(context, *group);
        } else if (const auto* member = group->find(due->member); member != nullptr) {
            if (due->timer == Timer::rebalance && (member->current.state != MemberState::unrevoked_partitions || member->current.epoch < 0)) continue;
            log_info("[{}] member {} is removed: {}", group->id(), member->id, reason(due->timer));
            done = remove(context, *group, {due->member});
        }
        if (!done) {
            log_warning("[{}] {}; tried again soon", due->group, done.error().message);
            deadlines_.set(*due, context.moment() + write_retry);
        }
    }
}

const char* ConsumerGroups::reason(Timer timer) {
    switch (timer) {
        case Timer::session: return "its session timed out";
        case Timer::rebalance: return "it did not give up its partitions in time";
        case Timer::join: return "it did not rejoin in time";
        case Timer::sync: return "it did not sync in time";
        case Timer::regex: break;
    }
    return "";
}

Refusable<> ConsumerGroups::resolve_regexes(Context& context, ConsumerGroup& group) {
    const auto& image = *context.image();
    GroupDraft draft(group);
    bool differ = false;
    for (const auto& [pattern, subscribers] : group.subscribed_regexes()) {
        const auto known = group.regexes().find(pattern);
        auto topics = matching_topics(pattern, image);
        if (known != group.regexes().end() && known->second.topics == topics) continue;
        differ |= known != group.regexes().end() || !topics.empty();
        draft.put_regex(pattern, {.topics = std::move(topics), .image = image.offset, .at = context.now()});
    }
    const auto hash = metadata_hash(group, image);
    if (!group.is_empty() && (differ || hash != group.metadata_hash())) draft.put_epoch(group.epoch() + 1, hash);
    TM_TRYV(write(context, draft));
    group.regex_resolution_wanted = false;
    group.last_resolution = {.topics = {}, .image = image.offset, .at = context.now()};
    group.hash_checked_at = image.offset;
    return {};
}

}  // namespace tidemark::coordinator
