#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// The values that an option accepts, derived from the type name that its help shows: "N", "SIZE",
/// "mean|max", "N|auto", "NAME,...".
struct ValueType {
  /// "flag": no value; "integer", "number", "size", "path" or "text"; "choice": nothing but
  /// `choices`.
  std::string_view kind;
  /// Whether several values are accepted, joined by commas.
  bool list = false;
  /// Words that are accepted in addition to values of `kind`.
  std::vector<std::string> choices = {};
};

ValueType ValueTypeOf(const CLI::Option& option);

}  // namespace rhizome
