#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Kinds of errors that a caller can distinguish. The command line maps them to exit codes.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument,   ///< wrong usage or malformed input; retrying cannot help
  kAlreadyExists,     ///< the path, array or name is in use
  kNotFound,          ///< no such file, store, array or id
  kPermissionDenied,  ///< the operating system refused
  kIoError,           ///< a read, write or sync failed; the message carries path, offset and errno
  kCorruption,        ///< stored bytes are not what was written; the message names file and place
  kBusy,              ///< a lock is held; the message names the process if it is known
  kOutOfSpace,        ///< the disk, a quota or a file-size limit is exhausted
  kOutOfMemory,       ///< the memory budget is too small for the request
  kUnsupported,       ///< a newer format, or a feature that this build lacks
  kInterrupted,       ///< cancelled by the caller; nothing was published
};

/// Returns the snake_case name of `code`, such as "corruption".
std::string_view StatusCodeName(StatusCode code);

/// The outcome of an operation: OK, or a code and a message that says what failed, where, and what
/// to do. Threads: a value; copy it freely.
class [[nodiscard]] Status {
 public:
  Status() = default;

  /// Control and bidirectional characters in `message` (from a file name, for example) are escaped,
  /// so that a terminal shows them instead of obeying them.
  Status(StatusCode code, std::string message);

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string message);
  static Status AlreadyExists(std::string message);
  static Status NotFound(std::string message);
  static Status PermissionDenied(std::string message);
  static Status IoError(std::string message);
  static Status Corruption(std::string message);
  static Status Busy(std::string message);
  static Status OutOfSpace(std::string message);
  static Status OutOfMemory(std::string message);
  static Status Unsupported(std::string message);
  static Status Interrupted(std::string message);

  /// Translates the errno of a failed system call; `what` names operation, path and offset.
  static Status FromErrno(int error_number, std::string_view what);

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// Returns "corruption: <message>", or "ok".
  std::string ToString() const;

  /// Returns the same code with "<where>: " before the message; OK remains OK.
  Status WithContext(std::string_view where) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

/// A value, or the Status that explains why there is none (never an OK Status). A replacement for
/// C++23's std::expected: `if (!result) return result.error();`.
template <typename T>
using Result = tl::expected<T, Status>;

/// Creates a failed Result of any T: `return Fail(Status::NotFound("..."));`.
inline tl::unexpected<Status> Fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

inline namespace internal {
// A fallible expression is a Status or a Result; each function has an overload for both.
inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.error();
}
inline bool Failed(const Status& status) { return !status.ok(); }
template <typename T>
bool Failed(const Result<T>& result) {
  return !result.has_value();
}

/// Converts to Status or to any failed Result, so that one macro serves functions of both types.
struct Failure {
  Status status;
  operator Status() && { return std::move(status); }  // NOLINT(google-explicit-constructor)
  template <typename T>
  operator Result<T>() && {  // NOLINT(google-explicit-constructor)
    return Fail(std::move(status));
  }
};
}  // namespace internal

}  // namespace rhizome

#define RHIZOME_CONCAT_INNER(a, b) a##b
#define RHIZOME_CONCAT(a, b) RHIZOME_CONCAT_INNER(a, b)

/// Returns from the enclosing function (of type Status or Result) if `expression` failed.
#define RHIZOME_RETURN_IF_ERROR(expression)                                                  \
  do {                                                                                       \
    if (auto&& rhizome_outcome = (expression); ::rhizome::internal::Failed(rhizome_outcome)) \
      return ::rhizome::internal::Failure{::rhizome::internal::StatusOf(rhizome_outcome)};   \
  } while (false)

/// Declares a variable with the value of a Result, or returns its error from the enclosing
/// function: `RHIZOME_ASSIGN_OR_RETURN(auto file, fs.OpenRead(path));`
#define RHIZOME_ASSIGN_OR_RETURN(declaration, expression) \
  RHIZOME_ASSIGN_OR_RETURN_AS(RHIZOME_CONCAT(rhizome_result_, __LINE__), declaration, expression)
#define RHIZOME_ASSIGN_OR_RETURN_AS(result, declaration, expression)           \
  auto result = (expression);                                                  \
  if (!result) return ::rhizome::internal::Failure{std::move(result).error()}; \
  declaration = *std::move(result)
