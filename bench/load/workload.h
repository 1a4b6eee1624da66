/// Requests that are built once and sent many times.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "record/builder.h"

namespace tidemark::bench {

struct BatchShape {
    std::int32_t record_bytes = 1024;   ///< of each value; keys are null
    std::int32_t batch_bytes = 65536;   ///< as many records as fit, at least one
    std::int32_t records = 0;           ///< per batch; above zero it counts instead of batch_bytes
    record::Codec codec = record::Codec::none;
};

/// A Produce request with one batch for one partition. Only its correlation id changes between sendings.
class ProduceFrame {
public:
    static Result<ProduceFrame> make(const std::string& topic, std::int32_t partition, std::int16_t acks, const BatchShape&);

    Bytes with_correlation_id(std::int32_t);
    std::size_t batch_bytes() const { return batch_bytes_; }
    std::int32_t records() const { return records_; }

private:
    ProduceFrame() = default;
    std::vector<std::byte> bytes_;
    std::size_t batch_bytes_ = 0;
    std::int32_t records_ = 0;
};

/// A Produce request around batches that are there already.
Result<std::vector<std::byte>> produce_frame(const std::string& topic, std::int32_t partition, std::int16_t acks, MutableBytes batch, std::int32_t correlation_id);

}  // namespace tidemark::bench
