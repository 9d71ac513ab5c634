#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace rhizome {

/// Returns a message of the library with its option fields (storage/options/spell_fields.h) spelled
/// as options of the command line: `memory_bytes` as --memory, `directions=both` as --directions
/// both. An option that `verb` has among its settings is spelled as it is given there: --set
/// direction=both. `verb` may be null.
std::string SpellFlags(std::string_view message, const CLI::App* verb);

/// Returns a message in which options that it names by their path, `learning.schedule.factor`, are
/// named by their flag as a keyword, `decay_factor`. Other fields remain, for the front end that
/// asked for them.
std::string SpellPaths(std::string_view message);

}  // namespace rhizome
