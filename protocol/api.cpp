#include "protocol/api.h"

#include <algorithm>

namespace tidemark::protocol {

std::span<const Api> apis() { return {api_table, api_table_size}; }

const Api* find_api(std::int16_t key) {
    const auto all = apis();
    const auto at = std::ranges::lower_bound(all, static_cast<ApiKey>(key), {}, &Api::key);
    return at != all.end() && at->key == static_cast<ApiKey>(key) ? &*at : nullptr;
}

}  // namespace tidemark::protocol
