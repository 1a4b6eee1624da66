#include "protocol/framing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/messages/api_versions_response.h"
#include "protocol/messages/fetch_response.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"
#include "protocol/messages/produce_request.h"
#include "tests/unit/protocol/support.h"

namespace tidemark::protocol {
namespace {

Result<std::size_t> size_of(std::string_view notation, std::size_t bytes_max) {
    const auto bytes = bytes_of(notation);
    return frame_size(std::span<const std::byte, 4>(bytes.data(), 4), bytes_max);
}

TEST(Framing, ReadsTheSizeOfAFrame) {
    EXPECT_EQ(*size_of("00000000", 100), 0u);
    EXPECT_EQ(*size_of("00000064", 100), 100u);
    EXPECT_EQ(size_of("00000065", 100).error().code, Errc::too_large);
    EXPECT_EQ(size_of("7fffffff", 104857600).error().code, Errc::too_large);
    EXPECT_EQ(size_of("ffffffff", 100).error().code, Errc::corrupt);
    EXPECT_EQ(size_of("80000000", 100).error().code, Errc::corrupt);
}

TEST(Framing, KnowsTheVersionsOfHeaders) {
    const auto* metadata = find_api(ApiKey::metadata);  // flexible from 9
    EXPECT_EQ(request_header_version(*metadata, 8), 1);
    EXPECT_EQ(request_header_version(*metadata, 9), 2);
    EXPECT_EQ(response_header_version(*metadata, 8), 0);
    EXPECT_EQ(response_header_version(*metadata, 9), 1);
    const auto* api_versions = find_api(ApiKey::api_versions);  // flexible from 3
    EXPECT_EQ(request_header_version(*api_versions, 2), 1);
    EXPECT_EQ(request_header_version(*api_versions, 3), 2);
    EXPECT_EQ(response_header_version(*api_versions, 3), 0);
    const auto* sasl_handshake = find_api(ApiKey::sasl_handshake);  // never
    EXPECT_EQ(request_header_version(*sasl_handshake, 1), 1);
}

TEST(Framing, ReadsRequestHeaders) {
    auto inflexible = bytes_of("0003 0008 00000007 0003'abc' 99");
    auto reader = Reader::of_frame(inflexible);
    const auto first = read_request_header(reader);
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_EQ(*first, (RequestHeader{.request_api_key = 3, .request_api_version = 8, .correlation_id = 7, .client_id = "abc"}));
    EXPECT_EQ(reader.remaining(), 1u);

    // The client id keeps its two-byte length in the flexible header; a tag that nobody knows follows.
    auto flexible = bytes_of("0003 0009 00000007 ffff 01 05 01 aa 99");
    reader = Reader::of_frame(flexible);
    const auto second = read_request_header(reader);
    ASSERT_TRUE(second) << second.error().message();
    EXPECT_EQ(second->client_id, std::nullopt);
    EXPECT_EQ(second->unknown_tags.size(), 1u);
    EXPECT_EQ(reader.remaining(), 1u);
}

TEST(Framing, RefusesBadRequestHeaders) {
    struct Case {
        std::string_view bytes;
        Errc code;
    };
    for (const auto& [notation, code] : {
             Case{"", Errc::corrupt},
             Case{"0003 00", Errc::corrupt},
             Case{"0003 0008 000000", Errc::corrupt},
             Case{"0003 0008 00000007 0005 'abc'", Errc::corrupt},
             Case{"0003 0009 00000007 ffff", Errc::corrupt},  // no tagged section
             Case{"270f 0000 00000007 ffff", Errc::unsupported},
             Case{"ffff 0000 00000007 ffff", Errc::unsupported},
             Case{"0004 0000 00000007 ffff", Errc::unsupported},  // LeaderAndIsr, removed
         }) {
        const auto bytes = bytes_of(notation);
        Reader reader{Bytes(bytes)};
        const auto header = read_request_header(reader);
        ASSERT_FALSE(header) << notation;
        EXPECT_EQ(header.error().code, code) << notation;
    }
}

TEST(Framing, ReadsTheHeaderOfAnApiVersionsRequestInAnyVersion) {
    const auto bytes = bytes_of("0012 7fff 00000007 0000 00");
    Reader reader{Bytes(bytes)};
    const auto header = read_request_header(reader);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->request_api_version, 32767);
}

TEST(Framing, FramesResponses) {
    const ApiVersionsResponse refusal{.error_code = ErrorCode::unsupported_version,
                                      .api_keys = {{.api_key = 18, .min_version = 0, .max_version = 5}}};
    const auto v0 = response_frame(7, refusal, 0);
    ASSERT_TRUE(v0);
    EXPECT_EQ(hex(v0->bytes), "00000010" "00000007" "0023" "00000001" "001200000005");
    EXPECT_EQ(v0->size, v0->bytes.size());
    const auto v3 = response_frame(7, ApiVersionsResponse{}, 3);  // header 0 all the same
    ASSERT_TRUE(v3);
    EXPECT_EQ(hex(v3->bytes), "0000000c" "00000007" "0000" "01" "00000000" "00");
    const auto metadata = response_frame(7, MetadataResponse{}, 13);  // header 1
    ASSERT_TRUE(metadata);
    EXPECT_EQ(hex(metadata->bytes).substr(0, 18), "00000013" "00000007" "00");
}

TEST(Framing, FramesRequestsAndReadsThemBack) {
    const MetadataRequest request{.topics = std::nullopt, .allow_auto_topic_creation = false};
    auto frame = request_frame({.request_api_version = 12, .correlation_id = 99, .client_id = "me"}, request);
    ASSERT_TRUE(frame);
    auto reader = Reader::of_frame(MutableBytes(frame->bytes).subspan(frame_prefix_bytes));
    const auto header = read_request_header(reader);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->request_api_key, 3);
    EXPECT_EQ(header->correlation_id, 99);
    const auto again = parse<MetadataRequest>(reader, header->request_api_version);
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, request);
    EXPECT_EQ(reader.remaining(), 0u);
}

