// DeleteTopics (20), versions 1 to 6: wire-behaviour 10. From version 6 on topics are named by name or by id.
#include "protocol/messages/delete_topics_request.h"
#include "protocol/messages/delete_topics_response.h"

#include <map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::DeleteTopicsResponse delete_topics(Broker& broker, Call& call, protocol::DeleteTopicsRequest& request) {
    protocol::DeleteTopicsResponse response;
    auto asked = std::move(request.topics);
    for (auto& name : request.topic_names) asked.push_back({.name = std::move(name)});
    const auto answer = [&](std::optional<std::string> name, const Uuid& id, const Outcome& outcome) {
        // Versions below 6 cannot write a null name.
        if (!name && call.version() < 6) name = "";
        response.responses.push_back({.name = std::move(name), .topic_id = id, .error_code = outcome.code, .error_message = outcome.message});
        call.count(outcome.code);
    };
    if (!broker.options()->delete_topics) {
        const Outcome disabled{call.version() >= 3 ? ErrorCode::topic_deletion_disabled : ErrorCode::invalid_request, "Topic deletion is disabled."};
        for (const auto& topic : asked) answer(topic.name, topic.topic_id, disabled);
        return response;
    }

    // The same topic twice, also once by name and once by its id, is deleted by nobody.
    const auto image = broker.image();
    std::map<std::string, int> names;
    std::map<Uuid, int> ids;
    for (const auto& topic : asked) {
        if (topic.name) ++names[*topic.name];
        else if (!topic.topic_id.is_zero()) ++ids[topic.topic_id];
    }
    for (auto& [id, times] : ids) {
        const auto* topic = image->find(id);
        if (topic == nullptr || !names.contains(topic->name)) continue;
        answer(topic->name, id, {ErrorCode::invalid_request, "The provided topic name maps to an ID that was already supplied."});
        times = names[topic->name] = 0;
    }
    std::vector<metadata::TopicToDelete> wanted;
    for (const auto& topic : asked) {
        if (topic.name && !topic.topic_id.is_zero()) {
            answer(topic.name, topic.topic_id, {ErrorCode::invalid_request, "You may not specify both topic name and topic id."});
        } else if (topic.name) {
            auto& times = names[*topic.name];
            if (times > 1) answer(topic.name, {}, {ErrorCode::invalid_request, "Duplicate topic name."});
            else if (times == 1) wanted.push_back({.name = topic.name});
            times = 0;
        } else if (topic.topic_id.is_zero()) {
            answer(std::nullopt, {}, {ErrorCode::invalid_request, "Neither topic name nor id were specified."});
        } else {
            auto& times = ids[topic.topic_id];
            if (times > 1) answer(std::nullopt, topic.topic_id, {ErrorCode::invalid_request, "Duplicate topic id."});
            else if (times == 1) wanted.push_back({.name = std::nullopt, .id = topic.topic_id});
            times = 0;
        }
    }
    if (wanted.empty()) return response;
    for (auto& deleted : broker.controller().delete_topics(wanted)) answer(std::move(deleted.name), deleted.id, deleted.outcome);
    return response;
}

}  // namespace tidemark::daemon::handlers
