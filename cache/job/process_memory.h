#pragma once

#include <sys/types.h>

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// Memory of this process, or of another one, as the kernel counts it (/proc/self/status), in
/// bytes; 0 where it does not say.
std::uint64_t ResidentBytes();      ///< VmRSS: now
std::uint64_t PeakResidentBytes();  ///< VmHWM: the most there ever was
std::uint64_t PeakResidentBytesOf(pid_t process);

/// What this process has taken since it had `base_bytes`.
std::uint64_t HeldBytes(std::uint64_t base_bytes);

}  // namespace rhizome
