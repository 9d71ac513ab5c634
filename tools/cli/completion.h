#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rhizome {

/// Return a completion script for a shell, from the verbs and options of `root`. It completes
/// verbs, options, the values of options with a fixed choice, and otherwise file names.
std::string BashCompletion(const CLI::App& root);
std::string ZshCompletion(const CLI::App& root);

/// Returns the manual page of a verb, or of the program if `name` has one word, in roff. `name` is
/// the full name, such as "rhizome plan train".
std::string ManPage(const CLI::App& verb, const std::string& name);

}  // namespace rhizome
