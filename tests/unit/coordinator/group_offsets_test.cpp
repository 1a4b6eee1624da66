// Commits, fetches, deletion and expiry of offsets, inside transactions and outside.
#include <gmock/gmock.h>

#include "protocol/messages/consumer_protocol_subscription.h"
#include "tests/support/coordinator/test_groups.h"

namespace tidemark::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const GroupOptions no_delay{.initial_rebalance_delay_ms = 0};
constexpr auto week = std::chrono::hours{24 * 7};

void expire(TestGroups& groups) { groups.advance(600s, 600s); }   // one check later

// --- commits -------------------------------------------------------------------------------------------------------------

TEST(OffsetCommit, WithoutAGroup) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.commit({.generation = 3, .version = 9}), ErrorCode::group_id_not_found);
    EXPECT_EQ(groups.commit({.generation = 3, .version = 8}), ErrorCode::illegal_generation);
    EXPECT_THAT(groups.written(), IsEmpty());
    EXPECT_EQ(groups.commit({.member = "anybody", .offset = 5}), ErrorCode::none);
    EXPECT_EQ(groups.fetch().offset, 5);
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));
    EXPECT_EQ(groups.commit({.generation = 3}), ErrorCode::unknown_member_id);
    EXPECT_THAT(groups.written(), ElementsAre("offset g data-0 5"));
}

TEST(OffsetCommit, IntoAGroupWithMembers) {
    TestGroups groups{no_delay};
    const auto ids = groups.stable_group();
    EXPECT_EQ(groups.commit({}), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.commit({.member = "m", .generation = 1}), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 2}), ErrorCode::illegal_generation);
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 1, .offset = 7}), ErrorCode::none);
    groups.join_new();   // PreparingRebalance
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 1, .offset = 8}), ErrorCode::none);
    groups.join({.member = ids[0]});
    ASSERT_EQ(groups.state(), "CompletingRebalance");
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 2}), ErrorCode::rebalance_in_progress);
    EXPECT_EQ(groups.fetch().offset, 8);
}

TEST(OffsetCommit, KeepsASessionAlive) {
    TestGroups groups{no_delay};
    const auto ids = groups.stable_group(1, {.session_ms = 6000});
    groups.advance(5900ms);
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 1}), ErrorCode::none);
    groups.advance(5900ms);
    EXPECT_EQ(groups.heartbeat(ids[0], 1), ErrorCode::none);
}

TEST(OffsetCommit, MetadataIsLimitedInUtf16Units) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.commit({.metadata = std::string(4096, 'x')}), ErrorCode::none);
    EXPECT_EQ(groups.commit({.metadata = std::string(4097, 'x')}), ErrorCode::offset_metadata_too_large);
    std::string two_bytes_each;
    for (int i = 0; i < 4096; ++i) two_bytes_each += "é";
    EXPECT_EQ(groups.commit({.metadata = two_bytes_each}), ErrorCode::none);
    EXPECT_EQ(groups.commit({.partition = 1, .metadata = std::nullopt}), ErrorCode::none);
    EXPECT_EQ(groups.fetch("g", "data", 1).metadata, "");
    EXPECT_EQ(groups.commit({.offset = -5}), ErrorCode::none);
    EXPECT_EQ(groups.fetch().offset, -5);
}

TEST(OffsetCommit, PartitionsThatDoNotExist) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.commit({.topic = "none"}), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(groups.commit({.partition = 3}), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(groups.commit({.topic = "none", .version = 10}), ErrorCode::unknown_topic_id);
    EXPECT_EQ(groups.commit({.offset = 3, .version = 10}), ErrorCode::none);
    EXPECT_EQ(groups.fetch().offset, 3);
}

TEST(OffsetCommit, OneBadPartitionDoesNotKeepTheOthers) {
    TestGroups groups{no_delay};
    protocol::OffsetCommitRequest request{.group_id = "g"};
    auto& topic = request.topics.emplace_back();
    topic.name = "data";
    topic.partitions = {{.partition_index = 0, .committed_offset = 1}, {.partition_index = 9, .committed_offset = 2}, {.partition_index = 1, .committed_offset = 3, .committed_metadata = std::string(5000, 'x')}};
    Asked<protocol::OffsetCommitResponse> asked;
    groups->commit(std::move(request), 9, asked.reply());
    std::vector<ErrorCode> codes;
    for (const auto& partition : asked->topics.front().partitions) codes.push_back(partition.error_code);
    EXPECT_THAT(codes, ElementsAre(ErrorCode::none, ErrorCode::unknown_topic_or_partition, ErrorCode::offset_metadata_too_large));
    EXPECT_EQ(groups.fetch().offset, 1);
}

