#include "tools/cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "tools/cli/cli.h"
#include "tools/cli/help.h"

namespace rhizome {
namespace {

/// Returns the edit distance of two texts, in which swapping two neighbouring characters is one
/// edit (optimal string alignment).
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

/// Returns the closest of `names`; empty if none is within a third of the word's length.
std::string Closest(std::string_view word, const std::vector<std::string>& names) {
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::string closest;
  for (const std::string& name : names) {
    const std::size_t distance = Distance(word, name);
    if (distance > limit || (distance == limit && !closest.empty())) continue;
    limit = distance;
    closest = name;
  }
  return closest;
}

std::vector<std::string> OptionNames(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    const auto& longs = option->get_lnames();
    names.insert(names.end(), longs.begin(), longs.end());
  }
  return names;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names,
                       std::string_view dashes) {
  const std::string closest = Closest(word, names);
  return closest.empty() ? std::string() : fmt::format("; did you mean {}{}?", dashes, closest);
}

/// Returns "--NAME=VALUE" for the value of a --set.
std::string Expanded(const CLI::App& verb, std::string_view given) {
  const std::size_t equals = given.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == given.size())
    throw CLI::ValidationError("--set", fmt::format("'{}' is not NAME=VALUE", given));
  const std::string name(given.substr(0, equals));
  const CLI::Option* const option = verb.get_option_no_throw("--" + name);
  // A verb that allows unknown options could not load the options of models, and will report why.
  if (name == "set" || (option == nullptr && !verb.get_allow_extras()))
    throw CLI::ValidationError(
        "--set",
        fmt::format("there is no option or setting '{}'{}; `rhizome help settings` lists them",
                    name, DidYouMean(name, OptionNames(verb), "")));
  return fmt::format("--{}", given);
}

/// Notes that an option has become a setting. It still works, so that older scripts do.
void NoteSetting(const CLI::App& verb, std::string_view argument) {
  if (!argument.starts_with("--") || argument.size() == 2) return;
  const std::string name(argument.substr(0, argument.find('=')));
  const CLI::Option* const option = verb.get_option_no_throw(name);
  if (option != nullptr && IsSetting(*option))
    Tell("note", fmt::format("{} is a setting now: --set {}=VALUE", name, name.substr(2)));
}

}  // namespace

const CLI::App* FindVerb(const CLI::App& verb, std::string_view name) {
  for (const CLI::App* below : verb.get_subcommands({})) {
    if (below->get_name() == name) return below;
  }
  return nullptr;
}

const CLI::App& VerbOf(const CLI::App& root, std::span<char* const> arguments, std::string& name) {
  const CLI::App* at = &root;
  for (const std::string_view argument : arguments) {
    const CLI::App* const below = FindVerb(*at, argument);
    if (below == nullptr) break;
    at = below;
    name += " " + at->get_name();
  }
  return *at;
}

std::vector<std::string> ExpandSettings(const CLI::App& root, std::span<char* const> arguments) {
  std::string name;
  const CLI::App& verb = VerbOf(root, arguments, name);
  std::vector<std::string> expanded;
  if (verb.get_option_no_throw("--set") == nullptr) return {arguments.begin(), arguments.end()};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") {
      expanded.insert(expanded.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                      arguments.end());
      break;
    }
    if (argument.starts_with("--set=")) {
      expanded.push_back(Expanded(verb, argument.substr(6)));
    } else if (argument == "--set") {
      if (++i == arguments.size())
        throw CLI::ValidationError("--set", "NAME=VALUE is missing after it");
      expanded.push_back(Expanded(verb, arguments[i]));
    } else {
      NoteSetting(verb, argument);
      expanded.emplace_back(argument);
    }
  }
  return expanded;
}

std::string Suggestion(const CLI::App& root, std::span<char* const> arguments) {
  std::string name;
  const CLI::App& verb = VerbOf(root, arguments, name);
  const auto depth = static_cast<std::size_t>(std::count(name.begin(), name.end(), ' '));
  const auto rest = arguments.subspan(depth);
  const auto verbs = verb.get_subcommands({});
  if (!verbs.empty() && !rest.empty() && rest[0][0] != '-') {
    std::vector<std::string> names;
    for (const CLI::App* below : verbs) names.push_back(below->get_name());
    return DidYouMean(rest[0], names, "");
  }
  for (const std::string_view argument : rest) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const std::string_view option = argument.substr(0, argument.find('='));
    if (verb.get_option_no_throw(std::string(option)) == nullptr)
      return DidYouMean(option.substr(2), OptionNames(verb), "--");
  }
  return {};
}

}  // namespace rhizome
