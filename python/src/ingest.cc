#include "rhizome/ingest.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>

#include "array_file.h"
#include "index/homes/home_array.h"
#include "index/ingest/column_roles.h"
#include "job.h"

namespace rhizome::python {
namespace {

/// Scalar arguments of Ingest. rhizome.ingest validates them and reports errors by their names.
struct IngestArguments {
  std::string path;
  std::vector<std::string> inputs;  ///< files whose kind is found
  /// Each is a path, or a tuple (sources, targets, edge type, range of the sources, range of the
  /// targets). Ids are int64 [n] or a list of str; a range is None or
  /// (first, count).
  nb::typed<nb::list, nb::any> edges;
  nb::object ids = nb::none();  ///< ids of the vertices, in the same form
  nb::object id_types =
      nb::none();  ///< type of each of `ids`, an index of id_type_names: uint16 [n]
  std::vector<std::string> id_type_names;
  std::vector<std::pair<std::string, std::uint64_t>> vertex_types;  ///< name and count of each type
  std::vector<std::string> columns;
  std::string nodes;  ///< a file; empty if not given
  std::vector<std::string> node_columns;
  /// (name, path or matrix, dtype, dict of str, texts, vertex type): attributes of the array; a
  /// list of str or None, the texts whose codes the values are; and the type that it is bound to,
  /// "" for none
  nb::typed<nb::list, nb::any> arrays;
  /// (name, one matrix or None per entry of `edges`, or one for all, dtype), and optionally such a
  /// dict and list
  nb::typed<nb::list, nb::any> edge_arrays;
  /// (column of a text file, its type)
  std::vector<std::pair<std::string, std::string>> types;
  std::string homes;                   ///< "edgecut" or "owner"; empty: none, or from homes_file
  nb::object homes_file = nb::none();  ///< a path, or (matrix, dtype)
  std::string directions = "both";
  std::string layout = "row";
  std::string scratch;
  std::optional<bool> header;          ///< unset: found
  std::string delimiter;               ///< DelimiterName; empty: found
  std::vector<std::string> end_types;  ///< empty: found
  std::vector<std::string> feature_columns;
  std::vector<double> random_split;
  double hold_out_valid = 0;  ///< HoldOutOptions
  double hold_out_test = 0;
  std::vector<std::string> hold_out_relations;
  std::vector<std::pair<std::string, std::string>> inverse;
  std::string hold_out_by = "random";
  bool hold_out_overwrite = false;
  bool undirected = false;
  std::optional<std::uint64_t> vertices;
  std::uint32_t partitions = 0;  ///< 0: as memory requires
  std::uint64_t memory_bytes = 0;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

/// Converts the arguments to the engine's options. The options refer to memory of the arguments.
class IngestInput {
 public:
  explicit IngestInput(const IngestArguments& arguments) {
    for (const std::string& path : arguments.inputs) options_.inputs.emplace_back(path);
    for (const nb::handle edges : arguments.edges) options_.edges.push_back(EdgesOf(edges));
    if (!arguments.ids.is_none()) {
      options_.node_ids = IdsOf(arguments.ids);
      options_.nodes = Path("the ids");
      options_.node_types = TypesOf(arguments);
    }
    for (const auto& [type, count] : arguments.vertex_types)
      options_.vertex_ranges.push_back({type, count});
    for (const nb::handle array : arguments.arrays) {
      options_.arrays.push_back(
          FileArrayOf(nb::cast<std::string>(array[0]), array[1], nb::cast<std::string>(array[2])));
      // Without attributes, the array gets the attributes of every new array.
      if (auto attributes = AttributesOf(array); !attributes.empty())
        options_.arrays.back().attributes = std::move(attributes);
      options_.arrays.back().texts = TextsOf(array);
      options_.arrays.back().vertex_type = nb::cast<std::string>(array[5]);
    }
    for (const nb::handle array : arguments.edge_arrays)
      options_.edge_arrays.push_back(EdgeArrayOf(array));
    for (const auto& [name, type] : arguments.types) options_.types.emplace(name, type);
    options_.columns = arguments.columns;
    if (!arguments.nodes.empty()) options_.nodes = Path(arguments.nodes);
    options_.node_columns = arguments.node_columns;
    options_.header = arguments.header;
    if (!arguments.delimiter.empty()) {
      options_.delimiter = ParseDelimiter(arguments.delimiter);
      if (!options_.delimiter)
        throw nb::value_error("delimiter must be 'tab', 'comma', 'semicolon', 'pipe' or 'blanks'");
    }
    options_.end_types = arguments.end_types;
    options_.feature_columns = arguments.feature_columns;
    options_.random_split = arguments.random_split;
    options_.hold_out = {.valid = arguments.hold_out_valid,
                         .test = arguments.hold_out_test,
                         .relations = arguments.hold_out_relations,
                         .inverse = arguments.inverse,
                         .by = arguments.hold_out_by == "time" ? HoldOutOptions::By::kTime
                                                               : HoldOutOptions::By::kRandom,
                         .overwrite = arguments.hold_out_overwrite};
    options_.undirected = arguments.undirected;
    options_.vertices = arguments.vertices;
    options_.memory_bytes = arguments.memory_bytes;
    options_.layout = LayoutOf(arguments.layout);
    options_.scratch = arguments.scratch;
    options_.choose_partitions = arguments.partitions == 0;
    if (!arguments.homes_file.is_none()) {
      options_.build.homes = HomeRule::kFile;
      options_.homes_file = HomesOf(arguments.homes_file);
    } else if (!arguments.homes.empty()) {
      options_.build.homes = arguments.homes == "owner" ? HomeRule::kOwner : HomeRule::kEdgeCut;
    }
    options_.build.directions = DirectionOf(arguments.directions);
    options_.build.partition.partitions = std::max(arguments.partitions, 1U);
    options_.build.partition.seed = arguments.seed;
    options_.build.partition.threads = arguments.threads;
  }
  IngestInput(const IngestInput&) = delete;
  IngestInput& operator=(const IngestInput&) = delete;

