/// Errors as values: every function that can fail for a reason outside this program returns a Result.
///
/// Exceptions come only from libraries and from memory; a broken promise between our own functions is TM_ASSERT's.
#pragma once

#include <boost/assert/source_location.hpp>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tidemark {

/// What a caller can react to. The daemon maps these to Kafka's error codes (daemon/error_mapping.h), nobody else does.
enum class Errc : std::uint8_t {
    io,                         ///< the system refused a file operation; Error::os says why
    no_space,                   ///< ENOSPC or EDQUOT: the operation was undone, it may work again later
    storage_offline,            ///< the log directory failed earlier and serves nothing any more
    corrupt,                    ///< bytes from disk or wire are not what their format says
    invalid_argument,           ///< a value that the caller gave is outside its range
    not_found,                  ///< no such file, topic, partition, key
    already_exists,             ///< a file, topic or partition of that name is there
    aborted,                    ///< somebody asked for the work to stop
    timed_out,                  ///< a deadline passed
    unsupported,                ///< legal, but not offered
    locked,                     ///< another process owns the directory
    // What an append can be refused for (spec: append-and-read, sections 2 to 4).
    invalid_record,
    invalid_timestamp,
    too_large,                  ///< a batch exceeds max.message.bytes
    batch_set_too_large,        ///< an append exceeds segment.bytes
    unsupported_compression,
    out_of_order_sequence,
    invalid_producer_epoch,
    invalid_transaction_state,
    coordinator_fenced,         ///< a marker's coordinator epoch is older than one seen before
    unexpected_offset,          ///< an append with given offsets does not follow the log's end
    // What a read can be refused for.
    offset_out_of_range,
    offset_not_available,
    fenced_leader_epoch,
    unknown_leader_epoch,
    offset_overflow,            ///< an offset does not fit the segment's 31-bit relative range
};

/// Name of an Errc as it stands in the source, for logs.
const char* to_string(Errc) noexcept;

struct Error {
    Errc code = Errc::io;
    std::string context = {};   ///< where and what: "00000000000000000042.log at 8192: CRC mismatch"
    std::error_code os = {};    ///< what the system said, for Errc::io and no_space

    /// One line for a log: "corrupt: 0...42.log at 8192: CRC mismatch".
    std::string message() const;
};

[[noreturn]] void throw_exception_from_error(const Error&, const boost::source_location&);

}  // namespace tidemark

#include <boost/system/result.hpp>

namespace tidemark {

template <class T = void>
using Result = boost::system::result<T, Error>;

/// The same error with `where` put before its context: lower layers say what, higher ones where.
[[nodiscard]] Error in_context(Error error, std::string_view where);

}  // namespace tidemark

#define TM_CONCAT_2(a, b) a##b
#define TM_CONCAT(a, b) TM_CONCAT_2(a, b)
#define TM_TRY_(tmp, decl, expr, leave)          \
    auto tmp = (expr);                           \
    if (!tmp.has_value()) leave std::move(tmp).error(); \
    decl = *std::move(tmp)
#define TM_TRYV_(tmp, expr, leave) \
    if (auto tmp = (expr); !tmp.has_value()) leave std::move(tmp).error()

/// TM_TRY(const auto header, read_header(log)): binds the value, or returns the error from the enclosing function.
#define TM_TRY(decl, ...) TM_TRY_(TM_CONCAT(tm_result_, __LINE__), decl, (__VA_ARGS__), return)
/// TM_TRYV(file.sync()): for Result<>.
#define TM_TRYV(...) TM_TRYV_(TM_CONCAT(tm_result_, __LINE__), (__VA_ARGS__), return)
/// The same inside a coroutine.
#define TM_CO_TRY(decl, ...) TM_TRY_(TM_CONCAT(tm_result_, __LINE__), decl, (__VA_ARGS__), co_return)
#define TM_CO_TRYV(...) TM_TRYV_(TM_CONCAT(tm_result_, __LINE__), (__VA_ARGS__), co_return)
