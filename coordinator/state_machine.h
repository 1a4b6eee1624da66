/// A coordinator's memory of one partition of an internal topic, and what it can do to it.
///
/// A state machine is plain code: no thread, no socket, no clock, no file. Its partition's runtime (runtime.h) calls it,
/// one call at a time, and gives every call a Context: the time, the cluster's image, the log to write to, and a place for
/// answers. So each operation reads
///
///     void Machine::do_it(Context& context, const Request& request, Reply<Response> reply) {
///         auto decided = decide(state_, request, context.now());          // pure: an error, or records and an answer
///         if (const auto written = context.write(decided.records); !written) return context.answer(reply, refusal(written.error()));
///         context.answer(reply, std::move(decided.response));             // leaves when all that was written is durable
///     }
///
/// Records come first and memory follows: write() appends, and only what was appended is replayed. A failed append leaves
/// log and memory as they were, so there is nothing to roll back (group-coordinator 2.2). Appending takes microseconds,
/// since it goes to the page cache; what takes long, the sync, nobody waits for here: answers do.
///
/// Answers leave when everything appended before them is durable, also those of operations that wrote nothing: a client
/// never sees what a crash could take back (group-coordinator 2.3, 2.4).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <boost/system/result.hpp>

#include "base/result.h"
#include "coordinator/record.h"
#include "protocol/error_code.h"

namespace tidemark::metadata {
class Image;
using ImagePtr = std::shared_ptr<const Image>;
}  // namespace tidemark::metadata
namespace tidemark::storage {
enum class VerificationId : std::uint64_t;
}

namespace tidemark::coordinator {

using protocol::ErrorCode;

/// For deadlines: Clock::since_boot(). Timestamps, which go into records, may jump.
using Moment = std::chrono::milliseconds;

/// What a client asked for, or why its coordinator could not look at it or could not keep its promise: loading, stopped,
/// not here, storage failed, timed out. Errors that an operation itself finds are part of the response.
struct Failure {
    ErrorCode code = ErrorCode::unknown_server_error;
};
template <class T>
using Coded = boost::system::result<T, Failure>;

/// Called once, from any thread; must not block. Copies share what they answer.
template <class Response>
using Reply = std::function<void(Coded<Response>)>;

/// Who appends: nobody in particular, or a producer inside its transaction.
struct WriteOptions {
    ProducerId producer_id = no_producer_id;       ///< set: the batch is transactional
    ProducerEpoch producer_epoch = -1;
    std::optional<storage::VerificationId> verification = {};   ///< see JournalAppend
    /// False when memory already says, or will be told otherwise, what the records do (classic groups, 2.5).
    bool replay = true;
};

struct Marker {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = -1;
    std::int32_t coordinator_epoch = 0;
    std::int16_t transaction_version = 0;          ///< of the transaction, for the epoch check (KIP-890)
    bool commit = false;
};

/// What an operation may use of the world. Life: the call it was passed to.
class Context {
public:
    virtual ~Context() = default;

    /// The wall clock, for records; the same during one operation.
    virtual Timestamp now() const = 0;
    /// For deadlines; the same during one operation.
    virtual Moment moment() const = 0;
    /// Topics, settings, features: what image_changed() has told last.
    virtual const metadata::ImagePtr& image() const = 0;
    /// Of the partition, which the transaction coordinator calls its epoch.
    virtual LeaderEpoch leader_epoch() const = 0;

    /// Appends the records as one batch, all or nothing, and replays them. No records: nothing happens, successfully.
    /// On an error nothing has changed; its code says why (Log::append()).
    virtual Result<> write(std::span<const Record> records, const WriteOptions& = {}) = 0;
    /// Appends a transaction's marker and replays it.
    virtual Result<> write(const Marker&) = 0;

    /// Calls `done` once everything appended so far is durable, with ErrorCode::none, or with the reason why that is not to be
    /// (kafka_storage_error, request_timed_out, coordinator_not_available at a stop). From any thread, maybe before this returns
    /// control to the runtime's caller, never from inside when_durable().
    virtual void when_durable(std::function<void(ErrorCode)> done) = 0;

    /// when_durable(), then the reply.
    template <class Response>
    void answer(Reply<Response> reply, Response response) {
        when_durable([reply = std::move(reply), response = std::move(response)](ErrorCode failure) mutable {
            if (failure == ErrorCode::none) reply(std::move(response));
            else reply(Failure{failure});
        });
    }
};

/// Threads: none of its own; one call at a time.
class StateMachine {
public:
    virtual ~StateMachine() = default;

    // --- the log, at load and after every write --------------------------------------------------------------------

    /// Errors end a load: the partition is not served until the next start. After a write there are none (TM_ASSERT).
    /// Types that are not known are skipped: they are another version's (logged once by whoever finds them).
    virtual Result<> replay(const ReplayedRecord&) = 0;
    virtual Result<> replay(const ReplayedMarker&) { return {}; }

    // --- life ------------------------------------------------------------------------------------------------------

    /// The log has been read to its end: timers start.
    virtual void loaded(Context&) {}
    /// The last call: answers whoever is parked with `reason` (coordinator_not_available, not_coordinator).
    virtual void unloaded(ErrorCode /*reason*/) {}
    /// Topics or settings are others now. Called in order, after loaded().
    virtual void image_changed(Context&, const metadata::ImagePtr& /*before*/) {}

    // --- time ------------------------------------------------------------------------------------------------------

    /// When tick() has something to do; may be too early, never too late. Asked after each call.
    virtual std::optional<Moment> next_deadline() const { return std::nullopt; }
    /// Does what is due at context.moment().
    virtual void tick(Context&) {}
};

}  // namespace tidemark::coordinator
