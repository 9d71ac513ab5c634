#include "tools/cli/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "cache/job/process_memory.h"
#include "index/partition/partitioner.h"
#include "storage/base/escaped_text.h"
#include "storage/io/files.h"
#include "tools/cli/flag_names.h"

// Helpers shared by all verbs: exit codes, output, options, opening a store, and common fields of
// answers.

namespace rhizome {

int ExitCode(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kAlreadyExists:
      return 1;
    case StatusCode::kNotFound:
    case StatusCode::kPermissionDenied:
    case StatusCode::kIoError:
      return 2;
    case StatusCode::kCorruption:
      return 3;
    case StatusCode::kBusy:
      return 4;
    case StatusCode::kOutOfSpace:
    case StatusCode::kOutOfMemory:
      return 5;
    case StatusCode::kUnsupported:
      return 6;
    case StatusCode::kInterrupted:
      return 130;
  }
  return 2;
}

Status PrintOut(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return Status::Ok();
  }
  return Status::FromErrno(errno, "writing to standard output");
}

void Tell(std::string_view kind, std::string text) {
  fmt::print(stderr, "{}: {}\n", kind, EscapedText(std::move(text)));
}

std::string SpellFor(const Session& session, std::string_view message) {
  return session.keep_fields ? SpellPaths(message) : SpellFlags(message, session.verb);
}

void Tell(const Session& session, std::string_view kind, std::string_view text) {
  if (session.printer) session.printer->Clear();
  std::string spelled = SpellFor(session, text);
  if (session.log)
    session.log->Write(kind == "warning" ? LogLevel::kWarning : LogLevel::kInfo, kind,
                       {{"text", spelled}});
  Tell(kind, std::move(spelled));
}

LogCallback LogOf(const Session& session) {
  if (!session.log) return {};
  return [log = session.log.get()](const LogLine& line) { log->Write(line); };
}

Status CheckOutputs(const Session& session, const std::string& out) {
  if (!session.json || out != "-") return Status::Ok();
  return Status::InvalidArgument("--json and --out - would both write to standard output");
}

Status ProbeOutput(const std::string& path) {
  if (path.empty()) return Status::Ok();
  const auto probe = OutputFile::Create(path);
  return probe ? Status::Ok() : probe.error();
}

void AddLateOptions(const CLI::App& verb, Session& session) {
  const auto late = session.late_options.extract(&verb);
  if (!late.empty()) late.mapped()();
}

void AddCommonFlags(CLI::App& verb, Session& session) {
  verb.add_flag("--json", session.json, "Print one JSON object on stdout");
  verb.add_flag("--keep-fields", session.keep_fields, "Name options by their fields in messages")
      ->group("");
  verb.add_option_function<std::string>(
          "--progress",
          [&session](const std::string& given) {
            if (given == "bar") session.progress = ProgressStyle::kBar;
            if (given == "plain") session.progress = ProgressStyle::kPlain;
            if (given == "json") session.progress = ProgressStyle::kJson;
            if (given == "none") session.progress = ProgressStyle::kNone;
            if (!session.progress) {
              throw CLI::ValidationError("--progress",
                                         "'" + given + "' is not one of bar|plain|json|none");
            }
          },
          "Style of progress on stderr; default: a bar on a terminal, else none")
      ->type_name("bar|plain|json|none");
  verb.add_option("--log", session.log_path,
                  "Append lines with times to a file: the command, phases, notes, errors, and the "
                  "exit code")
      ->type_name("F");
}

CLI::Option* AddMetricsFile(CLI::App& verb, std::string& path) {
  return verb.add_option("--metrics", path, "Write the metrics of this run, as Prometheus text")
      ->type_name("F");
}

Status WriteText(const std::string& path, std::string_view text) {
  if (path.empty()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(text))));
  return out.Commit();
}

Result<std::shared_ptr<Metrics>> MetricsFor(const std::string& path) {
  RHIZOME_RETURN_IF_ERROR(ProbeOutput(path));
  return path.empty() ? nullptr : std::make_shared<Metrics>();
}

Status WriteMetrics(const std::string& path, const Metrics* metrics, const std::string& store) {
  if (path.empty()) return Status::Ok();
  const std::pair<std::string, std::string> label{"store", store};
  const std::string text = MetricsText(metrics->Snapshot(), std::span(&label, 1));
  return WriteText(path, text);
}

namespace {

std::uint64_t SizeOrThrow(const std::string& name, const std::string& given) {
  const std::optional<std::uint64_t> bytes = ParseSize(given);
  if (!bytes) {
    throw CLI::ValidationError(name, "'" + given + "' is not a size such as 512M or 4G");
  }
  return *bytes;
}

}  // namespace

CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::uint64_t& bytes,
                     const std::string& description) {
  return verb
      .add_option_function<std::string>(
          name, [name, &bytes](const std::string& given) { bytes = SizeOrThrow(name, given); },
          description)
      ->type_name("SIZE");
}

CLI::Option* AddSize(CLI::App& verb, const std::string& name, std::optional<std::uint64_t>& bytes,
                     const std::string& description) {
  return verb
      .add_option_function<std::string>(
          name, [name, &bytes](const std::string& given) { bytes = SizeOrThrow(name, given); },
          description)
      ->type_name("SIZE");
}

CLI::Option* AddFanouts(CLI::App& verb, std::vector<std::int64_t>& fanouts,
                        const std::string& description) {
  return verb
      .add_option_function<std::string>(
          "--fanout",
          [&fanouts](const std::string& given) {
            auto parsed = ParseFanouts(given);
            if (!parsed) {
              throw CLI::ValidationError("--fanout",
                                         "'" + given + "' is not a list such as 10,10 or all,10");
            }
            fanouts = *std::move(parsed);
          },
          description)
      ->type_name("N,N,...|all");
}

CLI::Option* AddThreads(CLI::App& verb, std::uint32_t& threads) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  threads = static_cast<std::uint32_t>(std::min(std::max(processors, 1L), 256L));
  return verb.add_option("--threads", threads, "Number of threads; default: all processors")
      ->check(CLI::Range(1U, 1024U))
      ->type_name("N");
}

CLI::Option* AddWait(CLI::App& verb, double& seconds) {
  return verb
      .add_option("--wait", seconds,
                  "Maximum time to wait while another process has the store open for writing; "
                  "default: fail at once")
      ->check(CLI::NonNegativeNumber)
      ->type_name("S");
}

LockWait WaitFor(double seconds, const Session& session) {
  return {.seconds = seconds, .control = &session.control};
}

CLI::Option* AddScratch(CLI::App& verb, Path& scratch) {
  return verb
      .add_option_function<std::string>(
          "--scratch", [&scratch](const std::string& given) { scratch = given; },
          "Folder for scratch files, for example on another disk; default: STORE/scratch")
      ->type_name("DIR");
}

CLI::Option* AddList(CLI::App& verb, const std::string& name, std::vector<std::string>& list,
                     const std::string& description) {
  return verb
      .add_option_function<std::string>(
          name,
          [name, &list](const std::string& given) {
            list = SplitList(given, ',');
            if (std::find(list.begin(), list.end(), "") != list.end())
              throw CLI::ValidationError(name, "'" + given + "' contains an empty name");
          },
          description)
      ->type_name("NAME,...");
}

Result<OpenedGraph> OpenGraph(const std::string& path, Session& session, TopologyPlace place) {
  OpenedGraph opened;
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(opened.store, Store::Open(FileSystem::Posix(), path, Store::Mode::kRead,
                                                     {.log = LogOf(session)}));
  RHIZOME_ASSIGN_OR_RETURN(const auto live, Graph::Open(*opened.store, {.topology = place}));
  opened.graph = live->Snapshot();
  RHIZOME_RETURN_IF_ERROR(session.control.CheckCancelled());
  return opened;
}

std::uint64_t StartMemory(Session& session, std::uint64_t limit_bytes) {
  const std::uint64_t base_bytes = ResidentBytes();
  if (limit_bytes > 0 && session.printer) session.printer->ShowMemory(base_bytes, limit_bytes);
  return base_bytes;
}

Json IdJson(const ExternalId& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id)) return *number;
  return std::get<std::string>(id);
}

void AddGenerationFields(const GenerationInfo& info, Json& fields) {
  fields["vertices"] = info.vertices;
  fields["edges"] = info.edges;
  fields["vertex_types"] = info.vertex_types.size();
  fields["edge_types"] = info.edge_types.size();
  fields["undirected"] = info.symmetric;
  fields["weighted"] = info.weighted;
  fields["partitions"] = info.partitions;
  const auto kind = ParseStoredPartitioner(info.partitioner);
  fields["partitioner"] = kind ? std::string(PartitionerName(*kind)) : info.partitioner;
  fields["order"] = info.order;
  fields["replication_factor"] = info.replication_factor;
  fields["vertex_balance"] = info.vertex_balance;
  fields["edge_balance"] = info.edge_balance;
  fields["interior_share"] = info.interior_share;
}

}  // namespace rhizome
