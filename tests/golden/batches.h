/// Record batches from their description in a script (BATCH of the oracle's README).
#pragma once

#include <boost/json.hpp>

#include <string_view>
#include <vector>

#include "record/batch.h"

namespace tidemark::golden {

record::Codec codec_of(std::string_view name);

/// What a BATCH leaves to whoever plays it.
struct BatchPlace {
    Timestamp now{};
    Offset base{0};
    LeaderEpoch leader_epoch = no_leader_epoch;
};
/// A batch or, of magic 0 and 1 without a codec, a run of messages. Throws std::exception on what it does not know.
std::vector<std::byte> build_batch(const boost::json::object& batch, const BatchPlace&);
/// A transaction marker.
std::vector<std::byte> build_marker(const boost::json::object& marker, const BatchPlace&);
/// Makes messages of magic 1 what a leader of a LogAppendTime topic stores.
void set_append_time(MutableBytes messages, Timestamp);

}  // namespace tidemark::golden
