#pragma once

#include "tools/cli/cli.h"

namespace rhizome {

/// Name and verbs of a binary.
struct Program {
  const char* name;  ///< as users type it: "rhizome bench" for the binary that this verb runs
  const char* description;
  const char* footer;
  void (*add_verbs)(CLI::App& root, Session& session);
};

/// Parses the arguments, runs the verb and prints its answer. Returns the exit code of the process.
/// Catches all exceptions.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace rhizome
