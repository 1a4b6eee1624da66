#include "tests/support/protocol/all_messages.h"

#include <algorithm>

#include "tests/support/protocol/all_messages_impl.h"

namespace tidemark::protocol {

std::span<const AnyMessage> all_messages() { return {all_messages_table, all_messages_table_size}; }

const AnyMessage* find_message(std::string_view name) {
    const auto all = all_messages();
    const auto at = std::ranges::find(all, name, &AnyMessage::name);
    return at == all.end() ? nullptr : &*at;
}

}  // namespace tidemark::protocol
