#include "tools/import/model_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "gnn/options/train_fields.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/help.h"

namespace rhizome {
namespace {

/// A model option, and the names of the models that have it.
struct Owned {
  ModelOption option;
  std::vector<std::string> models;
};

std::vector<Owned> OptionsOf(const std::vector<ModelInfo>& models) {
  std::vector<Owned> all;
  for (const ModelInfo& model : models) {
    for (const ModelOption& option : model.options) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const Owned& owned) {
        return owned.option.name == option.name;
      });
      if (known == all.end()) {
        all.push_back({option, {model.name}});
      } else {
        known->models.push_back(model.name);
      }
    }
  }
  return all;
}

void AddFlag(CLI::App& verb, const Owned& owned, std::size_t models, ModelSpec& spec) {
  const ModelOption& option = owned.option;
  const std::string flag = "--" + option.name;
  const std::string help = owned.models.size() == models
                               ? option.help
                               : fmt::format("{} ({})", option.help, fmt::join(owned.models, ", "));
  const auto keep = [&spec, name = option.name](const std::string& value) {
    spec.options[name] = value;
  };
  if (option.type == ModelOption::Type::kFlag) {
    verb.add_flag_callback(
            flag, [keep] { keep("true"); }, help)
        ->group(kModelOptions);
    return;
  }
  const std::string type = option.type == ModelOption::Type::kChoice
                               ? fmt::format("{}", fmt::join(option.choices, "|"))
                           : option.type == ModelOption::Type::kInteger ? "N"
                                                                        : "X";
  verb.add_option_function<std::string>(flag, keep, help)->type_name(type)->group(kModelOptions);
}

}  // namespace

void AddModelFlags(OptionFlags& flags, CLI::App& verb, ModelSpec& spec, Session& session) {
  EachModelField(flags, spec);
  session.late_options[&verb] = [&verb, &spec] {
    const Result<const GnnEntry*> gnn = LoadGnnLibrary();
    if (!gnn) {
      // The verb will report the error. Until then, accept unknown options: reporting a model's
      // options as unknown would hide the cause.
      verb.allow_extras();
      return;
    }
    std::vector<ModelInfo> models = (*gnn)->Models();
    std::erase_if(models, [](const ModelInfo& model) { return !model.network; });
    for (const Owned& owned : OptionsOf(models)) AddFlag(verb, owned, models.size(), spec);
  };
}

}  // namespace rhizome
