#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rhizome {

/// The group of the options that models define (tools/import/model_flags.h).
inline constexpr const char* kModelOptions = "Options of models";

/// Divides the options of a verb, after all were added. --help shows the `usual` ones, and how to
/// see the rest; --help-all shows all. An option that is neither in `usual` nor in `more` is a
/// setting, for experts: it is given as `--set NAME=VALUE`, and only --help-all and `rhizome help
/// settings` list it. Names are without dashes. A name that the verb lacks is ignored: a build
/// without the GNN library has no options of models.
void ArrangeOptions(CLI::App& verb, std::initializer_list<std::string_view> usual,
                    std::initializer_list<std::string_view> more);

/// Returns whether `option` was put among the settings.
bool IsSetting(const CLI::Option& option);

/// Returns whether `option` is one that every verb has, such as --json, or the --set of a verb with
/// settings.
bool IsOfAllVerbs(const CLI::Option& option);

/// Returns the part of the help that lists `option`: "usual", "more", "models" or "setting". An
/// option of a verb whose options were not divided is usual.
std::string_view SectionOf(const CLI::Option& option);

/// Makes `root` and its verbs format their help as ArrangeOptions describes. Call it before verbs
/// are added: they inherit it.
void UseHelpFormat(CLI::App& root);

/// Returns the help of a verb. `all` includes options that are not usual, and settings.
std::string HelpOf(const CLI::App& verb, const std::string& name, bool all);

/// Returns a list of the settings of all verbs, or of those below `verb`, with their help.
std::string ListSettings(const CLI::App& root);

}  // namespace rhizome
