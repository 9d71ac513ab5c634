#pragma once

#include <sys/types.h>

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The memory of this process or another one as the kernel counts it (/proc/<pid>/status), in
/// bytes, or 0 where the kernel does not say.
std::uint64_t ResidentBytes();      ///< VmRSS: resident now
std::uint64_t PeakResidentBytes();  ///< VmHWM: the largest VmRSS so far
std::uint64_t PeakResidentBytesOf(pid_t process);

/// Returns the bytes that this process has taken since it had `base_bytes`.
std::uint64_t HeldBytes(std::uint64_t base_bytes);

}  // namespace rhizome