  const IngestOptions& options() const { return options_; }

 private:
  EdgeFile EdgesOf(nb::handle edges) {
    if (nb::isinstance<nb::str>(edges)) return EdgeFile{Path(nb::cast<std::string>(edges))};
    const auto type = nb::cast<std::string>(edges[2]);
    EdgeFile file{Path(type.empty() ? "the edges" : "the edges '" + type + "'")};
    file.spans = EdgeSpans{.src = IdsOf(edges[0]), .dst = IdsOf(edges[1])};
    file.type = type;
    file.src = RangeOf(edges[3]);
    file.dst = RangeOf(edges[4]);
    return file;
  }

  IdSpan IdsOf(nb::handle ids) {
    if (!PyList_Check(ids.ptr())) {
      const auto numbers =
          nb::cast<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(
              ids, false);
      return {.integers = {numbers.data(), numbers.size()}};
    }
    options_.id_type = IdType::kString;
    std::vector<std::string_view>& texts = texts_.emplace_back();
    for (const nb::handle id : nb::borrow<nb::list>(ids)) texts.push_back(TextOfId(id));
    return {.texts = texts};
  }

  std::span<const std::string_view> TypesOf(const IngestArguments& arguments) {
    if (arguments.id_types.is_none()) return {};
    using Codes = nb::ndarray<const std::uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    const auto codes = nb::cast<Codes>(arguments.id_types, false);
    std::vector<std::string_view>& types = texts_.emplace_back();
    for (std::size_t i = 0; i < codes.size(); ++i)
      types.push_back(arguments.id_type_names.at(codes.data()[i]));
    return types;
  }

  static ArrayFile HomesOf(nb::handle homes) {
    const std::string name(kHomeArray);
    if (!nb::isinstance<nb::str>(homes))
      return FileArrayOf(name, homes[0], nb::cast<std::string>(homes[1]));
    ArrayFile file;
    file.name = name;
    file.path = nb::cast<std::string>(homes);
    return file;
  }

  static std::optional<IdRange> RangeOf(nb::handle range) {
    if (range.is_none()) return std::nullopt;
    return IdRange{nb::cast<std::uint64_t>(range[0]), nb::cast<std::uint64_t>(range[1])};
  }

  /// Returns the texts in the fifth item of an array, a list of str, if there is one.
  static std::shared_ptr<const std::vector<std::string>> TextsOf(nb::handle array) {
    if (nb::len(array) < 5 || array[4].is_none()) return nullptr;
    return std::make_shared<const std::vector<std::string>>(
        nb::cast<std::vector<std::string>>(array[4]));
  }

