#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// Reads that fio shall do: the device's own rate, for comparison.
struct FioJob {
  Path folder;                     ///< of the files
  std::vector<std::string> files;  ///< names in `folder`
  std::uint64_t block_bytes = 4096;
  std::uint32_t depth = 64;
  bool uring = true;  ///< else threads that pread, one for each unit of depth
  bool direct = true;
  bool sequential = false;  ///< from front to back, again and again; else at random
  double seconds = 2;
  std::uint64_t seed = 1;
};

/// Runs `fio` and returns its reads a second. `scratch` is a folder for its report.
/// Errors: kUnsupported, fio is not installed; kIoError, it failed (its exit code, and where to
/// look).
Result<double> RunFio(const FioJob& job, const Path& scratch);

}  // namespace rhizome
