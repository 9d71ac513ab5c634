#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flag_values.h"
#include "json.h"
#include "progress.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// The answer of a verb: the fields that `--json` prints (docs/DESIGN.md, section 10), and the
/// function that describes them to a person. Names in the fields may come from an untrusted store:
/// `--json` prints them as they are, `describe` gets them by ShownText. `describe` is null if
/// standard output holds the result itself (--out -); then nothing is described. A verdict that is
/// not OK is printed after them and sets the exit code (`verify` has an answer and still fails).
struct Answer {
  Json fields;
  std::string (*describe)(const Json& fields) = nullptr;
  Status verdict;
};

/// One run of the binary: the verb that was parsed, and how it reports progress.
/// Threads: one, except for `control`, which the signal handler cancels.
struct Session {
  bool json = false;
  std::optional<ProgressStyle> progress;  ///< absent: a bar on a terminal, else nothing
  std::unique_ptr<ProgressPrinter> printer;
  JobControl control{[this](const JobControl::Progress& report) {
    if (printer) printer->Show(report);
  }};
  std::function<Result<Answer>()> run;  ///< set by the verb that was parsed
};

/// Returns the exit code for the outcome of a verb; docs/DESIGN.md, section 10, lists them.
int ExitCode(StatusCode code);

/// Writes to standard output; a full disk or a closed pipe is an error.
Status PrintOut(std::string_view text);

/// Prints "<kind>: <text>" on standard error, where `kind` is a word such as "note", and `text` may
/// quote names (ShownText).
void Tell(std::string_view kind, std::string text);

/// Checks the outputs of a verb. Errors: kInvalidArgument, --json although `out` is standard output
/// ("-").
Status CheckOutputs(const Session& session, const std::string& out);

/// Checks that a file can be written to `path`, before the work whose result goes there. An empty
/// path is fine. Errors: those of OutputFile::Create.
Status ProbeOutput(const std::string& path);

/// Writes `text` to a file, which appears whole or not at all. Nothing is written to an empty path.
/// Errors: those of OutputFile.
Status WriteText(const std::string& path, std::string_view text);

/// Cancels `control` at the first SIGINT or SIGTERM, and ends the process at the second.
void InstallSignalHandlers(JobControl& control);

/// Adds --help, --json and --progress.
void AddCommonFlags(CLI::App& verb, Session& session);

/// Adds verb `name`, which fills `flags` and calls `run`. `example` is printed at the end of its
/// --help; the tests run it.
template <typename Flags>
CLI::App* AddVerb(CLI::App& root, Session& session, const std::string& name,
                  const std::string& description, const std::string& example,
                  std::shared_ptr<Flags> flags,
                  Result<Answer> (*run)(const Flags& flags, Session& session)) {
  CLI::App* verb = root.add_subcommand(name, description);
  verb->footer("Example: " + example);
  AddCommonFlags(*verb, session);
  verb->callback([flags, run, &session] {
    session.run = [flags, run, &session] { return run(*flags, session); };
  });
  return verb;
}

// --- Kinds of flags that CLI11 does not know. A wrong value throws CLI::ValidationError: exit code
// 1.

CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::uint64_t& bytes,
                     const std::string& description);
CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::optional<std::uint64_t>& bytes,
                     const std::string& description);
CLI::Option* AddFanouts(CLI::App& verb, std::vector<std::int64_t>& fanouts,
                        const std::string& description);
/// Adds --scratch DIR (see StoreOptions).
CLI::Option* AddScratch(CLI::App& verb, Path& scratch);
CLI::Option* AddThreads(CLI::App& verb, std::uint32_t& threads);
CLI::Option* AddList(CLI::App& verb, const std::string& name, std::vector<std::string>& list,
                     const std::string& description);

/// Adds a flag whose value is one of `choices`; the first must be the default of `value`.
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
Result<OpenedGraph> OpenGraph(const std::string& path, Session& session);

/// Adds --metrics F, the file that WriteMetrics writes. Metrics are counted only if the flag is
/// given. Errors of MetricsFor: those of ProbeOutput.
CLI::Option* AddMetricsFile(CLI::App& verb, std::string& path);
Result<std::shared_ptr<Metrics>> MetricsFor(const std::string& path);

/// Writes metrics as Prometheus text, with the label store="<store>". Does nothing if `path` is
/// empty.
Status WriteMetrics(const std::string& path, const Metrics* metrics, const std::string& store);

/// Returns an external id as JSON: a number for an integer id, else a string.
Json IdJson(const ExternalId& id);

/// Adds the fields that ingest, import and info have in common.
void AddGenerationFields(const GenerationInfo& info, Json& fields);

/// Returns the resident memory of the bare process, in bytes, and tells the user if there is a
/// limit (0: none).
std::uint64_t StartMemory(Session& session, std::uint64_t limit_bytes);

}  // namespace rhizome