TEST(OffsetCommit, ThatCannotBeWrittenIsNotStored) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.commit({.offset = 1}), ErrorCode::none);
    groups.journal->fail_appends = Errc::no_space;
    EXPECT_EQ(groups.commit({.offset = 2}), ErrorCode::not_coordinator);
    EXPECT_EQ(groups.commit({.group = "other", .offset = 2}), ErrorCode::not_coordinator);
    EXPECT_EQ(groups.fetch().offset, 1);
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));
}

TEST(OffsetCommit, ValueVersionsAreKafkas) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    groups.commit({.offset = 2, .retention_ms = 1000, .version = 4});
    record::RecordReader reader;
    std::vector<int> versions;
    for (const auto& bytes : groups.journal->batches) {
        TM_ASSERT(reader.open(record::BatchView::parse(bytes).value()).has_value());
        versions.push_back(load_be<std::int16_t>(reader.next().value()->value->data()));
    }
    EXPECT_THAT(versions, ElementsAre(4, 1));
    // Without a topic id there is no tag either.
    const auto record = record_of(protocol::OffsetCommitKey{.group = "g", .topic = "t"}, protocol::OffsetCommitValue{.offset = 1}, 4);
    EXPECT_EQ(record.value->back(), std::byte{0});
}

// --- fetches -------------------------------------------------------------------------------------------------------------

TEST(OffsetFetch, OfWhatIsNotThere) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.fetch("none"), (FetchedOffset{.offset = -1}));
    EXPECT_EQ(groups.offsets_of("none"), 0u);
    groups.commit({.offset = 3, .metadata = "m"});
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 3, .metadata = "m"}));
    EXPECT_EQ(groups.fetch("g", "data", 2).offset, -1);
    EXPECT_EQ(groups.offsets_of(), 1u);
    // Classic groups do not ask who wants to know.
    protocol::OffsetFetchRequest::OffsetFetchRequestGroup request{.group_id = "g", .member_id = "nobody", .member_epoch = 7, .topics = std::nullopt};
    EXPECT_EQ(groups.fetch_group(request, 9).error_code, ErrorCode::none);
}

TEST(OffsetFetch, ByTopicId) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 3});
    protocol::OffsetFetchRequest::OffsetFetchRequestGroup request{.group_id = "g"};
    auto& known = request.topics->emplace_back();
    known.topic_id = groups.topic_id("data");
    known.partition_indexes = {0};
    auto& unknown = request.topics->emplace_back();
    unknown.topic_id = Uuid::of(77);
    unknown.partition_indexes = {0};
    const auto answer = groups.fetch_group(request, 10);
    EXPECT_EQ(answer.topics[0].partitions[0].committed_offset, 3);
    EXPECT_EQ(answer.topics[1].partitions[0].error_code, ErrorCode::unknown_topic_id);

    groups.delete_topic("data");
    groups.add_topic("data", 3);
    EXPECT_EQ(groups.fetch().offset, -1);
    EXPECT_EQ(groups.offsets_of(), 0u);
}

TEST(OffsetFetch, ByTheIdOfATopicMadeAnewShowsNothingOfTheOldOne) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 3});
    groups.journal->fail_appends = Errc::no_space;   // so that the offset outlives its topic
    groups.delete_topic("data");
    groups.journal->fail_appends.reset();
    groups.add_topic("data", 3);
    EXPECT_EQ(groups.offsets_of(), 1u);
    protocol::OffsetFetchRequest::OffsetFetchRequestGroup request{.group_id = "g"};
    auto& asked = request.topics->emplace_back();
    asked.topic_id = groups.topic_id("data");
    asked.partition_indexes = {0};
    const auto answer = groups.fetch_group(request, 10).topics.at(0).partitions.at(0);
    EXPECT_EQ(answer.error_code, ErrorCode::none);
    EXPECT_EQ(answer.committed_offset, -1);
}

TEST(OffsetFetch, ShowsNothingThatACrashCouldTakeBack) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    groups.journal->hold_syncs = true;
    const auto commit = groups.commit_later({.offset = 2});
    EXPECT_TRUE(commit.waits());
    Asked<std::vector<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>> fetch;
    groups->fetch({{.group_id = "g", .topics = std::nullopt}}, 9, false, fetch.reply());
    EXPECT_TRUE(fetch.waits());
    groups.journal->sync();
    EXPECT_FALSE(commit.waits());
    EXPECT_EQ(fetch->front().topics.front().partitions.front().committed_offset, 2);
}

