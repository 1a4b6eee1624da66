/// What clients do with offsets, and what time does to them (group-coordinator 5).
#pragma once

#include "coordinator/group/classic_groups.h"
#include "coordinator/group/offsets.h"
#include "protocol/messages/offset_commit_request.h"
#include "protocol/messages/offset_commit_response.h"
#include "protocol/messages/offset_delete_request.h"
#include "protocol/messages/offset_delete_response.h"
#include "protocol/messages/offset_fetch_request.h"
#include "protocol/messages/offset_fetch_response.h"
#include "protocol/messages/txn_offset_commit_request.h"
#include "protocol/messages/txn_offset_commit_response.h"

namespace tidemark::coordinator {

/// Threads: its state machine's.
class OffsetOperations {
public:
    OffsetOperations(GroupTable& groups, Offsets& offsets, ClassicGroups& classic, const GroupOptionsPtr& options)
        : groups_(groups), offsets_(offsets), classic_(classic), options_(options) {}

    void commit(Context&, protocol::OffsetCommitRequest&, std::int16_t version, Reply<protocol::OffsetCommitResponse>);
    /// The transaction has been asked for already; `version` of TxnOffsetCommit.
    void commit(Context&, protocol::TxnOffsetCommitRequest&, std::int16_t version, std::optional<storage::VerificationId>, Reply<protocol::TxnOffsetCommitResponse>);
    /// One group's part of OffsetFetch; older versions are brought into this form by the handler. By topic id from version 10 on.
    void fetch(Context&, const protocol::OffsetFetchRequest::OffsetFetchRequestGroup&, std::int16_t version, bool require_stable,
               Reply<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>);
    void remove(Context&, const protocol::OffsetDeleteRequest&, Reply<protocol::OffsetDeleteResponse>);

    /// Offsets whose time is over go, and empty groups without offsets. Errors are logged: the next round tries again.
    void expire(Context&);
    /// Topics that were there before and are not any more take their offsets with them.
    void forget_deleted_topics(Context&, const metadata::Image& before);

private:
    void expire(Context&, Group&);

    GroupTable& groups_;
    Offsets& offsets_;
    ClassicGroups& classic_;
    const GroupOptionsPtr& options_;
};

}  // namespace tidemark::coordinator
