// Sniff: finds how Ingest reads an input. It assigns the files of `inputs` to edges, nodes and
// arrays (TakeInput); plans each edge file, the node file and the arrays; and combines the plans:
// equal columns, types of ends, symmetry, ids, notes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "index/ingest/array_text.h"
#include "index/ingest/file_plan.h"
#include "index/ingest/id_plan.h"
#include "index/ingest/store_folder.h"
#include "index/input/convert.h"
#include "index/input/npy.h"
#include "rhizome/ingest.h"
#include "storage/base/exceptions.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

constexpr std::string_view kSymmetric = "symmetric";
constexpr std::string_view kSkew = "skew-symmetric";

/// Returns whether an array of this header may be edges: integers [m, 2] or [2, m].
bool MayBeEdges(const NpyHeader& header) {
  return header.shape.size() == 2 && CanConvert(header.dtype, DataType::kInt64) &&
         (header.rows() == 2 || header.dim() == 2);
}

class Sniffer {
 public:
  Sniffer(FileSystem& fs, const IngestOptions& options) : fs_(fs) { plan_.options = options; }

  Result<InputPlan> Run() {
    for (const Path& path : std::exchange(plan_.options.inputs, {}))
      RHIZOME_RETURN_IF_ERROR(TakeInput(path));
    IngestOptions& options = plan_.options;
    for (const EdgeFile& file : options.edges) RHIZOME_RETURN_IF_ERROR(PlanEdges(file));
    if (options.nodes) RHIZOME_RETURN_IF_ERROR(PlanNodes());
    RHIZOME_RETURN_IF_ERROR(TakeColumns());
    for (ArrayFile& file : options.arrays) {
      RHIZOME_ASSIGN_OR_RETURN(ResolvedArray array,
                               ResolveArray(fs_, file, options.header, options.delimiter));
      file = std::move(array.file);
      plan_.arrays.push_back(std::move(array.plan));
    }
    RHIZOME_RETURN_IF_ERROR(TakeTypes());
    RHIZOME_RETURN_IF_ERROR(TakeMatrices());
    TakeIds();
    return std::move(plan_);
  }

 private:
  static Status Refuse(const Path& path, std::string_view reason) {
    return Status::InvalidArgument(fmt::format("{}: {}", path.string(), reason));
  }

  TextWish WishOf(std::optional<InputKind> kind, std::vector<std::string> columns) const {
    return {.kind = kind,
            .columns = std::move(columns),
            .header = plan_.options.header,
            .delimiter = plan_.options.delimiter};
  }

