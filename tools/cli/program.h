#pragma once

#include "cli.h"

namespace rhizome {

/// What a binary of several verbs is called, and how it comes to them.
struct Program {
  const char* name;  ///< as users type it, with `bench` where it is reached by that verb
  const char* description;
  const char* footer;
  void (*add_verbs)(CLI::App& root, Session& session);
};

/// Parses the arguments, runs the verb and prints its answer. Returns the exit code of the process;
/// no exception leaves it.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace rhizome
