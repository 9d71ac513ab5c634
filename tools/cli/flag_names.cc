#include "tools/cli/flag_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "gnn/options/train_fields.h"
#include "storage/options/spell_fields.h"
#include "tools/cli/help.h"

namespace rhizome {
namespace {

/// A field whose flag is not the field with dashes for underscores.
struct FlagOfField {
  std::string_view field;
  std::string_view flag;
};

constexpr auto kFlags = std::to_array<FlagOfField>({
    {"device_memory_bytes", "device-memory"},
    {"dim", "array NAME=FILE:coo:DIM"},
    {"eval_fanouts", "eval-fanout"},
    {"fanouts", "fanout"},
    {"hold_out_relations", "hold-out"},
    {"learning_rate", "lr"},
    {"memory_bytes", "memory"},
    {"neighbor_cache_bytes", "neighbor-cache"},
    {"remote_bytes", "remote-memory"},
    {"test_edges", "test"},
    {"typed_fanouts", "typed-fanout"},
    {"wait_seconds", "wait"},
});

/// A field that has another flag, or another value, for one of its values.
struct FlagOfValue {
  std::string_view field;
  std::string_view value;
  std::string_view flag;
  std::string_view given;  ///< the value of the flag; empty: it takes none
};

constexpr auto kValues = std::to_array<FlagOfValue>({
    {"edge_weights", "false", "edge-weights", "ignore"},
    {"edge_weights", "true", "edge-weights", "use"},
    {"header", "false", "no-header", ""},
    {"test", "false", "no-test", ""},
    {"triplets", "false", "array", "NAME=FILE"},
    {"triplets", "true", "array", "NAME=FILE:coo:DIM"},
});

/// A flag without dashes, with the value that a message gives it.
struct Flag {
  std::string name;
  std::optional<std::string> value = {};
  bool is_boolean = false;
};

/// Returns whether `verb` has a flag of the same name as a field, such as --dim of `train`.
bool HasFlag(const CLI::App* verb, std::string_view field) {
  return verb != nullptr && verb->get_option_no_throw("--" + std::string(field)) != nullptr;
}

Flag FlagOf(const FieldMention& mention, const CLI::App* verb) {
  const std::string_view field = mention.field.name;
  for (const FlagOfValue& known : kValues) {
    if (known.field != field || known.value != mention.value) continue;
    if (known.given.empty()) return {.name = std::string(known.flag), .is_boolean = true};
    return {.name = std::string(known.flag), .value = std::string(known.given)};
  }
  Flag flag{.name = std::string(field), .is_boolean = mention.field.is_boolean};
  const auto* const named = std::find_if(
      kFlags.begin(), kFlags.end(), [&](const FlagOfField& known) { return known.field == field; });
  if (named != kFlags.end() && !HasFlag(verb, field)) flag.name = named->flag;
  std::replace(flag.name.begin(), flag.name.end(), '_', '-');
  if (mention.value) flag.value = *mention.value;
  return flag;
}

/// Returns the flag as it is given to `verb`: --NAME, --NAME VALUE or --set NAME=VALUE.
std::string Given(const Flag& flag, const CLI::App* verb) {
  const std::string option = "--" + flag.name;
  const CLI::Option* const found = verb == nullptr ? nullptr : verb->get_option_no_throw(option);
  if (found != nullptr && IsSetting(*found))
    return "--set " + flag.name + "=" + flag.value.value_or(flag.is_boolean ? "true" : "VALUE");
  if (!flag.value) return option;
  return option + (flag.is_boolean ? "=" : " ") + *flag.value;
}

bool IsPath(const FieldMention& mention) {
  return mention.field.name.find('.') != std::string_view::npos;
}

/// Returns the flag of a row of the table of training options; nullopt if there is no such row.
std::optional<std::string> FlagOfPath(std::string_view path) {
  static const auto flags = [] {
    std::map<std::string, std::string, std::less<>> map;
    EachTrainRow([&map](const Option& row, const auto&) {
      map.emplace(std::string(row.field), std::string(row.flag));
    });
    return map;
  }();
  const auto found = flags.find(path);
  if (found == flags.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::string SpellFlags(std::string_view message, const CLI::App* verb) {
  return SpellFields(message, [verb](const FieldMention& mention) -> std::optional<std::string> {
    if (!IsPath(mention)) return Given(FlagOf(mention, verb), verb);
    const std::optional<std::string> flag = FlagOfPath(mention.field.name);
    if (!flag) return std::nullopt;
    return Given({.name = *flag}, verb);
  });
}

std::string SpellPaths(std::string_view message) {
  return SpellFields(message, [](const FieldMention& mention) -> std::optional<std::string> {
    std::optional<std::string> flag =
        IsPath(mention) ? FlagOfPath(mention.field.name) : std::nullopt;
    if (!flag) return std::nullopt;
    std::replace(flag->begin(), flag->end(), '-', '_');
    return "`" + *flag + "`";
  });
}

}  // namespace rhizome
