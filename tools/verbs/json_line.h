#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/cli/json.h"

namespace rhizome {

/// Parses a line of JSON with an object. Beyond JSON it accepts NaN, Infinity and -Infinity as
/// numbers, as Python's json module writes them, and returns them as the strings of the same names
/// (tools/import/elements.h). Members that name things (`names`) must not have such numbers.
/// On failure it sets `reason`, in the form "is not ...", and the result is discarded.
Json ParseJsonLine(std::string_view text, std::initializer_list<std::string_view> names,
                   std::string& reason);

}  // namespace rhizome