  /// Assigns a file to edges, nodes or arrays.
  Status TakeInput(const Path& path) {
    const auto info = fs_.Stat(std::filesystem::weakly_canonical(path));
    if (info && info->kind == DirectoryEntry::Kind::kDirectory) return TakeFolder(path);
    RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(fs_, path));
    if (IsNpy(std::as_bytes(std::span(head.bytes)))) return TakeNpy(path);
    RHIZOME_ASSIGN_OR_RETURN(const auto matrix, PlanMatrixMarket(head, path));
    RHIZOME_ASSIGN_OR_RETURN(const InputKind kind, matrix ? InputKind::kEdges : KindOf(head, path));
    if (kind == InputKind::kEdges) {
      plan_.options.edges.emplace_back(path);
      return Status::Ok();
    }
    if (plan_.options.nodes)
      return Refuse(path, fmt::format("it lists vertices, and so does {}; an ingestion takes one "
                                      "node file (`nodes`)",
                                      plan_.options.nodes->string()));
    plan_.options.nodes = path;
    return Status::Ok();
  }

  /// Takes a Zarr array, which gets the name of its folder.
  Status TakeFolder(const Path& path) {
    for (const char* file : {"zarr.json", ".zarray"})
      if (fs_.Stat(std::filesystem::weakly_canonical(path / file))) return TakeArray(path);
    return Refuse(path, "it is a folder, but not of a Zarr array; give the files in it");
  }

  Status TakeNpy(const Path& path) {
    RHIZOME_ASSIGN_OR_RETURN(const auto reader,
                             NpyReader::Open(fs_, path, {.fortran_order = true}));
    if (!MayBeEdges(reader->header())) return TakeArray(path);
    plan_.options.edges.emplace_back(path);
    return Status::Ok();
  }

  Status TakeArray(const Path& path) {
    Path name = path.filename();
    while (name.has_extension()) name = name.stem();
    ArrayFile file;
    file.name = name.string();
    file.path = path;
    const Status named = CheckName("array", file.name);
    if (!named.ok()) return named.WithContext(path.string());
    plan_.notes.push_back(fmt::format("{}: it becomes the array '{}'", path.string(), file.name));
    plan_.options.arrays.push_back(std::move(file));
    return Status::Ok();
  }

  /// Returns whether a text has edges or nodes: by its names, or by the number of its columns.
  Result<InputKind> KindOf(const FileHead& head, const Path& path) const {
    const auto found = PlanText(head, path, WishOf(std::nullopt, {}));
    if (found) return found->plan.kind;
    const IngestOptions& options = plan_.options;
    if (options.columns.empty() && options.node_columns.empty()) return Fail(found.error());
    RHIZOME_ASSIGN_OR_RETURN(
        const SniffedText text,
        SniffText(head, path, {.delimiter = options.delimiter, .fields = options.columns.size()}));
    if (options.columns.size() == text.fields) return InputKind::kEdges;
    if (options.node_columns.size() == text.fields) return InputKind::kNodes;
    return Fail(found.error());
  }

  Status PlanEdges(const EdgeFile& file) {
    FilePlan& plan = plan_.edges.emplace_back();
    plan.path = file.path;
    plan.columns = {{.role = "src", .type = ColumnType::kInteger},
                    {.role = "dst", .type = ColumnType::kInteger}};
    if (file.spans) {
      plan.format = InputFormat::kMemory;
      plan.lines = file.spans->size();
      plan.whole = true;
      if (file.spans->src.texts.empty()) census_.AddIntegers();
      return Status::Ok();
    }
    if (ContentExtension(file.path) == ".npy") return PlanNpyEdges(file, plan);
    RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(fs_, file.path));
    if (IsNpy(std::as_bytes(std::span(head.bytes))))
      return Refuse(file.path, "is a NumPy array; name it with the extension .npy");
    RHIZOME_ASSIGN_OR_RETURN(auto matrix, PlanMatrixMarket(head, file.path));
    if (matrix) return PlanMatrix(*std::move(matrix), plan);
    RHIZOME_ASSIGN_OR_RETURN(
        SniffedFile text,
        PlanText(head, file.path, WishOf(InputKind::kEdges, plan_.options.columns)));
    plan = std::move(text.plan);
    AddNotes(text.notes);
    if (!text.types.empty()) RHIZOME_RETURN_IF_ERROR(TakeTypesOf(file.path, text.types));
    if (!text.unused_types.empty() && plan_.options.end_types.empty())
      plan_.notes.push_back(fmt::format(
          "{}: `columns` is given, so sources and destinations are vertices of one kind "
          "and equal ids are one vertex, although their names are of two: "
          "`end_types={}` keeps them apart",
          file.path.string(), fmt::join(text.unused_types, ",")));
    if (!file.src) CountIds(text.rows, plan, {"src", "dst"});
    return Status::Ok();
  }

  Status PlanNpyEdges(const EdgeFile& file, FilePlan& plan) {
    plan.format = InputFormat::kNpy;
    census_.AddIntegers();
    RHIZOME_ASSIGN_OR_RETURN(const auto reader,
                             NpyReader::Open(fs_, file.path, {.fortran_order = true}));
    const NpyHeader& header = reader->header();
    plan.lines = header.shape.size() == 2 && header.dim() != 2 ? header.dim() : header.rows();
    plan.whole = true;
    return Status::Ok();
  }

  Status PlanMatrix(FilePlan matrix, FilePlan& plan) {
    const std::vector<std::string>& columns = plan_.options.columns;
    if (!columns.empty() && columns.size() != matrix.columns.size())
      return Refuse(matrix.path, fmt::format("its entries have {} numbers, but `columns` names {}",
                                             matrix.columns.size(), columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) matrix.columns[i].role = columns[i];
    plan = std::move(matrix);
    plan_.notes.push_back(fmt::format(
        "{}: a {} Matrix Market file, {} x {}; its row i is the vertex i - 1, as in SciPy",
        plan.path.string(), plan.symmetry, plan.matrix_rows, plan.matrix_columns));
    if (plan_.options.end_types.empty()) census_.AddIntegers();
    return Status::Ok();
  }

  Status PlanNodes() {
    const IngestOptions& options = plan_.options;
    FilePlan& plan = plan_.nodes.emplace();
    plan.path = *options.nodes;
    plan.kind = InputKind::kNodes;
    if (options.node_ids) {
      plan.format = InputFormat::kMemory;
      plan.columns = {{.role = "id"}};
      plan.lines = options.node_ids->size();
      if (options.node_ids->texts.empty()) census_.AddIntegers();
      return Status::Ok();
    }
    RHIZOME_ASSIGN_OR_RETURN(const FileHead head, ReadHead(fs_, *options.nodes));
    RHIZOME_ASSIGN_OR_RETURN(
        SniffedFile text,
        PlanText(head, *options.nodes, WishOf(InputKind::kNodes, options.node_columns)));
    plan = std::move(text.plan);
    AddNotes(text.notes);
    if (!text.types.empty()) node_type_ = text.types.front();
    CountIds(text.rows, plan, {"id", ""});
    return Status::Ok();
  }

  void AddNotes(std::vector<std::string>& notes) {
    std::move(notes.begin(), notes.end(), std::back_inserter(plan_.notes));
  }

  void CountIds(std::span<const SniffedRow> rows, const FilePlan& plan,
                const std::array<std::string_view, 2>& roles) {
    for (const SniffedRow& row : rows) {
      if (row.fields.size() != plan.columns.size()) continue;
      for (std::size_t i = 0; i < row.fields.size(); ++i)
        if (plan.columns[i].role == roles[0] || plan.columns[i].role == roles[1])
          census_.Add(row.fields[i], plan.path, row.line);
    }
  }

  /// Sets the columns of all files; edge files must have the same ones, in any order.
  Status TakeColumns() {
    IngestOptions& options = plan_.options;
    if (plan_.nodes && options.node_columns.empty()) options.node_columns = RolesOf(*plan_.nodes);
    if (options.node_columns.empty()) options.node_columns = {"id"};
    if (!options.columns.empty()) return Status::Ok();
    options.columns = {"src", "dst"};
    if (plan_.edges.empty()) return Status::Ok();
    options.columns = RolesOf(plan_.edges.front());
    const auto set_of = [](const FilePlan& plan) {
      const auto roles = RolesOf(plan);
      std::multiset<std::string> set(roles.begin(), roles.end());
      set.erase("-");
      return set;
    };
    const auto expected = set_of(plan_.edges.front());
    for (const FilePlan& plan : plan_.edges)
      if (set_of(plan) != expected)
        return Refuse(plan.path,
                      fmt::format("its columns are {}, but {} has {}; edge files of one ingestion "
                                  "must have the same columns, in any order; skip the others by "
                                  "'-' in `columns`",
                                  fmt::join(RolesOf(plan), ","), plan_.edges.front().path.string(),
                                  fmt::join(options.columns, ",")));
    return Status::Ok();
  }

  /// Takes the types of ends that the names of an edge file contain.
  Status TakeTypesOf(const Path& path, const std::vector<std::string>& types) {
    std::vector<std::string>& known = plan_.options.end_types;
    if (known == types) return Status::Ok();
    if (!known.empty())
      return found_types_ ? Refuse(path, fmt::format("its edges are from {} to {}, but in other "
                                                     "files they are from {} to {}",
                                                     types[0], types[1], known[0], known[1]))
                          : Status::Ok();
    known = types;
    found_types_ = true;
    return Status::Ok();
  }

  Status TakeTypes() {
    IngestOptions& options = plan_.options;
    if (options.end_types.empty()) return Status::Ok();
    if (options.end_types.size() != 2 || options.end_types[0] == options.end_types[1])
      return Status::InvalidArgument(
          fmt::format("`end_types={}` must be two different types, of the sources and of the "
                      "destinations",
                      fmt::join(options.end_types, ",")));
    RHIZOME_RETURN_IF_ERROR(CheckTypedIds(options.end_types));
    if (options.id_type == IdType::kInteger)
      return Status::InvalidArgument(
          "ids of two types of vertices are texts such as 'user:7'; give `id_type=string`, or "
          "leave it out");
    if (options.vertices || !options.vertex_ranges.empty() ||
        (!options.edges.empty() && options.edges.front().src))
      return Status::InvalidArgument(
          "`end_types` cannot be combined with `vertices` or with ranges of typed vertices");
    options.id_type = IdType::kString;
    plan_.notes.push_back(fmt::format(
        "sources are vertices of type {0}, destinations of type {1}; their ids become texts such "
        "as '{0}:1' and '{1}:1' (`end_types={0},{1}`)",
        options.end_types[0], options.end_types[1]));
    return TakeTypeOfNodes();
  }

  /// Finds the types of the vertices in the node file: a type column, or the name of the ids.
  Status TakeTypeOfNodes() {
    if (!plan_.nodes) return Status::Ok();
    const IngestOptions& options = plan_.options;
    const auto has = [&](std::string_view role) {
      return std::find(options.node_columns.begin(), options.node_columns.end(), role) !=
             options.node_columns.end();
    };
    if (has("type") || has("ntype")) return Status::Ok();
    const auto& types = options.end_types;
    if (std::find(types.begin(), types.end(), node_type_) == types.end())
      return Refuse(*options.nodes,
                    fmt::format("the edges are between vertices of type {} and {}, so it needs a "
                                "column with the type of each vertex, or a name of the ids such "
                                "as {}_id",
                                types[0], types[1], types[0]));
    plan_.nodes->type = node_type_;
    return Status::Ok();
  }

  /// Takes the sizes and the symmetry of matrices. A store is undirected if all of its edge files
  /// are symmetric.
  Status TakeMatrices() {
    IngestOptions& options = plan_.options;
    const auto is_symmetric = [](const FilePlan& plan) { return plan.symmetry == kSymmetric; };
    if (!plan_.edges.empty() && std::all_of(plan_.edges.begin(), plan_.edges.end(), is_symmetric))
      options.undirected = true;
    for (const FilePlan& plan : plan_.edges) {
      if (plan.format != InputFormat::kMatrixMarket) continue;
      if (options.undirected && plan.symmetry == kSkew)
        return Refuse(plan.path,
                      "a skew-symmetric matrix has other weights in the opposite "
                      "direction, so it cannot be `undirected`");
      if (!options.end_types.empty()) {
        plan_.notes.push_back(fmt::format(
            "{}: a row or column of the matrix without an entry becomes no vertex; a nodes file "
            "with all ids, such as '{}:0', would add it",
            plan.path.string(), options.end_types[0]));
        continue;
      }
      if (plan.matrix_rows != plan.matrix_columns)
        return Refuse(plan.path,
                      fmt::format("the matrix is {} x {}, so its rows and columns are two kinds of "
                                  "vertices; name their types, for example `end_types=row,column`",
                                  plan.matrix_rows, plan.matrix_columns));
      options.vertices = std::max(options.vertices.value_or(0), plan.matrix_rows);
    }
    return Status::Ok();
  }

  void TakeIds() {
    plan_.ids = std::move(census_).Plan(plan_.options.id_type == IdType::kString);
    const IdPlan& ids = plan_.ids;
    if (ids.mixed && plan_.options.id_type == IdType::kAuto)
      plan_.notes.push_back(
          fmt::format("the ids are texts, because '{}' at {} is not an integer: {}", ids.id,
                      ids.place, ids.reason));
    plan_.notes.insert(plan_.notes.end(), ids.variants.begin(), ids.variants.end());
  }

  FileSystem& fs_;
  InputPlan plan_;
  IdCensus census_;
  bool found_types_ = false;  // end_types were found, not given
  std::string node_type_;     // from the name of the ids in the node file
};

}  // namespace

std::string_view InputKindName(InputKind kind) {
  switch (kind) {
    case InputKind::kEdges:
      return "edges";
    case InputKind::kNodes:
      return "nodes";
    case InputKind::kArray:
      break;
  }
  return "array";
}

std::string_view InputFormatName(InputFormat format) {
  switch (format) {
    case InputFormat::kText:
      return "text";
    case InputFormat::kMatrixMarket:
      return "Matrix Market";
    case InputFormat::kNpy:
      return "npy";
    case InputFormat::kZarr:
      return "Zarr";
    case InputFormat::kMemory:
      break;
  }
  return "memory";
}

std::string_view ColumnTypeName(ColumnType type) {
  switch (type) {
    case ColumnType::kEmpty:
      return "empty";
    case ColumnType::kInteger:
      return "integer";
    case ColumnType::kNumber:
      return "number";
    case ColumnType::kTime:
      return "time";
    case ColumnType::kText:
      break;
  }
  return "text";
}

Result<InputPlan> Sniff(FileSystem& fs, const IngestOptions& options) try {
  RHIZOME_ASSIGN_OR_RETURN(const IngestOptions resolved, WithStoreFolder(fs, options));
  return Sniffer(fs, resolved).Run();
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
