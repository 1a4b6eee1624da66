#include "coordinator/group/group_coordinator.h"

#include <map>

#include "coordinator/errors.h"
#include "coordinator/gather.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"

namespace tidemark::coordinator {

namespace {

/// std::function wants what it holds to be copyable, and requests are better not copied.
template <class T>
std::shared_ptr<T> shared(T value) {
    return std::make_shared<T>(std::move(value));
}

/// What may change while the broker runs.
bool differs(const GroupOptions& a, const GroupOptions& b) { return a.assignment_interval != b.assignment_interval; }

}  // namespace

GroupCoordinator::GroupCoordinator(RuntimeOptions options, RuntimeParts parts, GroupOptions group_options)
    : runtime_(std::move(options), std::move(parts), [this](std::int32_t) { return std::make_unique<GroupMachine>(options_.get()); }),
      options_(std::make_shared<const GroupOptions>(std::move(group_options))) {}

void GroupCoordinator::image_changed(const metadata::ImagePtr& after, const GroupOptions& options) {
    if (differs(*options_.get(), options)) {
        const auto changed = std::make_shared<const GroupOptions>(options);
        options_.put(changed);
        for (const auto partition : runtime_.partitions()) {
            runtime_.submit(partition, [changed](GroupMachine& machine, Context&) { machine.set_options(changed); }, [](ErrorCode) {});
        }
    }
    runtime_.image_changed(after);
}

void GroupCoordinator::join(Client client, protocol::JoinGroupRequest request, std::int16_t version, Reply<protocol::JoinGroupResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::JoinGroupResponse>(id, std::move(reply), [client = std::move(client), request = shared(std::move(request)), version](GroupMachine& machine, Context& context, auto answer) {
        machine.join(context, client, *request, version, std::move(answer));
    });
}

void GroupCoordinator::sync(protocol::SyncGroupRequest request, std::int16_t version, Reply<protocol::SyncGroupResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::SyncGroupResponse>(id, std::move(reply), [request = shared(std::move(request)), version](GroupMachine& machine, Context& context, auto answer) {
        machine.sync(context, *request, version, std::move(answer));
    });
}

void GroupCoordinator::heartbeat(protocol::HeartbeatRequest request, Reply<protocol::HeartbeatResponse> reply) {
    const auto id = request.group_id;
    // While its group is loading a member is told that all is well.
    auto calm = [reply = std::move(reply)](Coded<protocol::HeartbeatResponse> answered) {
        if (!answered && answered.error().code == ErrorCode::coordinator_load_in_progress) return reply(protocol::HeartbeatResponse{});
        reply(std::move(answered));
    };
    runtime_.request<protocol::HeartbeatResponse>(id, std::move(calm), [request = std::move(request)](GroupMachine& machine, Context& context, auto answer) {
        machine.heartbeat(context, request, std::move(answer));
    });
}

void GroupCoordinator::leave(protocol::LeaveGroupRequest request, Reply<protocol::LeaveGroupResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::LeaveGroupResponse>(id, std::move(reply), [request = std::move(request)](GroupMachine& machine, Context& context, auto answer) {
        machine.leave(context, request, std::move(answer));
    });
}

void GroupCoordinator::heartbeat(Client client, protocol::ConsumerGroupHeartbeatRequest request, std::int16_t version, Reply<protocol::ConsumerGroupHeartbeatResponse> reply) {
    using Response = protocol::ConsumerGroupHeartbeatResponse;
    const auto id = request.group_id;
    runtime_.request<Response>(id, std::move(reply), [client = std::move(client), request = shared(std::move(request)), version](GroupMachine& machine, Context& context, auto answer) {
        machine.heartbeat(context, client, *request, version, std::move(answer));
    });
}

void GroupCoordinator::commit(protocol::OffsetCommitRequest request, std::int16_t version, Reply<protocol::OffsetCommitResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::OffsetCommitResponse>(id, std::move(reply), [request = shared(std::move(request)), version](GroupMachine& machine, Context& context, auto answer) {
        machine.offsets().commit(context, *request, version, std::move(answer));
    });
}

void GroupCoordinator::commit(protocol::TxnOffsetCommitRequest request, std::int16_t version, std::optional<storage::VerificationId> verification, Reply<protocol::TxnOffsetCommitResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::TxnOffsetCommitResponse>(id, std::move(reply), [request = shared(std::move(request)), version, verification](GroupMachine& machine, Context& context, auto answer) {
        machine.offsets().commit(context, *request, version, verification, std::move(answer));
    });
}

void GroupCoordinator::fetch(std::vector<protocol::OffsetFetchRequest::OffsetFetchRequestGroup> requests, std::int16_t version, bool require_stable,
                             Reply<std::vector<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>> reply) {
    using Answer = protocol::OffsetFetchResponse::OffsetFetchResponseGroup;
    auto all = Gather<std::vector<Answer>>::make(std::vector<Answer>(requests.size()), [reply = std::move(reply)](std::vector<Answer> whole) { reply(std::move(whole)); });
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto id = requests[i].group_id;
        const auto fill = [all, i, id, require_stable](Coded<Answer> answered) {
            if (answered) {
                all->whole[i] = *std::move(answered);
                return;
            }
            auto code = coordinator_error(answered.error().code);
            if (require_stable && code == ErrorCode::coordinator_not_available) code = ErrorCode::not_coordinator;
            all->whole[i] = {.group_id = id, .error_code = code};
        };
        runtime_.request<Answer>(id, fill, [request = std::move(requests[i]), version, require_stable](GroupMachine& machine, Context& context, auto answer) {
            machine.offsets().fetch(context, request, version, require_stable, std::move(answer));
        });
    }
}

