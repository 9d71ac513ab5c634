#pragma once

#include <cstdint>
#include <string>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// A defect of a store, proven by the bytes that were read or by a missing file.
struct Damage {
  std::string file;                ///< relative to the store
  std::uint64_t offset_bytes = 0;  ///< from the start of the file
  std::string what;                ///< the defect in words

  /// True if only an earlier version of the current generation's arrays refers to the file, so that
  /// the current version is intact. The next writer removes the file once no process reads that
  /// version.
  bool earlier = false;
};

/// A file that could not be read, for lack of permission, descriptors or memory, or because of a
/// device error. This does not mean that its bytes are damaged.
struct Unread {
  std::string file;  ///< relative to the store
  Status why;
};

/// Returns whether an error that occurred while reading stored bytes proves that they are damaged
/// or gone. All other errors concern the act of reading.
inline bool ProvesDamage(const Status& status) {
  return status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
         status.code() == StatusCode::kUnsupported;
}

}  // namespace rhizome
