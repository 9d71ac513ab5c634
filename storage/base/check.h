#pragma once

#include <cstdio>
#include <cstdlib>

/// Aborts the process when an invariant of the program is violated, that is, at a bug. Bad input
/// and failing disks return a Status instead.
#define RHIZOME_CHECK(condition)                                                                 \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      std::fprintf(stderr, "%s:%d: RHIZOME_CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)

/// As RHIZOME_CHECK, for invariants that are too expensive to check in production: inside inner
/// loops, or with a pass over the data. Enabled under a sanitizer and in builds without NDEBUG.
/// Elsewhere `condition` is compiled but never evaluated, so it must have no side effects.
#if defined(RHIZOME_SANITIZED) || !defined(NDEBUG)
#define RHIZOME_DCHECK_IS_ON 1
#define RHIZOME_DCHECK(condition) RHIZOME_CHECK(condition)
#else
#define RHIZOME_DCHECK_IS_ON 0
#define RHIZOME_DCHECK(condition) static_cast<void>(false && (condition))
#endif