// --- transactions --------------------------------------------------------------------------------------------------------

TEST(TransactionalOffsets, ArePendingUntilTheMarker) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    EXPECT_EQ(groups.commit({.offset = 2, .producer = 7}), ErrorCode::none);
    EXPECT_EQ(groups.fetch().offset, 1);
    EXPECT_EQ(groups.fetch("g", "data", 0, true), (FetchedOffset{.offset = -1, .error = ErrorCode::unstable_offset_commit}));
    EXPECT_EQ(groups.commit({.offset = 9, .partition = 1, .producer = 7}), ErrorCode::none);
    const auto all = groups.fetch_group({.group_id = "g", .topics = std::nullopt}, 9, true).topics.at(0).partitions;
    ASSERT_EQ(all.size(), 1u) << "a partition with nothing but a pending offset is not listed";
    EXPECT_EQ(all.front().error_code, ErrorCode::unstable_offset_commit);
    groups.end_transaction(7, true);
    EXPECT_EQ(groups.fetch("g", "data", 0, true).offset, 2);
    EXPECT_EQ(groups.fetch("g", "data", 1, true).offset, 9);
    EXPECT_EQ(groups.written().back(), "commit 7");

    groups.commit({.offset = 3, .producer = 7});
    groups.end_transaction(7, false);
    EXPECT_EQ(groups.fetch("g", "data", 0, true).offset, 2);
    groups.end_transaction(99, true);   // nothing of it is here
    EXPECT_EQ(groups.fetch().offset, 2);
}

TEST(TransactionalOffsets, WhoCommitsLaterWins) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1, .producer = 7});
    groups.commit({.offset = 2});
    groups.end_transaction(7, true);
    EXPECT_EQ(groups.fetch().offset, 2);
    groups.commit({.offset = 3});
    groups.commit({.offset = 4, .producer = 7});
    groups.end_transaction(7, true);
    EXPECT_EQ(groups.fetch().offset, 4);
    // A partition is unstable until both of its producers are done.
    groups.commit({.offset = 5, .producer = 7});
    groups.commit({.offset = 6, .producer = 8});
    groups.end_transaction(7, false);
    EXPECT_EQ(groups.fetch("g", "data", 0, true).error, ErrorCode::unstable_offset_commit);
    groups.end_transaction(8, true);
    EXPECT_EQ(groups.fetch("g", "data", 0, true).offset, 6);
    const auto before = groups.written();
    groups.restart();
    EXPECT_EQ(groups.fetch("g", "data", 0, true).offset, 6);
    EXPECT_EQ(groups.written(), before) << "loading writes nothing";
}

TEST(TransactionalOffsets, CheckTheMember) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.commit({.generation = 3, .version = 5, .producer = 7}), ErrorCode::illegal_generation);
    EXPECT_EQ(groups.commit({.generation = 3, .version = 6, .producer = 7}), ErrorCode::group_id_not_found);
    EXPECT_EQ(groups.commit({.group = "", .producer = 7}), ErrorCode::invalid_group_id);
    const auto ids = groups.stable_group();
    EXPECT_EQ(groups.commit({.producer = 7}), ErrorCode::none) << "nobody in particular may always";
    EXPECT_EQ(groups.commit({.member = "m", .generation = 1, .producer = 7}), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 4, .producer = 7}), ErrorCode::illegal_generation);
    groups.join_new();
    groups.join({.member = ids[0]});
    ASSERT_EQ(groups.state(), "CompletingRebalance");
    EXPECT_EQ(groups.commit({.member = ids[0], .generation = 2, .producer = 7}), ErrorCode::none);
}

TEST(TransactionalOffsets, DeletionForgetsWhatIsPending) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    groups.commit({.offset = 2, .producer = 7});
    EXPECT_EQ(groups.delete_group(), ErrorCode::none);
    groups.end_transaction(7, true);
    EXPECT_EQ(groups.fetch().offset, -1);
    EXPECT_THAT(groups.list(), IsEmpty());
    // The same by the topic's deletion, also when it is all that the group has.
    groups.commit({.group = "h", .offset = 2, .topic = "other", .producer = 8});
    groups.delete_topic("other");
    groups.add_topic("other", 1);
    groups.end_transaction(8, true);
    EXPECT_EQ(groups.fetch("h", "other").offset, -1);
}

