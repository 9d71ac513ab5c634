#include "tools/verbs/update_run.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "storage/base/stopwatch.h"
#include "storage/io/files.h"
#include "tools/cli/text.h"
#include "tools/verbs/absent_deletions.h"
#include "tools/verbs/schema_file.h"
#include "tools/verbs/schema_of_batch.h"

namespace rhizome {
namespace {

using BatchSubject = UpdateFormat::Subject;

// Number of lines between two checks for cancellation.
constexpr std::uint64_t kReportLines = 1024;

/// Reads an update file into batches and writes each batch to the graph when it is full. Checks the
/// marks of `changes` lines, and counts deletions that have no effect.
///
/// Call ReadFirst, which needs no graph; then Attach and WriteAll.
class Updater {
 public:
  Updater(const UpdateFlags& flags, UpdateFile& file, const JobControl& control)
      : flags_(flags), file_(file), control_(control) {
    options_.sync = !flags.no_sync;
    options_.create_types = flags.create_types;
    options_.create_vertices = !flags.no_create_vertices;
    options_.place = [this](std::size_t operation) { return file_.PlaceOf(lines_[operation]); };
  }

  /// Reads the first batch.
  Status ReadFirst() { return Fill(); }
  const WriteBatch& batch() const { return batch_; }

  /// Sets the graph to which the batches are written; it must outlive this object.
  void Attach(Graph& graph) {
    graph_ = &graph;
    before_ = graph.Snapshot();
    marks_.emplace(*before_);
  }

  /// Writes the batch that was read, and all others.
  Status WriteAll() {
    const Status status = Continue();
    if (status.ok() || batches_ == 0) return status;
    return status.WithContext(
        fmt::format("after {} of {}", Plural(applied_, "line"), Plural(batches_, "applied batch")));
  }

  Json Fields() const {
    return {{"applied", applied_},
            {"absent", absent_},
            {"vertices_added", vertices_added_},
            {"batches", batches_},
            {"commit", commit_ == 0 ? graph_->sequence() : commit_},
            {"synced", options_.sync}};
  }

 private:
  /// Reads lines into the batch until it is full or the file ends.
  Status Fill() {
    while (flags_.batch_lines == 0 || pending_ < flags_.batch_lines) {
      if (pending_ % kReportLines == 0) RHIZOME_RETURN_IF_ERROR(Report());
      RHIZOME_ASSIGN_OR_RETURN(const bool more, file_.ReadLine(batch_));
      ended_ = !more;
      if (ended_) break;
      if (file_.mark()) marks_read_.emplace_back(*file_.mark(), file_.Place());
      ++pending_;
      lines_.resize(batch_.size(), file_.line());
    }
    return Status::Ok();
  }

  Status Continue() {
    while (true) {
      RHIZOME_RETURN_IF_ERROR(TakeMarks());
      if (ended_) break;
      RHIZOME_RETURN_IF_ERROR(Write());
      RHIZOME_RETURN_IF_ERROR(Fill());
    }
    if (const Status whole = marks_->Finish(); !whole.ok()) return whole.WithContext(file_.Place());
    // Last check: after this, Ctrl-C no longer leaves the store unchanged.
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    return pending_ == 0 ? Status::Ok() : Write();
  }

  /// Checks the marks of the lines of the batch.
  Status TakeMarks() {
    for (const auto& [mark, place] : marks_read_) {
      const Status fits = marks_->Take(mark);
      if (!fits.ok()) return fits.WithContext(place);
      options_.leader = marks_->reached();
    }
    marks_read_.clear();
    return Status::Ok();
  }