void GroupCoordinator::delete_offsets(protocol::OffsetDeleteRequest request, Reply<protocol::OffsetDeleteResponse> reply) {
    const auto id = request.group_id;
    runtime_.request<protocol::OffsetDeleteResponse>(id, std::move(reply), [request = std::move(request)](GroupMachine& machine, Context& context, auto answer) {
        machine.offsets().remove(context, request, std::move(answer));
    });
}

void GroupCoordinator::list(protocol::ListGroupsRequest request, Reply<protocol::ListGroupsResponse> reply) {
    using Part = Coded<std::vector<protocol::ListGroupsResponse::ListedGroup>>;
    const auto partitions = runtime_.partitions();
    auto all = Gather<std::vector<Part>>::make(std::vector<Part>(partitions.size()), [reply = std::move(reply)](std::vector<Part> parts) {
        protocol::ListGroupsResponse response;
        for (auto& part : parts) {
            if (part) {
                for (auto& group : *part) response.groups.push_back(std::move(group));
            } else if (part.error().code != ErrorCode::not_coordinator) {
                return reply(part.error());
            }
        }
        reply(std::move(response));
    });
    const auto filter = shared(std::move(request));
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        const auto fill = [all, i](Part part) { all->whole[i] = std::move(part); };
        runtime_.submit(partitions[i], [filter, fill](GroupMachine& machine, Context& context) { machine.list(context, *filter, fill); }, [fill](ErrorCode why) { fill(Failure{why}); });
    }
}