// --- OffsetDelete, DeleteGroups ------------------------------------------------------------------------------------------

protocol::OffsetDeleteResponse delete_offset(TestGroups& groups, const std::string& topic, const std::string& group = "g") {
    protocol::OffsetDeleteRequest request{.group_id = group};
    auto& asked_topic = request.topics.emplace_back();
    asked_topic.name = topic;
    asked_topic.partitions = {{.partition_index = 0}};
    Asked<protocol::OffsetDeleteResponse> asked;
    groups->delete_offsets(std::move(request), asked.reply());
    return *asked;
}

std::string subscription(const std::string& topic) {
    protocol::Writer writer;
    writer.int16(0);
    protocol::ConsumerProtocolSubscription{.topics = {topic}}.write(writer, 0);
    return std::string{as_text(std::move(writer).finish_bytes().value())};
}

TEST(OffsetDelete, SparesWhatIsInUse) {
    TestGroups groups{no_delay};
    EXPECT_EQ(delete_offset(groups, "data").error_code, ErrorCode::group_id_not_found);
    const auto ids = groups.stable_group(1, {.protocols = {{"range", subscription("data")}}});
    groups.commit({.member = ids[0], .generation = 1, .offset = 1});
    groups.commit({.member = ids[0], .generation = 1, .offset = 1, .topic = "other"});
    const auto code = [](const auto& response) { return response.topics.front().partitions.front().error_code; };
    EXPECT_EQ(code(delete_offset(groups, "data")), ErrorCode::group_subscribed_to_topic);
    EXPECT_EQ(code(delete_offset(groups, "none")), ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(code(delete_offset(groups, "other")), ErrorCode::none);
    EXPECT_EQ(groups.written().back(), "~offset g other-0");
    const auto batches = groups.journal->batches.size();
    EXPECT_EQ(code(delete_offset(groups, "other")), ErrorCode::none);
    EXPECT_EQ(groups.journal->batches.size(), batches) << "nothing stored, nothing written";

    groups.stable_group(1, {.group = "connect", .type = "connect"});
    EXPECT_EQ(delete_offset(groups, "data", "connect").error_code, ErrorCode::non_empty_group);
    groups.stable_group(1, {.group = "opaque"});   // metadata that cannot be read: any topic may be meant
    EXPECT_EQ(code(delete_offset(groups, "data", "opaque")), ErrorCode::group_subscribed_to_topic);
}

TEST(DeleteGroups, TakesOffsetsAndGroupInOneBatch) {
    TestGroups groups{no_delay};
    EXPECT_EQ(groups.delete_group("none"), ErrorCode::group_id_not_found);
    EXPECT_EQ(groups.delete_group(""), ErrorCode::invalid_group_id);
    groups.stable_group();
    EXPECT_EQ(groups.delete_group(), ErrorCode::non_empty_group);
    groups.commit({.group = "h", .offset = 1});
    groups.commit({.group = "h", .offset = 2, .partition = 2});
    EXPECT_EQ(groups.delete_group("h"), ErrorCode::none);
    EXPECT_EQ(groups.written().back(), "~offset h data-0, ~offset h data-2, ~group h");
    EXPECT_THAT(groups.list(), ElementsAre("g:Stable:classic"));
}

// --- expiry --------------------------------------------------------------------------------------------------------------

TEST(OffsetExpiry, ASimpleGroupGoesAWeekAfterItsLastCommit) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    groups.advance(24h, 600s);
    groups.commit({.offset = 2, .partition = 1});
    groups.advance(week - 24h, 600s);
    EXPECT_EQ(groups.offsets_of(), 1u);
    groups.advance(24h, 600s);
    EXPECT_THAT(groups.list(), IsEmpty());
    EXPECT_EQ(groups.written().back(), "~offset g data-1, ~group g");
}

TEST(OffsetExpiry, AnEmptyGroupCountsFromWhenItBecameEmpty) {
    TestGroups groups{no_delay};
    const auto ids = groups.stable_group(1, {.protocols = {{"range", subscription("data")}}, .session_ms = 1'800'000});
    groups.commit({.member = ids[0], .generation = 1, .offset = 1});
    for (int i = 0; i < 24 * 8; ++i) {
        groups.advance(1800s - 1s, 600s);
        groups.heartbeat(ids[0], 1);
    }
    EXPECT_EQ(groups.offsets_of(), 1u) << "what it consumes does not expire";
    groups.leave({{ids[0], std::nullopt}});
    groups.advance(week - 1h, 600s);
    EXPECT_EQ(groups.offsets_of(), 1u);
    groups.advance(2h, 600s);
    EXPECT_THAT(groups.list(), IsEmpty());
}

