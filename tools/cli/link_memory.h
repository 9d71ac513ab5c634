#pragma once

#include <cstdint>

#include "rhizome/status.h"

namespace rhizome {

/// The division of --memory for a job over links.
struct LinkMemory {
  std::uint64_t limit_bytes = 0;  ///< 0: no limit
  std::uint64_t held_bytes = 0;   ///< what the process holds before the job, stacks and readers

  /// Measures what the process holds beyond `base_bytes`.
  static LinkMemory Of(std::uint64_t limit_bytes, std::uint64_t base_bytes);

  /// Returns the memory of the job; `without_limit` if there is no limit.
  std::uint64_t OfJob(std::uint64_t without_limit) const;

  /// Adds this division to an error about too little memory.
  Status Explain(const Status& status) const;
};

}  // namespace rhizome
