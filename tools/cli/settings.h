#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Returns the verb of this name directly below `verb`; null if there is none.
const CLI::App* FindVerb(const CLI::App& verb, std::string_view name);

/// Returns the verb that the arguments begin with, such as `plan train`; `root` if there is none.
/// Appends the name of each to `name`, after a blank.
const CLI::App& VerbOf(const CLI::App& root, std::span<char* const> arguments, std::string& name);

/// Returns the arguments with each `--set NAME=VALUE` replaced by `--NAME=VALUE`. NAME may be any
/// option of the verb, so that programs need not know which are settings. A setting that is given
/// as --NAME works, with a note on standard error.
/// Throws: CLI::ValidationError, the verb has no such option, or `--set` lacks its value.
std::vector<std::string> ExpandSettings(const CLI::App& root, std::span<char* const> arguments);

/// Returns "; did you mean --epochs?" for the first argument that is no option of its verb, or
/// "; did you mean train?" for an unknown verb; empty if nothing is close to it.
std::string Suggestion(const CLI::App& root, std::span<char* const> arguments);

}  // namespace rhizome
