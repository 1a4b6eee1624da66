/// `7d` and `1GiB`: times and sizes as people write them, in the units that Kafka's keys mean (D18).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidemark::config {

enum class Unit : std::uint8_t { none, milliseconds, bytes };

/// By the key's name: `….ms` is a time, `….bytes`, `….buffer.size` and `….bytes.per.second` are sizes.
Unit unit_of(std::string_view key);

/// `text` as a number of `unit`: "7d" → "604800000", "1.5GiB" → "1610612736". What has no unit letters comes back as it is,
/// for the key's own parser to judge. Errc::invalid_argument names the units that are known.
///
/// Times: ms, s, m, h, d, w. Sizes: B; KiB, MiB, GiB, TiB (powers of 1024); kB, MB, GB, TB (powers of 1000).
Result<std::string> in_unit(Unit unit, std::string_view text);

}  // namespace tidemark::config
