#pragma once

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the error for a lack of memory. Its message fits into std::string's inline buffer, so
/// that creating it allocates nothing.
inline Status NoMemory() { return {StatusCode::kOutOfMemory, "out of memory"}; }

/// Translates the exception that is being handled into a Status: kOutOfMemory if memory or threads
/// are short. It is called at the public interface of the library, which no exception may cross,
/// and at the top of each thread, where an exception would end the process. May be called only
/// inside a catch block. Never throws.
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
