#pragma once

#include <cstdint>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

/// One thing that is wrong with a store, as bytes that were read (or names that are not there)
/// prove.
struct Damage {
  std::string file;  ///< relative to the store
  std::uint64_t offset_bytes = 0;
  std::string what;

  /// Only an earlier version of the current generation's arrays names the file: what is read from
  /// now on is whole. It goes with the next run that writes, once nobody reads that version.
  bool earlier = false;
};

/// A file that could not be looked at. This says nothing of its bytes: no permission, no descriptor
/// or memory left, an error of the device.
struct Unread {
  std::string file;  ///< relative to the store
  Status why;
};

/// Does this error of a look at stored bytes prove that they are not what was written, or are gone?
/// Every other error is one of the look.
inline bool ProvesDamage(const Status& status) {
  return status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
         status.code() == StatusCode::kUnsupported;
}

}  // namespace rhizome