TEST(OffsetExpiry, TopicsThatAConsumerGroupNoLongerReads) {
    TestGroups groups{GroupOptions{.offsets_retention_ms = 60'000, .initial_rebalance_delay_ms = 0}};
    const JoinArgs args{.protocols = {{"range", subscription("data")}}, .session_ms = 1'800'000};
    const auto ids = groups.stable_group(1, args);
    groups.commit({.member = ids[0], .generation = 1, .offset = 1});
    groups.commit({.member = ids[0], .generation = 1, .offset = 1, .topic = "other"});
    expire(groups);
    EXPECT_EQ(groups.fetch().offset, 1);
    EXPECT_EQ(groups.fetch("g", "other").offset, -1);
}

TEST(OffsetExpiry, NothingOfOtherTypesOrWhileRebalancing) {
    TestGroups groups{GroupOptions{.offsets_retention_ms = 60'000, .initial_rebalance_delay_ms = 0}};
    for (const auto& [group, type] : {std::pair{"connect", "connect"}, std::pair{"opaque", "consumer"}}) {
        const auto ids = groups.stable_group(1, {.group = group, .type = type, .session_ms = 1'800'000});
        groups.commit({.group = group, .member = ids[0], .generation = 1, .offset = 1});
    }
    const JoinArgs args{.group = "rebalancing", .protocols = {{"range", subscription("other")}}, .session_ms = 1'800'000, .rebalance_ms = 1'800'000};
    const auto ids = groups.stable_group(1, args);
    groups.commit({.group = "rebalancing", .member = ids[0], .generation = 1, .offset = 1});
    groups.join_new(args);
    expire(groups);
    EXPECT_EQ(groups.state("rebalancing"), "PreparingRebalance");
    for (const auto* group : {"connect", "opaque", "rebalancing"}) EXPECT_EQ(groups.fetch(group).offset, 1) << group;
}

TEST(OffsetExpiry, WhatItsCommitSaid) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1, .retention_ms = 1000, .version = 4});
    groups.commit({.offset = 1, .partition = 1});
    groups.restart();
    expire(groups);
    EXPECT_EQ(groups.fetch().offset, -1);
    EXPECT_EQ(groups.fetch("g", "data", 1).offset, 1);
}

TEST(OffsetExpiry, SparesPendingOffsets) {
    TestGroups groups{GroupOptions{.offsets_retention_ms = 60'000}};
    groups.commit({.offset = 1});
    groups.commit({.offset = 2, .producer = 7});
    groups.commit({.group = "pending only", .offset = 2, .producer = 7});
    expire(groups);
    EXPECT_EQ(groups.fetch().offset, 1);
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic", "pending only:Empty:classic"));
    groups.end_transaction(7, false);
    expire(groups);
    EXPECT_THAT(groups.list(), IsEmpty());
}

TEST(OffsetExpiry, AGroupWithoutOffsetsGoesAtTheNextCheck) {
    TestGroups groups{no_delay};
    groups.join({.session_ms = 1'800'000});   // a pending id does not keep it
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));
    expire(groups);
    EXPECT_THAT(groups.list(), IsEmpty());
}

TEST(OffsetExpiry, DeletedTopicsTakeTheirOffsets) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1});
    groups.commit({.offset = 1, .topic = "other"});
    groups.delete_topic("other");
    EXPECT_EQ(groups.written().back(), "~offset g other-0");
    EXPECT_EQ(groups.fetch().offset, 1);
    EXPECT_EQ(groups.fetch("g", "other").offset, -1);
}

TEST(OffsetExpiry, ADeletedTopicTakesWhatWasCommittedUnderItsIdOrUnderNone) {
    TestGroups groups{no_delay};
    groups.commit({.offset = 1, .retention_ms = 1'000'000, .version = 4});   // this form of the record has no id
    groups.commit({.offset = 2, .partition = 1});
    groups.journal->fail_appends = Errc::no_space;   // so that both outlive their topic
    groups.delete_topic("data");
    groups.journal->fail_appends.reset();
    groups.add_topic("data", 3);
    groups.commit({.offset = 3, .partition = 2});
    groups.delete_topic("data");
    EXPECT_EQ(groups.written().back(), "~offset g data-0, ~offset g data-2");
}

}  // namespace
}  // namespace tidemark::test
