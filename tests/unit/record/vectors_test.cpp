// Bytes that Apache Kafka 4.4.0 wrote (record-format 9), read and written again.
#include "record/control.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;

const char* const plain_v2 =
    "00000000000000000000003a0000000502716a618900000000000000000000000003e800000000000003e8ffffffffffffffffffffffffffff0000000110000000"
    "026b027600";
const char* const null_v2 =
    "000000000000000700000038ffffffff02cfb21e4300000000000000000000000003e800000000000003e8ffffffffffffffffffffffffffff000000010c000000"
    "010100";
const char* const commit =
    "000000000000000a0000004200000003022a9facc200300000000000000000000003e800000000000003e800000000000000090002ffffffff0000000120000000"
    "08000000010c00000000000400";
const char* const abort_ =
    "000000000000000a000000420000000302dea17a8a00300000000000000000000003e800000000000003e800000000000000090002ffffffff0000000120000000"
    "08000000000c00000000000400";
const char* const empty =
    "00000000000000030000003100000007025160eb4a001000000001ffffffffffffffff000000000000000c000000000000001700050000000a00000000";
const char* const plain_v1 = "000000000000000300000018e4e321bc010000000000000003e8000000016b0000000176";
const char* const plain_v0 = "0000000000000003000000101fecd70a0000000000016b0000000176";
const char* const gzip_v1 =
    "000000000000000400000053f15f51cb010100000000000007d0ffffffff0000003d1f8b08000000000000ff6360800389278f15f7304239cc2f80046336882883"
    "0a81a4a462278a71c0d4b05f00124cd94620b2cc080064f2c9b04a000000";
const char* const lz4_v0 =
    "000000000000000300000035e88bf2d50003ffffffff0000002704224d1860401a18000000120001009103000000101fecd70a0f0070016b000000017600000000";
const char* const lz4_v2 =
    "000000000000000300000049ffffffff02f4283fbe00030000000000000000000003e800000000000003e8ffffffffffffffffffffffffffff0000000104224d18"
    "6040820900008010000000026b02760000000000";
const char* const snappy_v2 =
    "000000000000000300000050ffffffff028e35bd9200020000000000000000000003e800000000000003e8ffffffffffffffffffffffffffff0000000182534e41"
    "5050590000000001000000010000000b092010000000026b027600";
const char* const zstd_v2 =
    "000000000000000300000046ffffffff024211f06000040000000000000000000003e800000000000003e8ffffffffffffffffffffffffffff0000000128b52ffd"
    "005848000010000000026b027600010000";

struct Vector {
    const char* name;
    const char* hex;
    BatchOptions options;
    std::vector<Rec> records;
};

std::vector<Vector> vectors() {
    const Rec at3{.offset = 3, .timestamp = 1000, .key = "k", .value = "v"};
    const Rec at3_v0{.offset = 3, .timestamp = -1, .key = "k", .value = "v"};
    return {
        {"plain v2", plain_v2, {.base_offset = Offset{0}, .leader_epoch = 5}, {{.offset = 0, .timestamp = 1000, .key = "k", .value = "v"}}},
        {"null key and value", null_v2, {.base_offset = Offset{7}}, {{.offset = 7, .timestamp = 1000}}},
        {"v1", plain_v1, {.magic = 1, .base_offset = Offset{3}}, {at3}},
        {"v0", plain_v0, {.magic = 0, .base_offset = Offset{3}}, {at3_v0}},
        {"v1 gzip wrapper",
         gzip_v1,
         {.magic = 1, .codec = Codec::gzip, .base_offset = Offset{3}},
         {at3, {.offset = 4, .timestamp = 2000, .key = "k2", .value = "v2"}}},
        {"v0 lz4 wrapper", lz4_v0, {.magic = 0, .codec = Codec::lz4, .base_offset = Offset{3}}, {at3_v0}},
        {"v2 lz4", lz4_v2, {.codec = Codec::lz4, .base_offset = Offset{3}}, {at3}},
        {"v2 snappy", snappy_v2, {.codec = Codec::snappy, .base_offset = Offset{3}}, {at3}},
        {"v2 zstd", zstd_v2, {.codec = Codec::zstd, .base_offset = Offset{3}}, {at3}},
    };
}

