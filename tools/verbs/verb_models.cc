#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/cli/gnn_library.h"
#include "tools/cli/text.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct ModelsFlags {};

Json OptionJson(const ModelOption& option) {
  Json json = {{"name", option.name}, {"default", option.fallback}, {"help", option.help}};
  switch (option.type) {
    case ModelOption::Type::kFlag:
      json["type"] = "flag";
      break;
    case ModelOption::Type::kInteger:
    case ModelOption::Type::kNumber:
      json["type"] = option.type == ModelOption::Type::kNumber ? "number" : "integer";
      json["least"] = option.least;
      json["most"] = option.most;
      break;
    case ModelOption::Type::kChoice:
      json["type"] = "choice";
      json["choices"] = option.choices;
      break;
  }
  return json;
}

/// Returns the placeholder for the value of an option, as in the help of a flag.
std::string ValuesOf(const Json& option) {
  const std::string type = option["type"];
  if (type == "choice")
    return fmt::format("{}", fmt::join(option["choices"].get<std::vector<std::string>>(), "|"));
  if (type == "flag") return "";
  return type == "integer" ? "N" : "X";
}

/// Returns the option called `name`, or null if the model has none.
const Json* FindOption(const Json& model, const std::string& name) {
  for (const Json& option : model["options"])
    if (option["name"] == name) return &option;
  return nullptr;
}

/// Returns a table of the options for which `wanted` returns true.
template <typename Wanted>
std::string OptionTable(const Json& model, const Wanted& wanted) {
  TextTable table;
  for (const Json& option : model["options"]) {
    if (!wanted(option)) continue;
    table.Add({fmt::format("  --{} {}", option["name"].get<std::string>(), ValuesOf(option)),
               option["help"].get<std::string>(),
               fmt::format("default: {}", option["default"].get<std::string>())});
  }
  return table.ToString();
}

/// Describes each model with the options that only it has or for which it has its own default, then
/// the options common to all networks.
std::string DescribeModels(const Json& f) {
  const Json& models = f["models"];
  const auto everywhere = [&](const Json& option) {
    return std::all_of(models.begin(), models.end(), [&](const Json& model) {
      return !model["network"].get<bool>() || FindOption(model, option["name"]) != nullptr;
    });
  };
  const auto usual = [&](const Json& option) {
    return everywhere(option) && *FindOption(models.front(), option["name"]) == option;
  };
  std::string text;
  for (const Json& model : models) {
    text += fmt::format("{}: {}\n  {}\n", model["name"].get<std::string>(),
                        model["title"].get<std::string>(), model["source"].get<std::string>());
    if (!model["network"].get<bool>())
      text +=
          "  not a network: it needs no features, and has the options of links (docs/LINKS.md)\n";
    text += OptionTable(model, [&](const Json& option) { return !usual(option); }) + "\n";
  }
  return text + "all networks:\n" + OptionTable(models.front(), everywhere);
}

Result<Answer> RunModels(const ModelsFlags&, Session&) {
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  Json models = Json::array();
  for (const ModelInfo& model : gnn->Models()) {
    Json options = Json::array();
    for (const ModelOption& option : model.options) options.push_back(OptionJson(option));
    models.push_back({{"name", model.name},
                      {"title", model.title},
                      {"source", model.source},
                      {"typed", model.typed},
                      {"network", model.network},
                      {"options", std::move(options)}});
  }
  return Answer{{{"models", std::move(models)}}, DescribeModels, {}};
}

}  // namespace

void AddModelsVerb(CLI::App& root, Session& session) {
  AddVerb(root, session, "models", "List the kinds of models and their options", "rhizome models",
          std::make_shared<ModelsFlags>(), RunModels);
}

}  // namespace rhizome
