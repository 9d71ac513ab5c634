#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "tools/cli/flag_values.h"
#include "tools/cli/json.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_log.h"

namespace rhizome {

/// The result of a verb: the fields that `--json` prints (docs/DESIGN.md, section 10) and the
/// function that formats them for people. Names in the fields may come from an untrusted store:
/// `--json` prints them unchanged; `describe` receives them escaped by EscapedText. `describe` is
/// null if the verb writes its result to standard output (--out -); no description is printed then.
/// If `verdict` is not OK, it is printed after the fields and sets the exit code. `verify`, for
/// example, returns an answer and still fails.
struct Answer {
  Json fields;
  std::string (*describe)(const Json& fields) = nullptr;
  Status verdict;
};

/// State of one run of the binary: the parsed verb and how progress is reported.
/// Threads: one, except for `control`, which the signal handler cancels.
struct Session {
  const CLI::App* verb = nullptr;  ///< that was parsed
  bool json = false;

  /// Whether messages keep the names of fields (SpellFor). The Python package sets it, and spells
  /// fields as its keywords.
  bool keep_fields = false;

  /// absent: a bar if stderr is a terminal, otherwise no progress output
  std::optional<ProgressStyle> progress;
  std::unique_ptr<ProgressPrinter> printer;
  std::vector<std::string> command;  ///< the words that were parsed, for the log
  std::string log_path;
  std::unique_ptr<RunLog> log;  ///< null without --log
  JobControl control{[this](const JobControl::Progress& report) {
    if (printer) printer->Show(report);
    if (log) log->Show(report);
  }};
  std::function<Result<Answer>()> run;  ///< set by the verb that was parsed
  /// Functions that add the options of a verb that a library defines. They are called when the verb
  /// is parsed or described, because loading a library takes time.
  std::map<const CLI::App*, std::function<void()>> late_options;
};

/// Adds the late options of `verb`, if it has any that were not added before.
void AddLateOptions(const CLI::App& verb, Session& session);

/// Returns the process exit code for the status of a verb; docs/DESIGN.md, section 10, lists them.
int ExitCode(StatusCode code);

/// Writes `text` to standard output and flushes it. A full disk or a closed pipe is an error.
Status PrintOut(std::string_view text);

/// Returns a message of the library with its option fields spelled as options of the verb that runs
/// (SpellFlags), or unchanged if the session keeps fields.
std::string SpellFor(const Session& session, std::string_view message);

/// Prints "<kind>: <text>" on standard error. `kind` is a word such as "note". `text` may quote
/// untrusted names: it is escaped by EscapedText.
void Tell(std::string_view kind, std::string text);

/// As above, also in the log, for a text that may name option fields of the library. Removes the
/// progress bar before.
void Tell(const Session& session, std::string_view kind, std::string_view text);

/// Returns the receiver of a store's log lines; empty if the run has no log.
/// Ownership: `session` must outlive it.
LogCallback LogOf(const Session& session);

/// Checks that --json and the output `out` do not both use standard output.
/// Errors: kInvalidArgument, --json was given and `out` is "-".
Status CheckOutputs(const Session& session, const std::string& out);

/// Checks that a file can be created at `path`, so that a verb fails before it computes a result
/// that it cannot write. An empty path is accepted.
/// Errors: as OutputFile::Create.
Status ProbeOutput(const std::string& path);

/// Writes `text` to a file atomically. Does nothing if `path` is empty.
/// Errors: as OutputFile.
Status WriteText(const std::string& path, std::string_view text);

/// Installs handlers for SIGINT and SIGTERM. The first signal cancels `control`; the second ends
/// the process.
void InstallSignalHandlers(JobControl& control);

/// Adds --json, --progress, --log, and --keep-fields, which no help shows.
void AddCommonFlags(CLI::App& verb, Session& session);

/// Adds the verb `name`, whose options fill `flags` and whose callback calls `run`. `example` is
/// printed at the end of the verb's --help; the tests run it.
template <typename Flags>
CLI::App* AddVerb(CLI::App& root, Session& session, const std::string& name,
                  const std::string& description, const std::string& example,
                  std::shared_ptr<Flags> flags,
                  Result<Answer> (*run)(const Flags& flags, Session& session)) {
  CLI::App* verb = root.add_subcommand(name, description);
  verb->footer("Example: " + example);
  AddCommonFlags(*verb, session);
  verb->callback([flags, run, verb, &session] {
    session.verb = verb;
    session.run = [flags, run, &session] { return run(*flags, session); };
  });
  return verb;
}

// --- Option types that CLI11 does not provide. An invalid value throws CLI::ValidationError, which
// ends the program with exit code 1.

CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::uint64_t& bytes,
                     const std::string& description);
CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::optional<std::uint64_t>& bytes,
                     const std::string& description);
CLI::Option* AddFanouts(CLI::App& verb, std::vector<std::int64_t>& fanouts,
                        const std::string& description);
/// Adds --scratch DIR (see StoreOptions).
CLI::Option* AddScratch(CLI::App& verb, Path& scratch);
/// Adds --wait S, the time to wait for the writer's lock of the store (LockWait).
CLI::Option* AddWait(CLI::App& verb, double& seconds);
/// Returns the wait for a store, which Ctrl-C ends.
LockWait WaitFor(double seconds, const Session& session);
CLI::Option* AddThreads(CLI::App& verb, std::uint32_t& threads);
CLI::Option* AddList(CLI::App& verb, const std::string& name, std::vector<std::string>& list,
                     const std::string& description);

/// Adds an option whose value is one of `choices`. The first choice must be the default of `value`.
template <typename T>
CLI::Option* AddChoice(CLI::App& verb, const std::string& name, T& value,
                       std::vector<std::pair<std::string, T>> choices,
                       const std::string& description) {
  std::string listed;
  for (const auto& [text, _] : choices) listed += (listed.empty() ? "" : "|") + text;
  const std::string fallback = choices.front().first;
  return verb
      .add_option_function<std::string>(
          name,
          [&value, name, listed, choices = std::move(choices)](const std::string& given) {
            for (const auto& [text, meant] : choices) {
              if (text != given) continue;
              value = meant;
              return;
            }
            throw CLI::ValidationError(name, "'" + given + "' is not one of " + listed);
          },
          description)
      ->type_name(listed)
      ->default_str(fallback);
}

// --- Shared by verbs that read a store.

/// A store and its graph, opened for reading. Members are destroyed in reverse order.
struct OpenedGraph {
  std::unique_ptr<Store> store;
  std::shared_ptr<const GraphSnapshot> graph;
};
/// Opens a store and its graph. Verbs that need few vertices choose TopologyPlace::kLazy.
/// Errors: as Store::Open and Graph::Open.
Result<OpenedGraph> OpenGraph(const std::string& path, Session& session,
                              TopologyPlace place = TopologyPlace::kMemory);

/// Adds --metrics F, the file that WriteMetrics writes. MetricsFor returns null if the option was
/// not given, so that no metrics are collected.
/// Errors: as ProbeOutput (MetricsFor).
CLI::Option* AddMetricsFile(CLI::App& verb, std::string& path);
Result<std::shared_ptr<Metrics>> MetricsFor(const std::string& path);

/// Writes metrics in the Prometheus text format, with the label store="<store>". Does nothing if
/// `path` is empty.
Status WriteMetrics(const std::string& path, const Metrics* metrics, const std::string& store);

/// Returns an external id as JSON: a number for an integer id, else a string.
Json IdJson(const ExternalId& id);

/// Adds the fields that the answers of ingest, import and info share.
void AddGenerationFields(const GenerationInfo& info, Json& fields);

/// Returns the resident memory of the process before the job starts, in bytes. Prints it for the
/// user if there is a memory limit (`limit_bytes` is not 0).
std::uint64_t StartMemory(Session& session, std::uint64_t limit_bytes);

}  // namespace rhizome
