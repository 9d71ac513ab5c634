#include "program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "rhizome/storage/exceptions.h"
#include "rhizome/storage/shown_text.h"

namespace rhizome {
namespace {

constexpr const char* kVersionLine = "rhizome 0.1.0";

/// Returns the fields of an answer as a person may see them: all strings, and the keys of objects,
/// by ShownText. Recurses only as deep as a verb nests its fields.
Json Shown(const Json& fields) {
  if (fields.is_string()) return ShownText(fields.get<std::string>());
  if (!fields.is_structured()) return fields;
  Json shown = fields.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : fields.items()) {
    if (fields.is_array())
      shown.push_back(Shown(value));
    else
      shown[ShownText(key)] = Shown(value);
  }
  return shown;
}

std::string Dump(const Json& fields) {
  return fields.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int Explain(const Status& status) {
  std::fprintf(stderr, "rhizome: %s\n", status.ToString().c_str());
  return ExitCode(status.code());
}

/// Runs the verb that was parsed and prints its answer or its error.
int RunVerb(Session& session) {
  const ProgressStyle automatic =
      isatty(STDERR_FILENO) ? ProgressStyle::kBar : ProgressStyle::kNone;
  session.printer = std::make_unique<ProgressPrinter>(session.progress.value_or(automatic), stderr);
  InstallSignalHandlers(session.control);
  const Result<Answer> answer = Guarded(session.run);
  session.printer->Clear();
  if (!answer) {
    const Status& status = answer.error();
    if (session.json) {
      const Json error = {{"code", StatusCodeName(status.code())}, {"message", status.message()}};
      if (const Status printed = PrintOut(Dump({{"error", error}})); !printed.ok()) {
        return Explain(printed);
      }
    }
    return Explain(status);
  }
  if (answer->describe != nullptr) {
    const Status printed =
        PrintOut(session.json ? Dump(answer->fields) : answer->describe(Shown(answer->fields)));
    if (!printed.ok()) return Explain(printed);
  }
  return answer->verdict.ok() ? 0 : Explain(answer->verdict);
}

/// Prints what is wrong with the arguments and where to find help; returns the exit code.
int WrongUsage(const CLI::App& root, const CLI::ParseError& error) {
  std::string about = root.get_name();
  for (const CLI::App* at = &root; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    about += " " + at->get_name();
  }
  std::fprintf(stderr, "%s: %s\nTry '%s --help'.\n", about.c_str(), ShownText(error.what()).c_str(),
               about.c_str());
  return 1;
}

int ParseAndRun(const Program& program, int argc, char** argv) {
  CLI::App root{program.description, program.name};
  root.set_version_flag("--version", kVersionLine, "Show the version");
  root.require_subcommand(1);
  root.footer(program.footer);
  root.get_formatter()->column_width(34);
  Session session;
  program.add_verbs(root, session);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return WrongUsage(root, error);
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
