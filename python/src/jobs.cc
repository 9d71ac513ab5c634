#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <tuple>

#include "handle.h"
#include "job.h"
#include "rhizome/index/ingest.h"
#include "rhizome/index/npy.h"
#include "rhizome/index/verify_store.h"
#include "rhizome/storage/backup.h"

namespace rhizome::python {
namespace {

/// The rows of an array of NumPy's, which the caller keeps while the job runs.
class SpanRows final : public RowSource {
 public:
  SpanRows(std::span<const std::byte> bytes, std::uint64_t row_count, std::uint64_t width,
           DataType type)
      : bytes_(bytes) {
    rows = row_count;
    dim = width;
    dtype = type;
  }
  Status Read(std::span<std::byte> out) override {
    std::memcpy(out.data(), bytes_.data(), out.size());
    bytes_ = bytes_.subspan(out.size());
    return Status::Ok();
  }

 private:
  std::span<const std::byte> bytes_;
};

using Matrix = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu, nb::ro>;

/// An array to ingest: a path, or the values of an array [rows, dim] and the name of their type.
ArrayFile ArrayOf(const std::string& name, nb::handle source, const std::string& dtype) {
  ArrayFile file;
  file.name = name;
  if (nb::isinstance<nb::str>(source)) {
    file.path = nb::cast<std::string>(source);
    return file;
  }
  const auto values = nb::cast<Matrix>(source, false);
  const DataType type = ParseDataType(dtype).value_or(DataType::kInvalid);
  if (type == DataType::kInvalid || DataTypeBytes(type) != values.itemsize())
    throw nb::type_error(("array '" + name + "': no array can be of type " + dtype).c_str());
  file.path = "the array '" + name + "'";
  const std::span bytes(static_cast<const std::byte*>(values.data()), values.nbytes());
  file.open = [bytes, type, rows = values.shape(0),
               dim = values.shape(1)](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<SpanRows>(bytes, rows, dim, type);
  };
  return file;
}

/// The arguments of Ingest that are one each; rhizome.ingest checks and names them.
struct IngestArguments {
  std::string path;
  std::vector<std::tuple<std::string, bool>> edges;  ///< path, and whether it is an array [2, m]
  nb::object edge_pairs = nb::none();                ///< instead: int64 [2, m], C-contiguous
  std::vector<std::string> columns;
  std::optional<std::string> nodes;
  std::vector<std::string> node_columns;
  nb::list arrays;       ///< (name, path or matrix, dtype)
  nb::list edge_arrays;  ///< the same
  bool header = false;
  bool undirected = false;
  std::optional<std::uint64_t> vertices;
  std::uint32_t partitions = 0;  ///< 0: as memory requires
  std::uint64_t memory_bytes = 0;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// Returns edges in memory, which the caller keeps while the job runs.
EdgeFile EdgesOf(nb::handle pairs) {
  const auto values =
      nb::cast<nb::ndarray<const std::int64_t, nb::shape<2, -1>, nb::c_contig, nb::device::cpu>>(
          pairs, false);
  const std::span numbers(values.data(), values.size());
  EdgeFile edges{Path("the edges")};
  edges.spans = EdgeSpans{.src = {.integers = numbers.first(values.shape(1))},
                          .dst = {.integers = numbers.last(values.shape(1))}};
  return edges;
}

IngestOptions OptionsOf(const IngestArguments& arguments) {
  IngestOptions options;
  if (!arguments.edge_pairs.is_none()) options.edges.push_back(EdgesOf(arguments.edge_pairs));
  for (const auto& [path, sources_first] : arguments.edges) {
    EdgeFile file{Path(path)};
    file.sources_first = sources_first;
    options.edges.push_back(std::move(file));
  }
  options.columns = arguments.columns;
  if (arguments.nodes) options.nodes = Path(*arguments.nodes);
  options.node_columns = arguments.node_columns;
  for (const nb::handle array : arguments.arrays)
    options.arrays.push_back(
        ArrayOf(nb::cast<std::string>(array[0]), array[1], nb::cast<std::string>(array[2])));
  for (const nb::handle array : arguments.edge_arrays) {
    const auto name = nb::cast<std::string>(array[0]);
    const auto dtype = nb::cast<std::string>(array[2]);
    options.edge_arrays.push_back(
        {.name = name,
         .dim = nb::cast<Matrix>(array[1], false).shape(1),
         .dtype = dtype == "int64" ? DataType::kInt64 : DataType::kFloat32,
         .files = {ArrayOf(name, array[1], dtype)}});
  }
  options.header = arguments.header;
  options.undirected = arguments.undirected;
  options.vertices = arguments.vertices;
  options.memory_bytes = arguments.memory_bytes;
  options.choose_partitions = arguments.partitions == 0;
  options.build.partition.partitions = std::max(arguments.partitions, 1U);
  options.build.partition.seed = arguments.seed;
  options.build.partition.threads = arguments.threads;
  return options;
}

nb::dict IngestNow(const IngestArguments& arguments, nb::object progress) {
  const IngestOptions options = OptionsOf(arguments);
  const IngestReport report =
      RunJob(std::move(progress), About::kStore, [&](const JobControl& control) {
        return Ingest(FileSystem::Posix(), arguments.path, options, control);
      });
  nb::dict result;
  result["vertices"] = report.info.vertices;
  result["edges"] = report.info.edges;
  result["partitions"] = report.info.partitions;
  result["seconds"] = report.seconds;
  result["spilled_bytes"] = report.spilled_bytes;
  return result;
}

nb::dict CompactNow(const PyGraph& graph, bool repartition, std::uint32_t threads,
                    std::optional<std::uint32_t> keep_generations, nb::object progress) {
  const auto service = graph.Live();
  CompactOptions options;
  options.repartition = repartition;
  options.threads = threads;
  options.keep_generations = keep_generations;
  const CompactResult done =
      RunJob(std::move(progress), About::kContents,
             [&](const JobControl& control) { return service->graph().Compact(options, control); });
  nb::dict result;
  result["compacted"] = done.compacted;
  result["generation"] = done.generation;
  result["commits"] = done.commits;
  return result;
}

nb::dict VerifyNow(const std::string& path, nb::object progress) {
  const VerifyReport report = RunJob(
      std::move(progress), About::kStore,
      [&](const JobControl& control) { return VerifyStore(FileSystem::Posix(), path, control); });
  nb::list damaged, unread;
  for (const Damage& damage : report.damaged)
    damaged.append(nb::make_tuple(damage.file, damage.offset_bytes, damage.what));
  for (const Unread& file : report.unread)
    unread.append(nb::make_tuple(file.file, file.why.ToString()));
  nb::dict result;
  result["files"] = report.files;
  result["bytes"] = report.bytes;
  result["damaged"] = damaged;
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

}  // namespace

void BindJobs(nb::module_& module) {
  using A = IngestArguments;
  nb::class_<A>(module, "IngestArguments")
      .def(nb::init<>())
      .def_rw("path", &A::path)
      .def_rw("edges", &A::edges)
      .def_rw("edge_pairs", &A::edge_pairs, nb::arg().none())
      .def_rw("columns", &A::columns)
      .def_rw("nodes", &A::nodes, nb::arg().none())
      .def_rw("node_columns", &A::node_columns)
      .def_rw("arrays", &A::arrays)
      .def_rw("edge_arrays", &A::edge_arrays)
      .def_rw("header", &A::header)
      .def_rw("undirected", &A::undirected)
      .def_rw("vertices", &A::vertices, nb::arg().none())
      .def_rw("partitions", &A::partitions)
      .def_rw("memory_bytes", &A::memory_bytes)
      .def_rw("seed", &A::seed)
      .def_rw("threads", &A::threads);
  module.def(
      "ingest", &IngestNow, nb::arg("arguments"), nb::arg("progress").none(),
      nb::sig("def ingest(arguments: IngestArguments, progress: object) -> dict[str, typing.Any]"));
  module.def("compact", &CompactNow, nb::arg("graph"), nb::arg("repartition"), nb::arg("threads"),
             nb::arg("keep_generations").none(), nb::arg("progress").none(),
             nb::sig("def compact(graph: Graph, repartition: bool, threads: int, keep_generations: "
                     "int | None, progress: object) -> dict[str, typing.Any]"));
  module.def("verify", &VerifyNow, nb::arg("path"), nb::arg("progress").none(),
             nb::sig("def verify(path: str, progress: object) -> dict[str, typing.Any]"));
  module.def("backup", &BackupNow, nb::arg("path"), nb::arg("folder"), nb::arg("keep"),
             nb::arg("progress").none(),
             nb::sig("def backup(path: str, folder: str, keep: int, progress: object) -> dict[str, "
                     "typing.Any]"));
}

}  // namespace rhizome::python
