#pragma once

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Returns whether an error that occurred while reading stored bytes proves that they are damaged
/// or gone. All other errors concern the act of reading.
inline bool ProvesDamage(const Status& status) {
  return status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
         status.code() == StatusCode::kUnsupported;
}

}  // namespace internal
}  // namespace rhizome