TEST(KafkaVectors, AreRead) {
    RecordReader reader;
    for (const Vector& v : vectors()) {
        SCOPED_TRACE(v.name);
        const Buffer bytes = from_hex(v.hex);
        const BatchView batch = view(bytes);
        EXPECT_EQ(batch.size(), bytes.size());
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_EQ(batch.magic(), v.options.magic);
        EXPECT_EQ(batch.codec(), v.options.codec);
        EXPECT_EQ(batch.last_offset().value, v.records.back().offset);
        EXPECT_EQ(batch.max_timestamp().value, v.records.back().timestamp);
        EXPECT_EQ(batch.leader_epoch(), v.options.leader_epoch);
        EXPECT_EQ(read_all(batch, reader).value(), v.records);
        EXPECT_EQ(first_offset(batch, reader).value(), v.options.base_offset);
    }
}

TEST(KafkaVectors, AreWritten) {
    for (const Vector& v : vectors()) EXPECT_EQ(to_hex(build(v.options, v.records)), v.hex) << v.name;
}

TEST(KafkaVectors, TransactionMarkers) {
    for (const auto& [hex, type] : {std::pair{commit, ControlType::commit}, std::pair{abort_, ControlType::abort}}) {
        const Buffer bytes = from_hex(hex);
        const BatchView batch = view(bytes);
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_TRUE(batch.is_control());
        EXPECT_TRUE(batch.is_transactional());
        EXPECT_EQ(batch.producer_id(), 9);
        EXPECT_EQ(batch.producer_epoch(), 2);
        EXPECT_EQ(batch.base_sequence(), -1);
        EXPECT_EQ(batch.last_sequence(), -1);
        RecordReader reader;
        ASSERT_TRUE(reader.open(batch));
        const auto record = reader.next().value();
        ASSERT_TRUE(record);
        const auto marker = transaction_marker(*record);
        ASSERT_TRUE(marker) << marker.error().message();
        EXPECT_EQ(marker->type, type);
        EXPECT_EQ(marker->coordinator_epoch, 4);

        Buffer written;
        write_marker({.offset = Offset{10},
                      .timestamp = Timestamp{1000},
                      .leader_epoch = 3,
                      .producer_id = 9,
                      .producer_epoch = 2,
                      .marker = {.type = type, .coordinator_epoch = 4}},
                     written);
        EXPECT_EQ(to_hex(written), hex);
        EXPECT_EQ(written.size(), 78U);
    }
}

TEST(KafkaVectors, EmptyBatch) {
    const Buffer source = build({.codec = Codec::gzip,
                                 .base_offset = Offset{3},
                                 .leader_epoch = 7,
                                 .producer_id = 23,
                                 .producer_epoch = 5,
                                 .base_sequence = 10,
                                 .transactional = true,
                                 .delete_horizon = Timestamp{99}},
                                {{.offset = 3, .timestamp = 11, .value = "a"}, {.offset = 4, .timestamp = 12}});
    Buffer written;
    write_empty_batch(view(source), written);
    EXPECT_EQ(to_hex(written), empty);

    const BatchView batch = view(written);
    EXPECT_TRUE(batch.crc_matches());
    EXPECT_EQ(batch.record_count(), 0);
    EXPECT_EQ(batch.base_offset(), Offset{3});
    EXPECT_EQ(batch.last_offset(), Offset{4});
    EXPECT_EQ(batch.last_sequence(), 11);
    EXPECT_EQ(batch.max_timestamp(), Timestamp{12});
    EXPECT_FALSE(batch.delete_horizon());
    EXPECT_EQ(records_of(written), std::vector<Rec>{});
}

}  // namespace
}  // namespace tidemark::record
