#include "tools/verbs/update_run.h"

#include <fmt/format.h>

#include "storage/base/stopwatch.h"
#include "storage/io/files.h"
#include "tools/cli/text.h"
#include "tools/verbs/absent_deletions.h"

namespace rhizome {
namespace {

using BatchSubject = UpdateFormat::Subject;

// Number of lines between two checks for cancellation.
constexpr std::uint64_t kReportLines = 1024;

/// Reads an update file into batches and writes each batch to the graph when it is full. Checks the
/// marks of `changes` lines, and counts deletions that have no effect.
class Updater {
 public:
  Updater(const UpdateFlags& flags, Graph& graph, UpdateFile& file, const JobControl& control)
      : flags_(flags),
        graph_(graph),
        file_(file),
        control_(control),
        before_(graph.Snapshot()),
        marks_(*before_) {
    options_.sync = !flags.no_sync;
    options_.create_types = flags.create_types;
    options_.create_vertices = !flags.no_create_vertices;
    options_.place = [this](std::size_t operation) { return file_.PlaceOf(lines_[operation]); };
  }

  Status Run() {
    const Status status = ReadAll();
    if (status.ok() || batches_ == 0) return status;
    return status.WithContext(
        fmt::format("after {} of {}", Plural(applied_, "line"), Plural(batches_, "applied batch")));
  }

  Json Fields() const {
    return {{"applied", applied_},
            {"absent", absent_},
            {"vertices_added", vertices_added_},
            {"batches", batches_},
            {"commit", commit_ == 0 ? graph_.sequence() : commit_},
            {"synced", options_.sync}};
  }

 private:
  Status ReadAll() {
    while (true) {
      const bool full = flags_.batch_lines > 0 && pending_ == flags_.batch_lines;
      if (full) RHIZOME_RETURN_IF_ERROR(Write());
      if (pending_ % kReportLines == 0) RHIZOME_RETURN_IF_ERROR(Report());
      RHIZOME_ASSIGN_OR_RETURN(const bool more, file_.ReadLine(batch_));
      if (!more) break;
      if (file_.mark()) RHIZOME_RETURN_IF_ERROR(TakeMark(*file_.mark()));
      ++pending_;
      lines_.resize(batch_.size(), file_.line());
    }
    if (const Status whole = marks_.Finish(); !whole.ok()) return whole.WithContext(file_.Place());
    // Last check: after this, Ctrl-C no longer leaves the store unchanged.
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    return pending_ == 0 ? Status::Ok() : Write();
  }

  Status TakeMark(const ChangeMark& mark) {
    const Status fits = marks_.Take(mark);
    if (!fits.ok()) return fits.WithContext(file_.Place());
    options_.leader = marks_.reached();
    return Status::Ok();
  }

  Status Write() {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t absent,
                             CountAbsentDeletions(*graph_.Snapshot(), batch_));
    RHIZOME_ASSIGN_OR_RETURN(const WriteResult result, graph_.Write(batch_, options_));
    absent_ += absent;
    if (result.commit != 0) commit_ = result.commit;  // 0: the batch had no effect
    vertices_added_ += result.vertices_added;
    applied_ += pending_;
    ++batches_;
    pending_ = 0;
    batch_.Clear();
    lines_.clear();
    return Status::Ok();
  }

  Status Report() const {
    return control_.Report({.phase = "reading updates",
                            .done = file_.stream().consumed_bytes(),
                            .total = file_.stream().total_bytes()});
  }

