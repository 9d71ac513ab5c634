#pragma once

#include <nlohmann/json.hpp>
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

/// Exit code of a child that SIGKILL ended.
inline constexpr int kKilledChild = 128 + 9;

/// Runs a program that prints a JSON object, such as a verb with --json, and returns the object.
/// `scratch`: folder for its output. `may_be_killed`: a killed child is no error, and the result is
/// an empty object. Errors: of RunChild; kIoError, the program failed, with its output.
Result<nlohmann::ordered_json> RunForJson(const std::vector<std::string>& arguments,
                                          const std::string& name, const Path& scratch,
                                          bool may_be_killed = false);

}  // namespace rhizome
