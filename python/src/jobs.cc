#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "array_file.h"
#include "handle.h"
#include "job.h"
#include "rhizome/array_add.h"
#include "rhizome/array_change.h"
#include "rhizome/backup.h"
#include "rhizome/graph_types.h"
#include "rhizome/maintenance.h"
#include "rhizome/store_folder.h"
#include "rhizome/store_options.h"
#include "storage/array/array_versions.h"
#include "storage/io/outside.h"

namespace rhizome::python {
namespace {

// Bindings of jobs. Each function (1) converts its arguments; (2) runs the job by RunJob, which
// handles signals and progress; (3) converts the report to a dict.

nb::list NotesOf(const std::vector<RepairNote>& notes) {
  nb::list result;
  for (const RepairNote& note : notes) result.append(nb::make_tuple(note.what, Spelled(note.how)));
  return result;
}

/// Returns pairs of a file and its new path.
nb::list MovedFiles(const std::vector<RepairNote>& notes) {
  nb::list result;
  for (const RepairNote& note : notes) result.append(nb::make_tuple(note.what, note.how));
  return result;
}

nb::list DamageOf(const std::vector<Damage>& damaged) {
  nb::list result;
  for (const Damage& damage : damaged)
    result.append(nb::make_tuple(damage.file, damage.offset_bytes, Spelled(damage.what)));
  return result;
}

nb::dict CompactDict(const CompactResult& done) {
  nb::dict result;
  result["compacted"] = done.compacted;
  result["generation"] = done.generation;
  result["commits"] = done.commits;
  return result;
}

/// Adds weights, or attributes (name, dtype, number of values), to the edges.
nb::dict AlterNow(
    const PyGraph& graph, bool weighted,
    const std::vector<std::tuple<std::string, std::string, std::uint64_t,
                                 std::vector<std::pair<std::string, std::string>>>>& attributes,
    std::uint32_t threads, nb::object progress) {
  const auto service = graph.Live();
  SchemaChange change{.weighted = weighted, .edge_attributes = {}};
  for (const auto& [name, dtype, dim, meaning] : attributes)
    change.edge_attributes.push_back({.name = name,
                                      .dtype = ParseDataType(dtype).value_or(DataType::kInvalid),
                                      .dim = dim,
                                      .attributes = meaning});
  CompactOptions options;
  options.threads = threads;
  return CompactDict(RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
    return service->graph().Alter(change, options, control);
  }));
}

void CreateStore(const std::string& path, const std::string& schema_json) {
  const GraphSchema schema = Take(ParseSchema(schema_json));
  Take(Unlocked([&]() -> Result<bool> {
         RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Create(path, schema));
         return true;
       }),
       About::kStore);
}

std::tuple<std::vector<std::string>, std::vector<std::string>, std::uint64_t> CleanNow(
    const std::string& path, bool dry_run, const std::string& scratch) {
  const CleanReport report = Take(Unlocked([&] {
                                    return CleanScratch(FileSystem::Posix(), path,
                                                        {.dry_run = dry_run, .scratch = scratch});
                                  }),
                                  About::kStore);
  std::vector<std::string> removed, remaining;
  std::uint64_t bytes = 0;
  for (const JobScratchFolder& folder : report.folders) {
    const bool ended = folder.state == JobScratchFolder::State::kEnded;
    (ended ? removed : remaining).push_back(folder.path.string());
    if (ended) bytes += folder.bytes;
  }
  return {removed, remaining, bytes};
}

void BindSchemas(nb::module_& module) {
  module.def("alter", &AlterNow, nb::arg("graph"), nb::arg("weighted"), nb::arg("attributes"),
             nb::arg("threads"), nb::arg("progress").none(),
             nb::sig("def alter(graph: Graph, weighted: bool, attributes: list[tuple[str, str, "
                     "int, list[tuple[str, str]]]], threads: int, progress: object) -> dict[str, "
                     "typing.Any]"));
  module.def("create_store", &CreateStore, nb::arg("path"), nb::arg("schema"));
  module.def(
      "is_store", [](const std::string& path) { return IsStore(FileSystem::Posix(), path); },
      nb::arg("path"));
  module.def("clean", &CleanNow, nb::arg("path"), nb::arg("dry_run"), nb::arg("scratch"));
}

nb::dict CompactNow(const PyGraph& graph, bool repartition, std::uint32_t threads,
                    std::optional<std::uint32_t> keep_generations, nb::object progress) {
  const auto service = graph.Live();
  CompactOptions options;
  options.repartition = repartition;
  options.threads = threads;
  options.keep_generations = keep_generations;
  return CompactDict(RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
    return service->graph().Compact(options, control);
  }));
}

