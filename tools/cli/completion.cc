// Completion scripts and manual pages. All are made from the same table, the options that the verbs
// have registered: (1) Walk visits each verb with its full name; (2) the functions of a format turn
// its options into text of that format.

#include "tools/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "tools/cli/help.h"
#include "tools/cli/value_type.h"

namespace rhizome {
namespace {

using Visit = std::function<void(const CLI::App& verb, const std::string& path)>;

/// Visits `verb` and all verbs below it. `path` is the name below the program: "", "plan train".
void Walk(const CLI::App& verb, const std::string& path, const Visit& visit) {
  visit(verb, path);
  for (const CLI::App* below : verb.get_subcommands({}))
    Walk(*below, path.empty() ? below->get_name() : path + " " + below->get_name(), visit);
}

/// Returns the options that are given by their name and that help shows: no settings.
std::vector<const CLI::Option*> NamedOptions(const CLI::App& verb) {
  return verb.get_options([](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty() && !IsSetting(*option) &&
           !option->get_lnames().empty();
  });
}

std::string Name(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// Returns the choices of an option, separated by blanks; empty if it has none, or accepts files.
std::string Choices(const CLI::Option& option) {
  const ValueType type = ValueTypeOf(option);
  return type.kind == "path" ? "" : fmt::format("{}", fmt::join(type.choices, " "));
}

std::string WordsOf(const CLI::App& verb) {
  std::string words;
  for (const CLI::App* below : verb.get_subcommands({})) words += " " + below->get_name();
  for (const CLI::Option* option : NamedOptions(verb)) words += " " + Name(*option);
  return words.empty() ? words : words.substr(1);
}

/// Returns `text` with each character of `special` preceded by a backslash.
std::string Escaped(std::string_view text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Returns one specification of zsh's _arguments, in single quotes.
std::string ZshArgument(const CLI::Option& option) {
  std::string about = Escaped(option.get_description(), "[]:\\");
  std::string value;
  if (TakesValue(option)) {
    const std::string choices = Choices(option);
    value = choices.empty() ? ":value:_files" : fmt::format(":value:({})", choices);
  }
  std::string text = fmt::format("{}[{}]{}", Name(option), about, value);
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// Returns a line of roff in which nothing is taken for a request or an escape.
std::string Roff(std::string_view text) {
  const std::string line = Escaped(text, "\\-");
  return line.starts_with('.') || line.starts_with('\'') ? "\\&" + line : line;
}

void AppendOptions(const CLI::App& verb, bool settings, std::string& page) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->nonpositional() && IsSetting(*option) != settings) continue;
    if (!option->nonpositional() && settings) continue;
    std::string name = option->get_name(!option->nonpositional());
    if (settings) name = "--set " + option->get_lnames().front() + "=VALUE";
    const std::string type =
        TakesValue(*option) && option->nonpositional() && !settings ? option->get_type_name() : "";
    page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", Roff(name), type.empty() ? "" : " " + Roff(type),
                        Roff(option->get_description()));
  }
}

}  // namespace

std::string BashCompletion(const CLI::App& root) {
  std::string paths, words, values;
  Walk(root, "", [&](const CLI::App& verb, const std::string& path) {
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + fmt::format("\" {}\"", path);
    words +=
        fmt::format("    \"{}\") words=\"{}\" ;;\n", path.empty() ? "" : " " + path, WordsOf(verb));
    for (const CLI::Option* option : NamedOptions(verb)) {
      const std::string choices = Choices(*option);
      if (!choices.empty())
        values += fmt::format("    \" {} {}\") words=\"{}\" ;;\n", path, Name(*option), choices);
    }
  });
  return fmt::format(R"(# Completion of bash for rhizome: source this file, or install it as
# share/bash-completion/completions/rhizome.
_rhizome() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} path="" words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path="$path ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{}  esac
  case "$path $before" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [[ ${{#COMPREPLY[@]}} -eq 0 ]]; then COMPREPLY=($(compgen -f -- "$current")); fi
}}
complete -o filenames -F _rhizome rhizome
)",
                     paths, words, values);
}

std::string ZshCompletion(const CLI::App& root) {
  std::string cases;
  Walk(root, "", [&](const CLI::App& verb, const std::string& path) {
    std::string arguments;
    for (const CLI::Option* option : NamedOptions(verb))
      arguments += " \\\n        " + ZshArgument(*option);
    std::string below;
    for (const CLI::App* child : verb.get_subcommands({})) below += " " + child->get_name();
    if (!below.empty()) arguments += fmt::format(" \\\n        '1:verb:({})'", below.substr(1));
    cases += fmt::format("    ('{}')\n      _arguments{} \\\n        '*:file:_files' ;;\n", path,
                         arguments);
  });
  std::string paths;
  Walk(root, "", [&](const CLI::App&, const std::string& path) {
    if (!path.empty()) paths += (paths.empty() ? "" : "|") + fmt::format("'{}'", path);
  });
  return fmt::format(R"(#compdef rhizome
# Completion of zsh for rhizome: install it as share/zsh/site-functions/_rhizome.
_rhizome() {{
  local verb="" next i
  for ((i = 2; i < CURRENT; ++i)); do
    next="${{verb:+$verb }}${{words[i]}}"
    case "$next" in
      ({}) verb="$next" ;;
    esac
  done
  case "$verb" in
{}  esac
}}
_rhizome "$@"
)",
                     paths, cases);
}

std::string ManPage(const CLI::App& verb, const std::string& name) {
  std::string title = name;
  std::replace(title.begin(), title.end(), ' ', '-');
  std::string page = fmt::format(".TH \"{}\" 1\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n\\fB{}\\fR",
                                 title, Roff(title), Roff(verb.get_description()), Roff(name));
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->nonpositional()) page += " " + Roff(option->get_name(true));
  }
  page += " [OPTIONS]\n.SH OPTIONS\n";
  AppendOptions(verb, false, page);
  std::string settings;
  AppendOptions(verb, true, settings);
  if (!settings.empty()) page += ".SH SETTINGS\n" + settings;
  const auto below = verb.get_subcommands({});
  if (!below.empty()) page += ".SH VERBS\n";
  for (const CLI::App* child : below)
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", Roff(child->get_name()),
                        Roff(child->get_description()));
  if (!verb.get_footer().empty())
    page += fmt::format(
        ".SH EXAMPLE\n{}\n",
        Roff(verb.get_footer().substr(verb.get_footer().starts_with("Example: ") ? 9 : 0)));
  return page;
}

}  // namespace rhizome
