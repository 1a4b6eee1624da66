/// What the tests of this folder write.
#pragma once

#include <optional>
#include <string_view>

#include "record/builder.h"
#include "storage/log.h"

namespace tidemark::test {

/// One record, on the disk when this returns.
inline Result<> append_durably(storage::Log& log, Timestamp at, std::optional<std::string_view> key, std::string_view value, record::BatchOptions options = {}) {
    record::BatchBuilder builder;
    builder.start(options);
    builder.append(Offset{0}, at, key ? std::optional{as_bytes(*key)} : std::nullopt, as_bytes(value));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    TM_TRYV(log.append(bytes, {}));
    Result<> durable;
    log.when_durable(log.log_end_offset(), [&](Result<> done) { durable = std::move(done); });
    return durable;
}

}  // namespace tidemark::test