  /// Returns the metadata in the fourth item of an array, a dict of str, if there is one.
  static std::vector<std::pair<std::string, std::string>> AttributesOf(nb::handle array) {
    std::vector<std::pair<std::string, std::string>> attributes;
    if (nb::len(array) > 3)
      for (const auto& [key, value] : nb::cast<nb::dict>(array[3]))
        attributes.emplace_back(nb::cast<std::string>(key), nb::cast<std::string>(value));
    return attributes;
  }

  static EdgeArrayFile EdgeArrayOf(nb::handle array) {
    const auto name = nb::cast<std::string>(array[0]);
    const auto dtype = nb::cast<std::string>(array[2]);
    EdgeArrayFile file{.name = name,
                       .dtype = ParseDataType(dtype).value_or(DataType::kInvalid),
                       .attributes = AttributesOf(array),
                       .texts = TextsOf(array)};
    for (const nb::handle part : array[1]) {
      if (part.is_none()) {
        file.files.emplace_back().name = name;
        continue;
      }
      file.files.push_back(FileArrayOf(name, part, dtype));
      file.dim = nb::cast<nb::ndarray<nb::ndim<2>, nb::ro>>(part, false).shape(1);
    }
    return file;
  }

  IngestOptions options_;
  std::deque<std::vector<std::string_view>> texts_;
};

nb::object HomesDict(const IngestReport& report) {
  if (!report.homes) return nb::none();
  const StoredHomes& homes = *report.homes;
  const auto warning = HomeWarning(homes, report.info.vertices);
  nb::dict facts;
  facts["homes"] = homes.homes;
  facts["by"] = std::string(HomeRuleName(homes.rule));
  facts["training_vertices"] = homes.seeds;
  facts["cut_share"] = homes.metrics.cut_share;
  facts["row_balance"] = homes.metrics.row_balance;
  facts["training_balance"] = homes.metrics.seed_balance;
  facts["warning"] = warning ? nb::cast(*warning) : nb::none();
  return facts;
}

nb::dict HeldOutDict(const IngestReport& report) {
  nb::dict sets;
  for (const HeldOutSet& set : report.held_out) {
    nb::dict types;
    for (const auto& [type, edges] : set.by_type) types[type.c_str()] = edges;
    nb::dict facts;
    facts["path"] = set.path.string();
    facts["edges"] = set.edges;
    facts["unseen_ends"] = set.unseen_ends;
    facts["by_relation"] = types;
    sets[set.name.c_str()] = facts;
  }
  return sets;
}

nb::dict IngestNow(const IngestArguments& arguments, nb::object progress) {
  const IngestInput input(arguments);
  const IngestReport report =
      RunJob(std::move(progress), About::kStore, [&](const JobControl& control) {
        return Ingest(FileSystem::Posix(), arguments.path, input.options(), control);
      });
  nb::dict result;
  result["vertices"] = report.info.vertices;
  result["edges"] = report.info.edges;
  result["partitions"] = report.info.partitions;
  result["seconds"] = report.seconds;
  result["spilled_bytes"] = report.spilled_bytes;
  result["homes"] = HomesDict(report);
  result["held_out"] = HeldOutDict(report);
  result["notes"] = report.notes;
  return result;
}

nb::dict FileDict(const FilePlan& plan, const std::string& array) {
  nb::list columns;
  for (const ColumnPlan& column : plan.columns)
    columns.append(
        nb::make_tuple(column.role, std::string(ColumnTypeName(column.type)), column.name));
  const bool text = plan.format == InputFormat::kText;
  nb::dict file;
  file["path"] = plan.path.string();
  file["kind"] = std::string(InputKindName(plan.kind));
  file["array"] = array.empty() ? nb::object(nb::none()) : nb::cast(array);
  file["format"] = std::string(InputFormatName(plan.format));
  file["compression"] =
      plan.compression.empty() ? nb::object(nb::none()) : nb::cast(plan.compression);
  file["delimiter"] =
      text ? nb::cast(std::string(DelimiterName(plan.dialect.delimiter))) : nb::object(nb::none());
  file["comments"] = plan.dialect.comments;
  file["header"] = text && plan.header;
  file["columns"] = columns;
  file["rows"] = plan.lines;
  file["comment_lines"] = plan.comment_lines;
  file["bad_lines"] = plan.bad_lines;
  file["whole"] = plan.whole;
  return file;
}

nb::dict SniffNow(const IngestArguments& arguments) {
  const IngestInput input(arguments);
  const InputPlan plan =
      Take(Unlocked([&] { return Sniff(FileSystem::Posix(), input.options()); }), About::kStore);
  const IngestOptions& options = plan.options;
  nb::list files;
  for (const FilePlan& file : plan.edges) files.append(FileDict(file, ""));
  if (plan.nodes) files.append(FileDict(*plan.nodes, ""));
  for (std::size_t i = 0; i < plan.arrays.size(); ++i)
    files.append(FileDict(plan.arrays[i], options.arrays[i].name));
  nb::dict result;
  result["files"] = files;
  result["columns"] = options.edges.empty() ? std::vector<std::string>() : options.columns;
  result["node_columns"] = options.nodes ? options.node_columns : std::vector<std::string>();
  result["end_types"] = options.end_types;
  result["id_kind"] = plan.ids.texts ? "string" : "integer";
  result["undirected"] = options.undirected;
  result["vertices"] = options.vertices;
  result["notes"] = plan.notes;
  return result;
}

}  // namespace

void BindIngest(nb::module_& module) {
  using A = IngestArguments;
  nb::class_<A>(module, "IngestArguments")
      .def(nb::init<>())
      .def_rw("path", &A::path)
      .def_rw("edges", &A::edges)
      .def_rw("ids", &A::ids, nb::arg().none())
      .def_rw("id_types", &A::id_types, nb::arg().none())
      .def_rw("id_type_names", &A::id_type_names)
      .def_rw("vertex_types", &A::vertex_types)
      .def_rw("inputs", &A::inputs)
      .def_rw("columns", &A::columns)
      .def_rw("nodes", &A::nodes)
      .def_rw("node_columns", &A::node_columns)
      .def_rw("arrays", &A::arrays)
      .def_rw("edge_arrays", &A::edge_arrays)
      .def_rw("types", &A::types)
      .def_rw("homes", &A::homes)
      .def_rw("homes_file", &A::homes_file, nb::arg().none())
      .def_rw("directions", &A::directions)
      .def_rw("layout", &A::layout)
      .def_rw("scratch", &A::scratch)
      .def_rw("header", &A::header, nb::arg().none())
      .def_rw("delimiter", &A::delimiter)
      .def_rw("feature_columns", &A::feature_columns)
      .def_rw("random_split", &A::random_split)
      .def_rw("hold_out_valid", &A::hold_out_valid)
      .def_rw("hold_out_test", &A::hold_out_test)
      .def_rw("hold_out_relations", &A::hold_out_relations)
      .def_rw("inverse", &A::inverse)
      .def_rw("hold_out_by", &A::hold_out_by)
      .def_rw("hold_out_overwrite", &A::hold_out_overwrite)
      .def_rw("end_types", &A::end_types)
      .def_rw("undirected", &A::undirected)
      .def_rw("vertices", &A::vertices, nb::arg().none())
      .def_rw("partitions", &A::partitions)
      .def_rw("memory_bytes", &A::memory_bytes)
      .def_rw("seed", &A::seed)
      .def_rw("threads", &A::threads);
  module.def(
      "ingest", &IngestNow, nb::arg("arguments"), nb::arg("progress").none(),
      nb::sig("def ingest(arguments: IngestArguments, progress: object) -> dict[str, typing.Any]"));
  using Names = std::vector<std::string>;
  module.def(
      "edge_roles", [](const Names& names) { return EdgeRolesByName(names); }, nb::arg("names"));
  module.def(
      "vertex_roles", [](const Names& names) { return NodeRolesByName(names); }, nb::arg("names"));
  module.def(
      "kinds_of_ends", [](const Names& names) { return KindsOfEnds(names); }, nb::arg("names"));
  module.def("sniff", &SniffNow, nb::arg("arguments"),
             nb::sig("def sniff(arguments: IngestArguments) -> dict[str, typing.Any]"));
}

}  // namespace rhizome::python
