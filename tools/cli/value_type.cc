#include "tools/cli/value_type.h"

#include <algorithm>

#include "tools/cli/flag_values.h"

namespace rhizome {
namespace {

/// Returns the type name of an option without the range or set that CLI11 appends for a check:
/// "N:UINT in [1 - 16]", "use|ignore:{use,ignore}".
std::string BareTypeName(const CLI::Option& option) {
  std::string type = option.get_type_name();
  for (const char* const check : {":UINT in [", ":INT in [", ":FLOAT in [", ":{"})
    type = type.substr(0, type.find(check));
  const bool optional = type.size() > 2 && type.front() == '[' && type.back() == ']';
  return optional ? type.substr(1, type.size() - 2) : type;
}

/// Returns whether a part of a type name is a word to be given as it is, such as "auto".
bool IsChoice(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

std::string_view KindOf(std::string_view name) {
  if (name == "N" || name == "P" || name == "INT" || name == "UINT") return "integer";
  if (name == "X" || name == "S" || name == "FLOAT") return "number";
  if (name == "SIZE") return "size";
  if (name == "F" || name.starts_with("F.") || name == "DIR") return "path";
  return "text";
}

}  // namespace

ValueType ValueTypeOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {.kind = "flag"};
  ValueType type{.kind = "choice"};
  for (const std::string& part : SplitList(BareTypeName(option), '|')) {
    if (IsChoice(part)) {
      type.choices.push_back(part);
      continue;
    }
    type.list = part.ends_with(",...");
    type.kind = KindOf(type.list ? part.substr(0, part.find(',')) : part);
  }
  // A default that is no choice shows that a choice can be refined: the codec "blosc-lz4:5".
  const std::string fallback = option.get_default_str();
  const auto& choices = type.choices;
  const bool refined =
      !fallback.empty() && std::find(choices.begin(), choices.end(), fallback) == choices.end();
  if (type.kind == "choice" && refined) type.kind = "text";
  return type;
}

}  // namespace rhizome
