#include "tools/cli/help.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

namespace rhizome {
namespace {

constexpr const char* kUsual = "Usual options";
constexpr const char* kMore = "More options";
constexpr const char* kSettings = "Settings, each given as --set NAME=VALUE";

bool HasGroup(const CLI::App& verb, const std::string& group) {
  return !verb.get_options([&](const CLI::Option* o) { return o->get_group() == group; }).empty();
}

/// CLI11's format, except that a help which is not complete ends with how to see the rest.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_groups(const CLI::App* app, CLI::AppFormatMode mode) const override {
    if (!HasGroup(*app, kUsual)) return CLI::Formatter::make_groups(app, mode);
    std::string text = Group(*app, kUsual);
    if (mode == CLI::AppFormatMode::Normal) {
      const std::size_t more = app->get_options([](const CLI::Option* option) {
                                    return option->nonpositional() && option->get_group() == kMore;
                                  })
                                   .size();
      return text + fmt::format("\n--help-all shows {} more options{}.\n", more,
                                HasGroup(*app, kSettings) ? ", and the settings of --set" : "");
    }
    for (const char* group : {kMore, kSettings}) text += "\n" + Group(*app, group);
    return text;
  }

 private:
  std::string Group(const CLI::App& app, const std::string& group) const {
    const auto options = app.get_options([&](const CLI::Option* option) {
      return option->nonpositional() && option->get_group() == group;
    });
    return options.empty() ? std::string() : make_group(group, false, options);
  }
};

void AppendSettings(const CLI::App& verb, const std::string& name, std::string& text) {
  const auto settings = verb.get_options([](const CLI::Option* o) { return IsSetting(*o); });
  if (!settings.empty()) text += fmt::format("{}:\n", name);
  for (const CLI::Option* option : settings) {
    text += verb.get_formatter()->make_option(option, false);
  }
  if (!settings.empty()) text += "\n";
  for (const CLI::App* below : verb.get_subcommands({}))
    AppendSettings(*below, name + " " + below->get_name(), text);
}

}  // namespace

void ArrangeOptions(CLI::App& verb, std::initializer_list<const char*> usual,
                    std::initializer_list<const char*> more) {
  for (CLI::Option* option : verb.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) option->group(kSettings);
  }
  const auto move = [&](std::string_view name, const char* group) {
    CLI::Option* const option = verb.get_option_no_throw(fmt::format("--{}", name));
    if (option != nullptr) option->group(group);
  };
  for (const char* name : usual) move(name, kUsual);
  for (const char* name : more) move(name, kMore);
  for (const char* name : {"help", "help-all", "json", "progress"}) move(name, kMore);
  if (!HasGroup(verb, kSettings)) return;
  // Its values are replaced before the parser sees them (settings.h).
  verb.add_option("--set", "Change an expert setting; `rhizome help settings` lists them")
      ->type_name("NAME=VALUE")
      ->group(kMore);
}

bool IsSetting(const CLI::Option& option) { return option.get_group() == kSettings; }

void UseHelpFormat(CLI::App& root) {
  root.formatter(std::make_shared<HelpFormatter>());
  root.get_formatter()->column_width(34);
  root.set_help_all_flag("--help-all", "Show all options");
}

std::string HelpOf(const CLI::App& verb, const std::string& name, bool all) {
  return verb.get_formatter()->make_help(
      &verb, name, all ? CLI::AppFormatMode::All : CLI::AppFormatMode::Normal);
}

std::string ListSettings(const CLI::App& root) {
  std::string text;
  AppendSettings(root, root.get_name(), text);
  return text;
}

}  // namespace rhizome
