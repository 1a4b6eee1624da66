#include "metadata/quorum_state.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/uuid.h"

namespace tidemark::metadata {
namespace {

Error no_quorum_state(std::string_view why) { return {Errc::corrupt, fmt::format("quorum-state: {}", why)}; }

Result<std::int32_t> integer_member(const boost::json::object& object, std::string_view name) {
    const auto* value = object.if_contains(name);
    if (value == nullptr || !value->is_int64() || value->as_int64() < -1 || value->as_int64() > 0x7fffffff) return no_quorum_state(fmt::format("{} is missing or no number", name));
    return static_cast<std::int32_t>(value->as_int64());
}

}  // namespace

Result<QuorumState> parse_quorum_state(std::string_view text) {
    boost::system::error_code error;
    const auto document = boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
    if (error || !document.is_object()) return no_quorum_state("it is no JSON object");
    const auto& object = document.as_object();
    QuorumState state;
    TM_TRY(state.data_version, integer_member(object, "data_version"));
    if (state.data_version != 0 && state.data_version != 1) return no_quorum_state(fmt::format("data_version {} is unknown", state.data_version));
    TM_TRY(state.leader_id, integer_member(object, "leaderId"));
    TM_TRY(state.leader_epoch, integer_member(object, "leaderEpoch"));
    TM_TRY(state.voted_id, integer_member(object, "votedId"));
    return state;
}

std::string quorum_state_text(const QuorumState& state) {
    if (state.data_version == 1) {
        return fmt::format(R"({{"leaderId":{},"leaderEpoch":{},"votedId":{},"votedDirectoryId":"{}","data_version":1}})", state.leader_id, state.leader_epoch, state.voted_id, Uuid{}.text());
    }
    return fmt::format(R"({{"clusterId":"","leaderId":{},"leaderEpoch":{},"votedId":{},"appliedOffset":0,"currentVoters":[{{"voterId":{}}}],"data_version":0}})",
                       state.leader_id, state.leader_epoch, state.voted_id, state.leader_id);
}

}  // namespace tidemark::metadata