  const UpdateFlags& flags_;
  Graph& graph_;
  UpdateFile& file_;
  const JobControl& control_;
  const std::shared_ptr<const GraphSnapshot> before_;
  ChangeMarks marks_;
  WriteOptions options_;
  WriteBatch batch_;
  std::vector<std::uint64_t> lines_;  // line number, indexed by operation of the batch
  std::uint64_t pending_ = 0;         // lines in the batch
  std::uint64_t applied_ = 0;
  std::uint64_t absent_ = 0;  // deletions without an effect
  std::uint64_t vertices_added_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t commit_ = 0;
};

std::string DescribeUpdateRun(const Json& f) {
  const std::uint64_t added = f["vertices_added"];
  const std::uint64_t absent = f["absent"];
  const std::string nothing =
      absent == 0 ? ""
                  : fmt::format(", {} without effect, because what {} named does not exist",
                                WithCommas(absent), absent == 1 ? "it" : "they");
  return fmt::format(
      "applied {}{} in {} ({}{}), commit {}{}\n", Plural(f["applied"], "line"), nothing,
      HumanSeconds(f["seconds"]),
      f["batches"] == 1 ? "1 batch" : fmt::format("{} batches", f["batches"].dump()),
      added == 0 ? "" : fmt::format(", {} new {}", added, added == 1 ? "vertex" : "vertices"),
      f["commit"].dump(), f["synced"].get<bool>() ? "" : ", not synced to the disk yet");
}

Result<UpdateFormat> FormatOf(const UpdateFlags& flags) {
  UpdateFormat format = flags.format;
  if (flags.vertices && !format.array.empty())
    return Fail(Status::InvalidArgument("--vertices and --array cannot be used together"));
  if (flags.vertices) format.subject = BatchSubject::kVertices;
  if (!format.array.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckName("array", format.array));
    format.subject = BatchSubject::kRows;
  }
  if (flags.upsert) format.verb = UpdateVerb::kUpsert;
  if (flags.upsert && format.subject != BatchSubject::kEdges)
    return Fail(Status::InvalidArgument("--upsert is for edges; put always replaces a row"));
  return format;
}

}  // namespace

void AddUpdateFlags(CLI::App& verb, UpdateFlags& flags) {
  verb.add_option("STORE", flags.store, "The store's folder")->required();
  verb.add_option("F", flags.file,
                  "Input file: TSV, CSV or JSON lines; plain, .gz or .zst; - for standard input")
      ->required();
  AddChoice<UpdateFormat::Form>(verb, "--format", flags.format.form,
                                {{"auto", UpdateFormat::Form::kAuto},
                                 {"tsv", UpdateFormat::Form::kTsv},
                                 {"csv", UpdateFormat::Form::kCsv},
                                 {"json", UpdateFormat::Form::kJson}},
                                "Format of the file; auto: by its name");
  verb.add_flag("--vertices", flags.vertices, "Lines are vertices, with --columns id, type, -");
  AddList(verb, "--columns", flags.format.columns,
          "Columns of edges: src, dst, type, weight, edge attributes; - skips a column")
      ->default_str("src,dst");
  verb.add_flag("--header", flags.format.header, "Skip the first line");
  verb.add_option("--batch", flags.batch_lines,
                  "Commit every N lines; default: all lines in one atomic batch")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->type_name("N");
  verb.add_flag("--no-sync", flags.no_sync,
                "Do not wait for the disk: a power failure may lose the last batches, but never a "
                "part of one");
  AddMetricsFile(verb, flags.metrics);
}

Result<Answer> RunUpdate(const UpdateFlags& flags, Session& session) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const UpdateFormat format, FormatOf(flags));
  FileSystem& fs = FileSystem::Posix();
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(const auto metrics, MetricsFor(flags.metrics));
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(fs, flags.store, Store::Mode::kWrite, {.metrics = metrics}));
  // Updates need ids and types but no neighbour lists: leave the lists on disk.
  RHIZOME_ASSIGN_OR_RETURN(const auto graph,
                           Graph::Open(*store, {.topology = TopologyPlace::kDirect}));
  RHIZOME_ASSIGN_OR_RETURN(const auto file,
                           UpdateFile::Open(fs, flags.file, format, graph->Snapshot()));
  Updater updater(flags, *graph, *file, session.control);
  RHIZOME_RETURN_IF_ERROR(updater.Run());
  Json fields = updater.Fields();
  const double seconds = watch.seconds();
  fields["seconds"] = seconds;
  RHIZOME_RETURN_IF_ERROR(WriteMetrics(flags.metrics, store->metrics(), flags.store));
  return Answer{std::move(fields), DescribeUpdateRun, {}};
}

}  // namespace rhizome
