#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {

/// A fio job: measures the rate of the device itself, for comparison.
struct FioJob {
  Path folder;                     ///< folder of the files
  std::vector<std::string> files;  ///< names in `folder`
  std::uint64_t block_bytes = 4096;
  std::uint32_t depth = 64;
  bool uring = true;  ///< false: threads that call pread, one per unit of depth
  bool direct = true;
  /// reads the files sequentially and repeats; false: at random positions
  bool sequential = false;
  double seconds = 2;
  std::uint64_t seed = 1;
};

/// Runs `fio` and returns the number of reads per second. `scratch` is a folder for its report.
/// Errors: kUnsupported, fio is not installed; kIoError, it failed (the message has its exit code,
/// and the path of its output).
Result<double> RunFio(const FioJob& job, const Path& scratch);

}  // namespace rhizome