TEST(Framing, ReadsResponseHeaders) {
    const auto bytes = bytes_of("00000063 00");
    Reader flexible{Bytes(bytes)};
    EXPECT_EQ(*read_response_header(flexible, ApiKey::metadata, 9), 99);
    EXPECT_EQ(flexible.remaining(), 0u);
    Reader inflexible{Bytes(bytes)};
    EXPECT_EQ(*read_response_header(inflexible, ApiKey::metadata, 8), 99);
    EXPECT_EQ(inflexible.remaining(), 1u);
}

TEST(Framing, LeavesTheRecordsOfAFetchToTheSender) {
    const auto partition = [](std::int32_t index, std::uint32_t slice, std::size_t size) {
        return FetchResponse::PartitionData{.partition_index = index, .records = Records{.elsewhere = Records::Elsewhere{slice, size}}};
    };
    const FetchResponse response{.responses = {{.topic_id = Uuid::of(5), .partitions = {partition(0, 0, 1000), partition(1, 1, 70000)}}}};
    auto frame = response_frame(7, response, 18);
    ASSERT_TRUE(frame) << frame.error().message();
    EXPECT_EQ(frame->size, frame->bytes.size() + 71000);
    EXPECT_EQ(load_be<std::int32_t>(frame->bytes.data()), static_cast<std::int32_t>(frame->size - 4));

    // What a client sees once the sender has filled the gaps.
    std::vector<std::byte> sent;
    std::size_t at = 0;
    for (const auto& gap : frame->gaps) {
        append_bytes(sent, Bytes(frame->bytes).subspan(at, gap.at - at));
        at = gap.at;
        sent.insert(sent.end(), gap.size, static_cast<std::byte>(0xa0 + gap.slice));
    }
    append_bytes(sent, Bytes(frame->bytes).subspan(at));
    auto reader = Reader::of_frame(MutableBytes(sent).subspan(frame_prefix_bytes));
    ASSERT_EQ(*read_response_header(reader, ApiKey::fetch, 18), 7);
    const auto received = parse<FetchResponse>(reader, 18);
    ASSERT_TRUE(received) << received.error().message();
    EXPECT_EQ(reader.remaining(), 0u);
    const auto& partitions = received->responses.at(0).partitions;
    ASSERT_EQ(partitions.size(), 2u);
    EXPECT_EQ(partitions[0].records->size(), 1000u);
    EXPECT_EQ(partitions[0].records->bytes.back(), std::byte{0xa0});
    EXPECT_EQ(partitions[1].records->size(), 70000u);
    EXPECT_EQ(partitions[1].records->bytes.front(), std::byte{0xa1});
}

TEST(Framing, RefusesFramesBeyondTheirSizeField) {
    const auto huge = [](std::uint32_t slice) {
        return FetchResponse::PartitionData{.records = Records{.elsewhere = Records::Elsewhere{slice, std::size_t{1} << 30}}};
    };
    const auto frame = response_frame(1, FetchResponse{.responses = {{.partitions = {huge(0), huge(1)}}}}, 12);
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code, Errc::too_large);
}

TEST(Framing, RefusesValuesThatTheVersionCannotCarry) {
    MetadataRequest request{.allow_auto_topic_creation = false};
    EXPECT_FALSE(encode(request, 3));
    EXPECT_EQ(encode(request, 3).error().code, Errc::unsupported);
    EXPECT_THAT(encode(request, 3).error().message(), testing::HasSubstr("MetadataRequest.allow_auto_topic_creation"));
    EXPECT_TRUE(encode(request, 4));
    request = {.topics = std::nullopt};
    EXPECT_EQ(encode(request, 0).error().code, Errc::invalid_argument);
    EXPECT_TRUE(encode(request, 1));
    request = {.topics = {{{.topic_id = Uuid::of(1), .name = "t"}}}};
    EXPECT_TRUE(encode(request, 9)) << "an ignorable field is left out";
    request = {.unknown_tags = {{.number = 9, .value = {}}}};
    EXPECT_EQ(encode(request, 8).error().code, Errc::unsupported);
    EXPECT_TRUE(encode(request, 9));
    FetchResponse response{.responses = {{.partitions = {{.diverging_epoch = {.epoch = 3}}}}}};
    EXPECT_EQ(encode(response, 11).error().code, Errc::unsupported);
    EXPECT_TRUE(encode(response, 12));
}

TEST(Framing, AppendsRecordsInPlace) {
    auto bytes = bytes_of("ffff ffff 000003e8 00000001 0001't' 00000001 00000002 00000004 aabbccdd");
    auto reader = Reader::of_frame(bytes);
    const auto request = parse<ProduceRequest>(reader, 3);
    ASSERT_TRUE(request) << request.error().message();
    EXPECT_EQ(request->acks, -1);
    const auto& partition = request->topic_data.at(0).partition_data.at(0);
    EXPECT_EQ(partition.index, 2);
    ASSERT_TRUE(partition.records);
    EXPECT_EQ(partition.records->bytes.data(), bytes.data() + bytes.size() - 4);
}

}  // namespace
}  // namespace tidemark::protocol
