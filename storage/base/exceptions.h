#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The error for a lack of memory. Its message fits std::string's inner buffer, so that making it
/// allocates nothing.
inline Status NoMemory() { return {StatusCode::kOutOfMemory, "no memory left"}; }

/// Translates the exception that is being handled into a Status: kOutOfMemory when memory or
/// threads are short. The edges of the library use it, which no exception crosses, and those of
/// threads, where an exception would end the process. May be called only within a catch block.
/// Never throws.
Status StatusOfException() noexcept;

/// Runs `work`, which returns a Status or a Result; an exception becomes an error.
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