nb::dict ExportNow(const PyGraph& graph, const std::string& folder, std::uint64_t memory_bytes,
                   nb::object progress) {
  const auto fixed = graph.Snapshot();
  const ExportFolderReport done =
      RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
        return ExportFolder(*fixed, folder, {.memory_bytes = memory_bytes}, control);
      });
  nb::list files;
  for (const ExportFolderReport::File& file : done.files) files.append(file.path.string());
  nb::dict result;
  result["files"] = files;
  result["notes"] = done.notes;
  result["seconds"] = done.seconds;
  return result;
}

nb::dict VerifyNow(const std::string& path, nb::object progress) {
  const VerifyReport report = RunJob(
      std::move(progress), About::kStore,
      [&](const JobControl& control) { return VerifyStore(FileSystem::Posix(), path, control); });
  nb::list unread;
  for (const Unread& file : report.unread)
    unread.append(nb::make_tuple(file.file, Spelled(file.why.ToString())));
  nb::dict result;
  result["files"] = report.files;
  result["bytes"] = report.bytes;
  result["damaged"] = DamageOf(report.damaged);
  result["unread"] = unread;
  return result;
}

nb::dict BackupNow(const std::string& path, const std::string& folder, std::uint64_t keep,
                   nb::object progress) {
  const BackupReport report =
      RunJob(std::move(progress), About::kStore, [&](const JobControl& control) {
        return BackupStore(FileSystem::Posix(), path, folder, {.keep = keep}, control);
      });
  nb::dict result;
  result["number"] = report.backup.number;
  result["files_copied"] = report.files_copied;
  result["bytes_copied"] = report.bytes_copied;
  result["files_shared"] = report.files_shared;
  result["seconds"] = report.seconds;
  return result;
}

std::uint64_t RestoreNow(const std::string& folder, const std::string& path,
                         std::optional<std::uint64_t> number, nb::object progress) {
  return RunJob(std::move(progress), About::kStore,
                [&](const JobControl& control) {
                  return RestoreStore(FileSystem::Posix(), folder, path, number, control);
                })
      .backup.number;
}

nb::list BackupsIn(const std::string& folder) {
  nb::list result;
  for (const BackupInfo& one :
       Take(Unlocked([&] { return ListBackups(FileSystem::Posix(), folder); }), About::kStore))
    result.append(nb::make_tuple(one.number, one.unix_seconds, one.bytes));
  return result;
}

nb::dict RepairNow(const std::string& path, bool fill_holes, bool dry_run, double wait_seconds,
                   nb::object progress) {
  const RepairReport report =
      RunJob(std::move(progress), About::kStore, [&](const JobControl& control) {
        return RepairGraph(FileSystem::Posix(), path,
                           {.fill_holes = fill_holes,
                            .dry_run = dry_run,
                            .wait = {.seconds = wait_seconds, .control = &control}},
                           control);
      });
  nb::dict result;
  result["damaged"] = DamageOf(report.found);
  result["rebuilt"] = NotesOf(report.rebuilt);
  result["quarantined"] = MovedFiles(report.quarantined);
  result["lost"] = NotesOf(report.lost);
  result["quarantine"] = report.quarantine;
  result["ok"] = report.after.ok();
  return result;
}

/// Scalar arguments of AddRows. rhizome.add_array validates them and reports errors by their names.
struct AddArguments {
  std::string path;
  std::string name;
  nb::object rows;  ///< a path, or a matrix [n, dim]
  std::string dtype;
  std::string ids;  ///< a file; empty if not given
  std::string layout = "row";
  std::string vertex_type;  ///< empty: the array is not bound to a type
  bool new_version = false;
  bool live = false;
  std::uint64_t keep = 0;
  std::uint64_t memory_bytes = 0;
  double wait_seconds = 0;
};

/// Adds an array or a version of an array, or, with `append`, rows to an array.
nb::dict AddRows(const AddArguments& arguments, bool append, nb::object progress) {
  AddArrayOptions options;
  options.file = FileArrayOf(arguments.name, arguments.rows, arguments.dtype);
  if (!arguments.ids.empty()) options.ids = Path(arguments.ids);
  options.layout = LayoutOf(arguments.layout);
  options.file.vertex_type = arguments.vertex_type;
  options.new_version = arguments.new_version;
  options.live = arguments.live;
  options.keep = arguments.keep;
  options.memory_bytes = arguments.memory_bytes;
  options.wait_seconds = arguments.wait_seconds;
  const AddArrayReport report =
      RunJob(std::move(progress), About::kContents, [&](const JobControl& control) {
        FileSystem& fs = FileSystem::Posix();
        return append ? AppendRows(fs, arguments.path, arguments.name, options, control)
                      : AddArray(fs, arguments.path, options, control);
      });
  nb::dict result;
  result["name"] = ShownName(report.array.name);
  result["rows_given"] = report.rows_given;
  result["rows_read"] = report.rows_read;
  result["vertices"] = report.vertices;
  result["dropped_versions"] = nb::cast(report.dropped_versions);
  result["seconds"] = report.seconds;
  return result;
}

