#pragma once

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// What is said where there is no memory, even for words: short enough to take none.
inline Status NoMemory() { return {StatusCode::kOutOfMemory, "no memory left"}; }

/// The exception that is being caught, as a Status: kOutOfMemory where memory or threads are short.
/// For the edges of the library, which no exception crosses, and of threads, whose exceptions end
/// the process. Within a catch block only. Never throws.
Status StatusOfException() noexcept;

/// Does `work`, which returns a Status or a Result; what it throws is an error, too.
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
