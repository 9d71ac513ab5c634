#pragma once

#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {

/// Files for the output of a child process; empty: discarded.
struct ChildOutput {
  Path standard;
  Path errors;
};

/// Runs a program, found on the PATH, to its end, without input. Returns its exit code, or 128 +
/// the signal that ended it. Errors: kUnsupported, there is no such program; kIoError.
Result<int> RunChild(const std::vector<std::string>& arguments, const ChildOutput& output = {});

}  // namespace rhizome
