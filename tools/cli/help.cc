#include "tools/cli/help.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace rhizome {
namespace {

constexpr const char* kUsual = "Usual options";
constexpr const char* kMore = "More options";
constexpr const char* kSettings = "Settings, each given as --set NAME=VALUE";

bool HasGroup(const CLI::App& verb, const std::string& group) {
  return !verb.get_options([&](const CLI::Option* o) { return o->get_group() == group; }).empty();
}

/// CLI11's format, except for verbs whose options were arranged: a help that is not complete has
/// the usual options, and ends with how to see the rest.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub || !HasGroup(*app, kUsual))
      return CLI::Formatter::make_help(app, std::move(name), mode);
    return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
           Options(*app, mode) + "\n" + make_footer(app);
  }

  /// A setting is listed as it is given: without dashes.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return IsSetting(*option) ? option->get_lnames().front()
                              : CLI::Formatter::make_option_name(option, is_positional);
  }

 private:
  std::string Options(const CLI::App& app, CLI::AppFormatMode mode) const {
    std::string text = Group(app, kUsual);
    if (mode == CLI::AppFormatMode::All) {
      for (const char* group : {kMore, kSettings}) text += "\n" + Group(app, group);
      return text;
    }
    const auto more = app.get_options([](const CLI::Option* option) {
      return option->nonpositional() && option->get_group() == kMore;
    });
    return text + fmt::format("\n--help-all shows {} more options{}.\n", more.size(),
                              HasGroup(app, kSettings) ? ", and the settings of --set" : "");
  }

  std::string Group(const CLI::App& app, const std::string& group) const {
    const auto options = app.get_options([&](const CLI::Option* option) {
      return option->nonpositional() && option->get_group() == group;
    });
    return options.empty() ? std::string() : make_group(group, false, options);
  }
};

std::shared_ptr<HelpFormatter> MakeFormatter() {
  auto formatter = std::make_shared<HelpFormatter>();
  formatter->column_width(34);
  return formatter;
}

void AppendSettings(const CLI::App& verb, const std::string& name, std::string& text) {
  const auto settings = verb.get_options([](const CLI::Option* o) { return IsSetting(*o); });
  if (!settings.empty()) text += fmt::format("{}:\n", name);
  for (const CLI::Option* option : settings) {
    text += MakeFormatter()->make_option(option, false);
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
  return text;
}

}  // namespace rhizome
