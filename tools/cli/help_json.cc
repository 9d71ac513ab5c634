#include "tools/cli/help_json.h"

#include "tools/cli/help.h"
#include "tools/cli/value_type.h"

namespace rhizome {
namespace {

/// Returns the fields that arguments and options share.
Json ValueJson(const std::string& name, const CLI::Option& option) {
  const ValueType type = ValueTypeOf(option);
  const std::string fallback = option.get_default_str();
  return {{"name", name},
          {"kind", type.kind},
          {"list", type.list},
          {"choices", type.choices},
          {"default", fallback.empty() ? Json() : Json(fallback)},
          {"required", option.get_required()},
          {"help", option.get_description()}};
}

}  // namespace

Json HelpJson(const CLI::App& verb, const std::string& name) {
  Json verbs = Json::array();
  for (const CLI::App* below : verb.get_subcommands({}))
    verbs.push_back({{"name", below->get_name()}, {"description", below->get_description()}});
  Json arguments = Json::array();
  Json options = Json::array();
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty() || IsOfAllVerbs(*option)) continue;
    if (!option->nonpositional()) {
      arguments.push_back(ValueJson(option->get_name(true), *option));
      continue;
    }
    options.push_back(ValueJson(option->get_lnames().front(), *option));
    options.back()["section"] = SectionOf(*option);
  }
  return {{"verb", name},
          {"description", verb.get_description()},
          {"verbs", std::move(verbs)},
          {"arguments", std::move(arguments)},
          {"options", std::move(options)}};
}

}  // namespace rhizome
