/// What goes back for one request.
#pragma once

#include <vector>

#include "protocol/writer.h"
#include "storage/log.h"

namespace tidemark::daemon {

struct Answer {
    protocol::Encoded frame = {};                  ///< empty: nothing is sent (acks=0)
    std::vector<storage::LogSlice> slices = {};     ///< what fills the frame's gaps, by the gaps' slice numbers
    bool close = false;                         ///< the connection ends here: nothing is sent, nor what came later
};

}  // namespace tidemark::daemon
