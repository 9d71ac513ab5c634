#pragma once

#include <sys/types.h>

#include <cstdint>

namespace rhizome {

/// The memory of this process or another one as the kernel counts it (/proc/<pid>/status), in
/// bytes, or 0 where the kernel does not say.
std::uint64_t ResidentBytes();      ///< VmRSS: resident now
std::uint64_t PeakResidentBytes();  ///< VmHWM: the largest VmRSS so far
std::uint64_t PeakResidentBytesOf(pid_t process);

}  // namespace rhizome
