#pragma once

#include <cstdio>
#include <cstdlib>

/// Stops the process when a bug is found (never for bad input or a failing disk: those are Status).
#define RHIZOME_CHECK(condition)                                                                 \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      std::fprintf(stderr, "%s:%d: RHIZOME_CHECK failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                              \
    }                                                                                            \
  } while (false)

/// The same for invariants that are looked at in tests alone, because they stand in inner loops or
/// cost a pass over their data: on under a sanitizer and in a build without NDEBUG. Elsewhere
/// `condition` is compiled and never evaluated, so that it must have no effect.
#if defined(RHIZOME_SANITIZED) || !defined(NDEBUG)
#define RHIZOME_DCHECK_IS_ON 1
#define RHIZOME_DCHECK(condition) RHIZOME_CHECK(condition)
#else
#define RHIZOME_DCHECK_IS_ON 0
#define RHIZOME_DCHECK(condition) static_cast<void>(false && (condition))
#endif
