#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/cli/json.h"

namespace rhizome {

/// Returns the help of a verb for programs: its description, the verbs below it, its arguments and
/// its options with the kinds of their values (ValueType), defaults, sections (SectionOf) and help.
/// Options that all verbs have are left out. docs/DESIGN.md, section 10, lists the fields.
Json HelpJson(const CLI::App& verb, const std::string& name);

}  // namespace rhizome
