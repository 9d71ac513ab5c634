#pragma once

#include <exception>
#include <utility>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the error for a lack of memory. Its message fits into std::string's inline buffer, so
/// that creating it allocates nothing.
inline Status NoMemory() { return {StatusCode::kOutOfMemory, "out of memory"}; }

/// Carries an error out of a function whose result has no place for one: the read of a number that
/// is still on disk (PagedSection). StatusOfException returns it again.
class StatusError : public std::exception {
 public:
  explicit StatusError(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message().c_str(); }

 private:
  Status status_;
};

[[noreturn]] void ThrowStatus(Status status);

/// Returns the value of a result, or throws its error.
template <typename T>
T ValueOrThrow(Result<T> result) {
  if (!result) ThrowStatus(result.error());
  return *std::move(result);
}

/// Translates the exception that is being handled into a Status: kOutOfMemory if memory or threads
/// are short, the error of a StatusError. It is called at the public interface of the library,
/// which no exception may cross, and at the top of each thread, where an exception would end the
/// process. May be called only inside a catch block. Never throws.
Status StatusOfException() noexcept;

/// Runs `work`, which returns a Status or a Result, and converts an exception into an error.
template <typename Work>
auto Guarded(const Work& work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return internal::Failure{StatusOfException()};
  }
}

}  // namespace internal
}  // namespace rhizome
