#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

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
