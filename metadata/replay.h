/// From records to an Image and back: what each record of the metadata log does (metadata-log 3), and the records that
/// say everything an image says, as a snapshot holds them (metadata-log 6).
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "metadata/image.h"
#include "protocol/metadata_record.h"

namespace tidemark::metadata {

/// What this program writes and understands of metadata.version: 3.3-IV3 to 4.4-IV2.
inline constexpr std::int16_t metadata_version_min = 7;
inline constexpr std::int16_t metadata_version_max = 33;

/// Applies records, strictly in offset order, to a copy of an image.
///
/// What Kafka would stop for is an error here too: unsupported (a metadata.version outside the range), corrupt (a record
/// that contradicts what came before it, for example a topic name used twice). After an error the builder is of no use.
/// Records between Begin- and EndTransaction show when the end has come, those before an abort never.
class ImageBuilder {
public:
    explicit ImageBuilder(std::shared_ptr<const Image> from = std::make_shared<const Image>());

    Result<> apply(const protocol::MetadataRecord&, Offset);
    /// A record without effect on the state, such as a control record, was at `offset`.
    void pass(Offset offset);
    /// The log ends, as far as has been applied, inside a transaction: AbortTransaction must follow.
    bool in_transaction() const { return in_transaction_; }
    /// The image so far.
    const Image& image() const { return image_; }
    std::shared_ptr<const Image> build() &&;

private:
    struct Effect;                                        // what each type of record does

    Topic* topic_to_change(const Uuid& id);
    KeptRecords& kept_to_change();

    Image image_;
    bool in_transaction_ = false;
    std::vector<protocol::MetadataRecord> pending_;       // of the open transaction
    std::unordered_set<const Topic*> own_topics_;         // made by this builder, so it may still change them
    std::shared_ptr<KeptRecords> own_kept_;               // the same for image_.kept, once it was copied
};

/// The version in which a record is written at a metadata.version (metadata-log 3.1). Fields that the version cannot hold
/// must be at their defaults.
std::int16_t record_version(const protocol::MetadataRecord&, std::int16_t metadata_version);

/// The image as records, written as if from scratch: no removals, no transactions.
std::vector<protocol::MetadataRecord> snapshot_records(const Image&);

/// One partition, as the records of `metadata_version` can hold it.
protocol::PartitionRecord partition_record(const Uuid& topic_id, std::int32_t partition, const Partition&, std::int16_t metadata_version);
protocol::RegisterBrokerRecord register_broker_record(const BrokerRegistration&, std::int16_t metadata_version);

}  // namespace tidemark::metadata
