#pragma once

#include <cstdint>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

/// One defect of a store, proven by bytes that were read or by a file that is missing.
struct Damage {
  std::string file;                ///< relative to the store
  std::uint64_t offset_bytes = 0;  ///< from the start of the file
  std::string what;                ///< the defect in words

  /// True when only an earlier version of the current generation's arrays names the file, so that
  /// the current version is whole. The next writer removes the file once nobody reads that version.
  bool earlier = false;
};

/// A file that could not be read, for want of permission, descriptors or memory, or by an error of
/// the device. This says nothing about its bytes.
struct Unread {
  std::string file;  ///< relative to the store
  Status why;
};

/// Returns whether an error of reading stored bytes proves that they are damaged or gone. Any other
/// error is one of reading.
inline bool ProvesDamage(const Status& status) {
  return status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
         status.code() == StatusCode::kUnsupported;
}

}  // namespace rhizome