  Status Write() {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t absent,
                             CountAbsentDeletions(*graph_->Snapshot(), batch_));
    RHIZOME_ASSIGN_OR_RETURN(const WriteResult result, graph_->Write(batch_, options_));
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
  UpdateFile& file_;
  const JobControl& control_;
  Graph* graph_ = nullptr;
  std::shared_ptr<const GraphSnapshot> before_;
  std::optional<ChangeMarks> marks_;
  std::vector<std::pair<ChangeMark, std::string>> marks_read_;  // of the batch, with their places
  WriteOptions options_;
  WriteBatch batch_;
  std::vector<std::uint64_t> lines_;  // line number, indexed by operation of the batch
  std::uint64_t pending_ = 0;         // lines in the batch
  bool ended_ = false;                // the file has no more lines
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

/// Opens the store for writing; null if it is absent and is to be created.
Result<std::unique_ptr<Graph>> OpenIfThere(const UpdateFlags& flags, const StoreOptions& options) {
  if (!flags.schema.empty() && !flags.create)
    return Fail(Status::InvalidArgument("--schema is for --create"));
  // Updates need ids and types but no neighbour lists: leave the lists on disk.
  auto graph = Graph::Open(
      flags.store,
      {.mode = Mode::kWrite, .graph = {.topology = TopologyPlace::kDirect}, .store = options});
  if (!graph && graph.error().code() == StatusCode::kNotFound && flags.create) return nullptr;
  return graph;
}

/// Creates the store with the schema that was given, before the file is read. Checks first that the
/// file exists, so that a mistyped name leaves no store.
Result<std::unique_ptr<Graph>> CreateWithSchema(const UpdateFlags& flags,
                                                const StoreOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const GraphSchema schema, ReadSchema(flags.schema));
  if (flags.file != "-") {
    const auto info = FileSystem::Posix().Stat(flags.file);
    if (!info) return Fail(info.error());
  }
  return Graph::Create(flags.store, schema, options);
}

}  // namespace

void AddUpdateFlags(CLI::App& verb, UpdateFlags& flags) {
  verb.add_option("STORE", flags.store, "The store's folder")->required();
  verb.add_option("F", flags.file,
                  "Input file: TSV, CSV or JSON lines, plain or compressed; - for standard input")
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
  AddWait(verb, flags.wait);
  AddMetricsFile(verb, flags.metrics);
}

// Applies the updates in these steps:
//   1. opens the store; creates it if it is absent and has a schema;
//   2. opens the file, and reads the first batch;
//   3. creates the store if it is still absent, with a schema that the batch fits;
//   4. writes the batch and all others.
Result<Answer> RunUpdate(const UpdateFlags& flags, Session& session) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const UpdateFormat format, FormatOf(flags));
  RHIZOME_RETURN_IF_ERROR(session.control.Report({.phase = "opening the store"}));
  RHIZOME_ASSIGN_OR_RETURN(const auto metrics, MetricsFor(flags.metrics));
  const StoreOptions options{
      .wait = WaitFor(flags.wait, session), .log = LogOf(session), .metrics = metrics};
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<Graph> graph, OpenIfThere(flags, options));
  const bool absent = graph == nullptr;
  if (absent && !flags.schema.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(graph, CreateWithSchema(flags, options));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto file,
                           UpdateFile::Open(FileSystem::Posix(), flags.file, format,
                                            graph == nullptr ? nullptr : graph->Snapshot()));
  Updater updater(flags, *file, session.control);
  // Lines are read with the schema of the store, which therefore exists before the first one.
  const Status first = updater.ReadFirst();
  if (!first.ok() && absent && graph != nullptr)
    return Fail(first.WithContext(
        fmt::format("'{}' was created, and is empty: correct the file and run the command again",
                    flags.store)));
  RHIZOME_RETURN_IF_ERROR(first);
  if (graph == nullptr) {
    const GraphSchema schema = SchemaOfBatch(updater.batch(), file->gives_weights());
    Tell(session, "note",
         fmt::format("creating '{}' with {}; --schema chooses otherwise", flags.store,
                     DescribeSchema(schema)));
    RHIZOME_ASSIGN_OR_RETURN(graph, Graph::Create(flags.store, schema, options));
  }
  updater.Attach(*graph);
  RHIZOME_RETURN_IF_ERROR(updater.WriteAll());
  Json fields = updater.Fields();
  fields["created"] = absent;
  fields["seconds"] = watch.seconds();
  RHIZOME_RETURN_IF_ERROR(WriteMetrics(flags.metrics, metrics.get(), flags.store));
  return Answer{std::move(fields), DescribeUpdateRun, {}};
}

}  // namespace rhizome
