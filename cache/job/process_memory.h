#pragma once

#include <sys/types.h>

#include <cstdint>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Memory of this process or another one as reported by the kernel (/proc/<pid>/status), in bytes;
/// 0 if the kernel does not report it.
std::uint64_t ResidentBytes();      ///< VmRSS: currently resident
std::uint64_t PeakResidentBytes();  ///< VmHWM: peak of VmRSS so far
std::uint64_t PeakResidentBytesOf(pid_t process);

/// Returns the number of bytes by which this process has grown beyond `base_bytes`.
std::uint64_t HeldBytes(std::uint64_t base_bytes);

}  // namespace rhizome
