/// Topic settings that Apache Kafka does not know, kept in a plain file beside the metadata log: Kafka skips such records
/// and leaves them out of its snapshots (metadata-log 3.5), so that without the file a visit to Kafka would lose them.
///
///   tidemark-topic-settings    one line each: topic id, topic name, key, value, separated by tabs
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/uuid.h"
#include "io/file_system.h"
#include "metadata/image.h"

namespace tidemark::metadata {

/// By topic id and key; values in canonical form.
using OwnSettings = std::map<std::pair<Uuid, std::string>, std::string>;

/// What an image says of keys that are ours.
OwnSettings own_settings_of(const Image&);

/// Empty when there is no file. Lines that cannot be read are skipped: the file is a memory, not the truth.
Result<OwnSettings> read_own_settings(io::FileSystem&, const io::Path& directory);
/// Durable when this returns.
Result<> write_own_settings(io::FileSystem&, const io::Path& directory, const Image&, const OwnSettings&);

}  // namespace tidemark::metadata
