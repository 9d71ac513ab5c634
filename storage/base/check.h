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
