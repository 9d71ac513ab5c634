#include "tools/cli/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/escaped_text.h"
#include "storage/base/exceptions.h"
#include "tools/cli/help.h"
#include "tools/cli/settings.h"

namespace rhizome {
namespace {

constexpr const char* kVersionLine = "rhizome " RHIZOME_VERSION;

/// Returns a copy of an answer's fields that is safe to print on a terminal: all strings and all
/// keys are escaped by EscapedText. Recurses as deep as the verb nests its fields.
Json Shown(const Json& fields) {
  if (fields.is_string()) return EscapedText(fields.get<std::string>());
  if (!fields.is_structured()) return fields;
  Json shown = fields.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : fields.items()) {
    if (fields.is_array())
      shown.push_back(Shown(value));
    else
      shown[EscapedText(key)] = Shown(value);
  }
  return shown;
}

/// The fields of answers whose values are messages of the library, or lists of them.
constexpr std::string_view kMessageFields[] = {
    "balance_warning", "because",  "disk_problem", "full_because", "homes_warning", "how",
    "ignored",         "warnings", "what",         "why",          "why_not"};

/// Spells the messages of the library in the fields of an answer for `session`. Recurses as deep as
/// the verb nests its fields. `is_message`: `fields` is the value of one of kMessageFields.
void SpellMessages(const Session& session, Json& fields, bool is_message = false) {
  if (fields.is_string()) {
    if (is_message) fields = SpellFor(session, fields.get_ref<const std::string&>());
  } else if (fields.is_array()) {
    for (Json& value : fields) SpellMessages(session, value, is_message);
  } else if (fields.is_object()) {
    for (const auto& [key, value] : fields.items())
      SpellMessages(session, value,
                    std::find(std::begin(kMessageFields), std::end(kMessageFields), key) !=
                        std::end(kMessageFields));
  }
}

std::string Dump(const Json& fields) {
  return fields.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Explain(const Session& session, const Status& status) {
  if (session.log)
    session.log->Write(LogLevel::kError, "failed",
                       {{"code", std::string(StatusCodeName(status.code()))},
                        {"text", SpellFor(session, status.message())}});
  std::fprintf(stderr, "rhizome: %s\n", SpellFor(session, status.ToString()).c_str());
  return ExitCode(status.code());
}

/// Prints the error that ended a verb. Returns the exit code.
int PrintError(const Session& session, const Status& status) {
  if (session.json) {
    const Json error = {{"code", StatusCodeName(status.code())},
                        {"message", SpellFor(session, status.message())},
                        {"library_message", status.message()}};
    if (const Status printed = PrintOut(Dump({{"error", error}})); !printed.ok())
      return Explain(session, printed);
  }
  return Explain(session, status);
}

/// Runs the verb that was parsed and prints its answer or its error. Returns the exit code.
int RunAndPrint(Session& session) {
  Result<Answer> answer = Guarded(session.run);
  session.printer->Clear();
  if (!answer) return PrintError(session, answer.error());
  if (answer->describe != nullptr) {
    SpellMessages(session, answer->fields);
    const Status printed =
        PrintOut(session.json ? Dump(answer->fields) : answer->describe(Shown(answer->fields)));
    if (!printed.ok()) return Explain(session, printed);
  }
  return answer->verdict.ok() ? 0 : Explain(session, answer->verdict);
}

/// Returns the verb's name after the names of the verbs above it, such as "array add".
std::string NameOf(const CLI::App& verb) {
  const CLI::App* const above = verb.get_parent();
  const bool is_top = above == nullptr || above->get_parent() == nullptr;
  return is_top ? verb.get_name() : fmt::format("{} {}", NameOf(*above), verb.get_name());
}

/// Prepares progress, signals and the log, and runs the verb. Returns the exit code.
int RunVerb(Session& session) {
  const ProgressStyle automatic =
      isatty(STDERR_FILENO) ? ProgressStyle::kBar : ProgressStyle::kNone;
  session.printer = std::make_unique<ProgressPrinter>(session.progress.value_or(automatic), stderr);
  InstallSignalHandlers(session.control);
  if (session.log_path.empty()) return RunAndPrint(session);
  auto log =
      RunLog::Start(session.log_path, NameOf(*session.verb), RHIZOME_VERSION, session.command);
  if (!log) return PrintError(session, log.error());
  session.log = std::move(*log);
  const int code = RunAndPrint(session);
  session.log->End(code);
  return code;
}

/// Prints the usage error, a suggestion, and where to find help. Returns the exit code.
int WrongUsage(const CLI::App& root, std::span<char* const> arguments,
               const CLI::ParseError& error) {
  std::string about = root.get_name();
  VerbOf(root, arguments, about);
  std::fprintf(stderr, "%s: %s%s\nTry '%s --help'.\n", about.c_str(),
               EscapedText(error.what()).c_str(), EscapedText(Suggestion(root, arguments)).c_str(),
               about.c_str());
  return 1;
}

/// Rejects empty arguments and options that end in "=". No option and no operand may be empty;
/// otherwise "$NAME" in a script, with NAME unset, would be taken for an option that was not given.
/// Throws: CLI::ValidationError.
void RefuseEmptyValues(std::span<char* const> arguments) {
  const std::string why =
      "the value is empty; is a shell variable unset? Omit the option to use its default";
  std::string_view option;  // the preceding option, whose value the argument may be
  bool options_end = false;
  for (const std::string_view argument : arguments) {
    const bool is_option = !options_end && argument.starts_with("--") && argument.size() > 2;
    if (argument.empty() && option.empty())
      throw CLI::ValidationError("an argument is empty; is a shell variable unset?");
    if (argument.empty()) throw CLI::ValidationError(std::string(option), why);
    if (is_option && argument.find('=') == argument.size() - 1)
      throw CLI::ValidationError(std::string(argument.substr(0, argument.size() - 1)), why);
    options_end = options_end || argument == "--";
    option = is_option && argument.find('=') == argument.npos ? argument : std::string_view();
  }
}

/// Rejects values such as -1 of options that take a whole number: no such option has a sign, and a
/// parser of unsigned numbers would take -1 for the largest one. `verb` is the verb that is run.
/// Throws: CLI::ValidationError.
void RefuseNegativeNumbers(const CLI::App& verb, std::span<char* const> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    if (name == "--") return;
    std::string_view value = i + 1 < arguments.size() ? arguments[i + 1] : std::string_view();
    if (const std::size_t equals = name.find('='); equals != name.npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    if (!name.starts_with('-') || value.size() < 2 || value[0] != '-') continue;
    const CLI::Option* const option = verb.get_option_no_throw(std::string(name));
    if (option == nullptr || option->get_type_name() != "N") continue;
    if (std::isdigit(static_cast<unsigned char>(value[1])) == 0) continue;
    throw CLI::ValidationError(std::string(name),
                               "'" + std::string(value) + "' is negative; give 0 or more");
  }
}

int ParseAndRun(const Program& program, int argc, char** argv) {
  CLI::App root{program.description, program.name};
  UseHelpFormat(root);
  root.set_version_flag("--version", kVersionLine, "Show the version");
  root.require_subcommand(1);
  root.footer(program.footer);
  Session session;
  program.add_verbs(root, session);
  const auto arguments =
      std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  try {
    RefuseEmptyValues(arguments);
    std::string verb;
    const CLI::App& run = VerbOf(root, arguments, verb);
    AddLateOptions(run, session);
    RefuseNegativeNumbers(run, arguments);
    session.command = {program.name};
    session.command.insert(session.command.end(), arguments.begin(), arguments.end());
    std::vector<std::string> expanded = ExpandSettings(root, arguments);
    std::reverse(expanded.begin(), expanded.end());  // CLI11 reads them from the back
    root.parse(std::move(expanded));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return WrongUsage(root, arguments, error);
    root.exit(error);  // prints help or version
    return 0;
  }
  return session.run ? RunVerb(session) : 0;
}

}  // namespace

int RunProgram(const Program& program, int argc, char** argv) {
  try {
    return ParseAndRun(program, argc, argv);
  } catch (...) {
    const Status status = StatusOfException();
    std::fprintf(stderr, "rhizome: %s: %s\n", StatusCodeName(status.code()).data(),
                 status.message().c_str());
    return ExitCode(status.code());
  }
}

}  // namespace rhizome
