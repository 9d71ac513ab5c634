#include "tools/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rhizome {
namespace {

constexpr const char* kUsual = "Usual options";
constexpr const char* kMore = "More options";
constexpr const char* kSettings = "Settings, each given as --set NAME=VALUE";

using Options = std::vector<const CLI::Option*>;

bool Has(std::initializer_list<std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Options OptionsIn(const CLI::App& verb, std::string_view group) {
  return verb.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
}

/// CLI11's format, except for verbs whose options were arranged: a help that is not complete has
/// the usual options, and ends with how to see the rest.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub || OptionsIn(*app, kUsual).empty())
      return CLI::Formatter::make_help(app, std::move(name), mode);
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           Arranged(*app, mode) + "\n" + make_footer(app);
  }

  /// A setting is listed as it is given: without dashes.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return IsSetting(*option) ? option->get_lnames().front()
                              : CLI::Formatter::make_option_name(option, is_positional);
  }

 private:
  std::string Arranged(const CLI::App& app, CLI::AppFormatMode mode) const {
    const Options more = OptionsIn(app, kMore);
    const Options settings = OptionsIn(app, kSettings);
    std::string text = make_group(kUsual, false, OptionsIn(app, kUsual));
    if (mode == CLI::AppFormatMode::Normal)
      return text + fmt::format("\n--help-all shows {} more options{}.\n", more.size(),
                                settings.empty() ? "" : ", and the settings of --set");
    text += "\n" + make_group(kMore, false, more);
    return settings.empty() ? text : text + "\n" + make_group(kSettings, false, settings);
  }
};

std::shared_ptr<HelpFormatter> MakeFormatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  return formatter;
}

void AppendSettings(const CLI::App& verb, const std::string& name, std::string& text) {
  const Options settings = OptionsIn(verb, kSettings);
  if (!settings.empty()) text += MakeFormatter()->make_group(name, false, settings);
  for (const CLI::App* below : verb.get_subcommands({}))
    AppendSettings(*below, name + " " + below->get_name(), text);
}

}  // namespace

void ArrangeOptions(CLI::App& verb, std::initializer_list<std::string_view> usual,
                    std::initializer_list<std::string_view> more) {
  for (CLI::Option* option : verb.get_options()) {
    if (!option->nonpositional() || option->get_group().empty()) continue;
    const std::string& name = option->get_lnames().front();
    option->group(Has(usual, name)                           ? kUsual
                  : Has(more, name) || IsOfAllVerbs(*option) ? kMore
                                                             : kSettings);
  }
  if (OptionsIn(verb, kSettings).empty()) return;
  // Its values are replaced before the parser sees them (settings.h).
  verb.add_option("--set", "Change an expert setting; `rhizome help settings` lists them")
      ->type_name("NAME=VALUE")
      ->group(kMore);
}

bool IsSetting(const CLI::Option& option) { return option.get_group() == kSettings; }

bool IsOfAllVerbs(const CLI::Option& option) {
  return option.nonpositional() &&
         Has({"help", "help-all", "json", "progress", "log", "set"}, option.get_lnames().front());
}

std::string_view SectionOf(const CLI::Option& option) {
  const std::string& group = option.get_group();
  if (group == kMore) return "more";
  if (group == kModelOptions) return "models";
  return group == kSettings ? "setting" : "usual";
}

void UseHelpFormat(CLI::App& root) {
  root.formatter(MakeFormatter());
  root.set_help_all_flag("--help-all", "Show all options");
}

std::string HelpOf(const CLI::App& verb, const std::string& name, bool all) {
  return verb.get_formatter()->make_help(
      &verb, name, all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal);
}

std::string ListSettings(const CLI::App& root) {
  std::string text;
  AppendSettings(root, root.get_name(), text);
  return text.substr(std::min<std::size_t>(1, text.size()));  // each group begins with a blank line
}

}  // namespace rhizome