namespace {

/// Asks each group's machine; a group whose coordinator could not answer carries its error.
template <class Answer, class Ask>
void describe_each(Runtime<GroupMachine>& runtime, const std::vector<std::string>& group_ids, Reply<std::vector<Answer>> reply, Ask ask) {
    auto all = Gather<std::vector<Answer>>::make(std::vector<Answer>(group_ids.size()), [reply = std::move(reply)](std::vector<Answer> whole) { reply(std::move(whole)); });
    for (std::size_t i = 0; i < group_ids.size(); ++i) {
        const auto fill = [all, i, id = group_ids[i]](Coded<Answer> answered) {
            auto& place = all->whole[i];
            if (answered) {
                place = *std::move(answered);
            } else {
                place.error_code = coordinator_error(answered.error().code);
                place.group_id = id;
            }
        };
        if (group_ids[i].empty()) {
            fill(Failure{ErrorCode::invalid_group_id});
            continue;
        }
        runtime.request<Answer>(group_ids[i], fill, [ask, id = group_ids[i]](GroupMachine& machine, Context& context, auto answer) { ask(machine, context, id, std::move(answer)); });
    }
}

}  // namespace

void GroupCoordinator::describe_consumer_groups(std::vector<std::string> group_ids, Reply<std::vector<protocol::ConsumerGroupDescribeResponse::DescribedGroup>> reply) {
    describe_each(runtime_, group_ids, std::move(reply), [](GroupMachine& machine, Context& context, const std::string& id, auto answer) { machine.describe_consumer_group(context, id, std::move(answer)); });
}

void GroupCoordinator::describe(std::vector<std::string> group_ids, std::int16_t version, Reply<std::vector<protocol::DescribeGroupsResponse::DescribedGroup>> reply) {
    describe_each(runtime_, group_ids, std::move(reply), [version](GroupMachine& machine, Context& context, const std::string& id, auto answer) { machine.describe(context, id, version, std::move(answer)); });
}

void GroupCoordinator::delete_groups(std::vector<std::string> group_ids, Reply<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>> reply) {
    using Results = std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>;
    auto all = Gather<Results>::make(Results(group_ids.size()), [reply = std::move(reply)](Results whole) { reply(std::move(whole)); });
    // Each partition's groups go together.
    std::map<std::int32_t, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < group_ids.size(); ++i) {
        all->whole[i].group_id = group_ids[i];
        const auto partition = runtime_.partition_of(group_ids[i]);
        if (group_ids[i].empty()) all->whole[i].error_code = ErrorCode::invalid_group_id;
        else if (!partition) all->whole[i].error_code = ErrorCode::not_coordinator;
        else places[*partition].push_back(i);
    }
    for (const auto& [partition, indexes] : places) {
        std::vector<std::string> ids;
        for (const auto i : indexes) ids.push_back(group_ids[i]);
        const auto fill = [all, indexes = indexes](Coded<Results> results) {
            for (std::size_t i = 0; i < indexes.size(); ++i) {
                if (results) all->whole[indexes[i]] = std::move((*results)[i]);
                else all->whole[indexes[i]].error_code = coordinator_error(results.error().code);
            }
        };
        runtime_.submit(partition, [ids, fill](GroupMachine& machine, Context& context) { machine.remove(context, ids, fill); }, [fill](ErrorCode why) { fill(Failure{why}); });
    }
}

void GroupCoordinator::write_marker(std::int32_t partition, Marker marker, Reply<MarkerWritten> reply) {
    runtime_.submit(
        partition,
        [marker, reply](GroupMachine&, Context& context) {
            const auto written = context.write(marker);
            context.answer(reply, MarkerWritten{written ? ErrorCode::none : coordinator_error(written.error().code)});
        },
        [reply](ErrorCode why) { reply(Failure{why}); });
}

void GroupCoordinator::stats(Reply<std::vector<GroupStats>> reply) {
    using Part = std::vector<GroupStats>;
    const auto partitions = runtime_.partitions();
    auto all = Gather<std::vector<Part>>::make(std::vector<Part>(partitions.size()), [reply = std::move(reply)](std::vector<Part> parts) {
        Part whole;
        for (auto& part : parts) whole.insert(whole.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
        reply(std::move(whole));
    });
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        runtime_.submit(partitions[i], [all, i](GroupMachine& machine, Context&) { all->whole[i] = machine.stats(); }, [](ErrorCode) {});
    }
}

}  // namespace tidemark::coordinator