/// Changes the arrays of a store in one commit.
template <typename Steps>
void ChangeArrays(const std::string& path, double wait_seconds, Steps&& steps) {
  RunJob(nb::none(), About::kStore, [&](const JobControl& control) -> Result<bool> {
    RHIZOME_RETURN_IF_ERROR(
        ArrayChange::Run(FileSystem::Posix(), path,
                         {.wait = {.seconds = wait_seconds, .control = &control}}, steps));
    return true;
  });
}

void BindArrayChanges(nb::module_& module) {
  using A = AddArguments;
  nb::class_<A>(module, "AddArguments")
      .def(nb::init<>())
      .def_rw("path", &A::path)
      .def_rw("name", &A::name)
      .def_rw("rows", &A::rows)
      .def_rw("dtype", &A::dtype)
      .def_rw("ids", &A::ids)
      .def_rw("layout", &A::layout)
      .def_rw("vertex_type", &A::vertex_type)
      .def_rw("new_version", &A::new_version)
      .def_rw("live", &A::live)
      .def_rw("keep", &A::keep)
      .def_rw("memory_bytes", &A::memory_bytes)
      .def_rw("wait_seconds", &A::wait_seconds);
  module.def("add_rows", &AddRows, nb::arg("arguments"), nb::arg("append"),
             nb::arg("progress").none(),
             nb::sig("def add_rows(arguments: AddArguments, append: bool, progress: object) -> "
                     "dict[str, typing.Any]"));
  module.def(
      "check_no_writer",
      [](const std::string& path) {
        Check(Unlocked([&] { return ArrayChange::CheckNoWriter(FileSystem::Posix(), path); }));
      },
      nb::arg("path"));
  module.def(
      "drop_array",
      [](const std::string& path, const std::string& name, bool all_versions, double wait_seconds) {
        ChangeArrays(path, wait_seconds,
                     [&](ArrayChange& change) { return change.Drop(name, all_versions); });
      },
      nb::arg("path"), nb::arg("name"), nb::arg("all_versions"), nb::arg("wait_seconds"));
  module.def(
      "set_alias",
      [](const std::string& path, const std::string& name, const std::string& alias,
         std::optional<std::uint64_t> version, double wait_seconds) {
        ChangeArrays(path, wait_seconds, [&](ArrayChange& change) {
          return version ? change.SetAlias(name, alias, *version) : change.DropAlias(name, alias);
        });
      },
      nb::arg("path"), nb::arg("name"), nb::arg("alias"), nb::arg("version").none(),
      nb::arg("wait_seconds"));
}

}  // namespace

void BindJobs(nb::module_& module) {
  BindArrayChanges(module);
  module.def("compact", &CompactNow, nb::arg("graph"), nb::arg("repartition"), nb::arg("threads"),
             nb::arg("keep_generations").none(), nb::arg("progress").none(),
             nb::sig("def compact(graph: Graph, repartition: bool, threads: int, keep_generations: "
                     "int | None, progress: object) -> dict[str, typing.Any]"));
  module.def("export_folder", &ExportNow, nb::arg("graph"), nb::arg("folder"),
             nb::arg("memory_bytes"), nb::arg("progress").none(),
             nb::sig("def export_folder(graph: Graph, folder: str, memory_bytes: int, progress: "
                     "object) -> dict[str, typing.Any]"));
  module.def("verify", &VerifyNow, nb::arg("path"), nb::arg("progress").none(),
             nb::sig("def verify(path: str, progress: object) -> dict[str, typing.Any]"));
  module.def("backup", &BackupNow, nb::arg("path"), nb::arg("folder"), nb::arg("keep"),
             nb::arg("progress").none(),
             nb::sig("def backup(path: str, folder: str, keep: int, progress: object) -> dict[str, "
                     "typing.Any]"));
  module.def("restore", &RestoreNow, nb::arg("folder"), nb::arg("path"), nb::arg("number").none(),
             nb::arg("progress").none(),
             nb::sig("def restore(folder: str, path: str, number: int | None, progress: object) -> "
                     "int"));
  module.def("backups", &BackupsIn, nb::arg("folder"),
             nb::sig("def backups(folder: str) -> list[tuple[int, int, int]]"));
  module.def("repair", &RepairNow, nb::arg("path"), nb::arg("fill_holes"), nb::arg("dry_run"),
             nb::arg("wait_seconds"), nb::arg("progress").none(),
             nb::sig("def repair(path: str, fill_holes: bool, dry_run: bool, wait_seconds: float, "
                     "progress: object) -> dict[str, typing.Any]"));
  BindSchemas(module);
}

}  // namespace rhizome::python
