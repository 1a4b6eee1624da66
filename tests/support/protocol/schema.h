/// The message definitions of protocol/schemas, read at run time: what the generated codecs are tested against is a
/// second, independent reading of the same facts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/wire_types.h"

namespace tidemark::protocol::schema {

struct Field {
    std::string name = {};
    std::string type = {};  ///< of the elements, if an array
    bool is_array = false;
    bool is_inflexible = false;
    VersionRange versions = {};
    VersionRange null = {};
    std::optional<std::uint32_t> tag = {};
    VersionRange tagged = {};
    std::optional<std::string> default_value = {};
};

struct Message {
    std::string kind = {};
    std::string name = {};
    std::optional<std::int16_t> key = {};
    VersionRange versions = {};
    VersionRange flexible = {};
    std::vector<Field> fields = {};
    std::map<std::string, std::vector<Field>, std::less<>> structs = {};

    /// Null for types that are no structure.
    const std::vector<Field>* structure(std::string_view type) const;
};

/// All of them. `folder` holds the .schema files. Throws std::runtime_error for a line it does not understand.
std::vector<Message> read(const std::string& folder);

}  // namespace tidemark::protocol::schema
