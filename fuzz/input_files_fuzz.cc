#include <algorithm>
#include <string>
#include <vector>

#include "index/ids/id_table.h"
#include "index/ingest/array_file.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/node_file.h"
#include "index/ingest/row_sources.h"
#include "index/input/npy.h"
#include "memory_files.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

using Columns = std::vector<std::string>;

const Columns kEdgeColumns[] = {{"src", "dst"},
                                {"dst", "src", "type"},
                                {"src", "dst", "weight"},
                                {"src", "-", "dst", "type", "weight", "time", "x"}};
const Columns kNodeColumns[] = {
    {"id"}, {"id", "type"}, {"id", "label", "split"}, {"name", "id", "x", "ntype", "split2"}};
constexpr DataType kTypes[] = {DataType::kInvalid, DataType::kFloat32,  DataType::kFloat16,
                               DataType::kInt64,   DataType::kInt32,    DataType::kUint32,
                               DataType::kUint8,   DataType::kBool,     DataType::kInt16,
                               DataType::kInt8,    DataType::kBfloat16, DataType::kFloat64};

// The memory limit for rows. A text or a header can ask for more rows than its bytes hold.
constexpr std::uint64_t kMemoryBytes = std::uint64_t{8} << 20;

// Checks that the error is one that bad input may cause. kNotFound is allowed, too: if the file of
// rows for edges is not a .npy file, a folder with zarr.json is expected at its path.
void CheckRefused(const Status& status) {
  RHIZOME_CHECK(status.code() == StatusCode::kInvalidArgument ||
                status.code() == StatusCode::kOutOfMemory ||
                status.code() == StatusCode::kNotFound);
}

IngestOptions OptionsOf(std::uint8_t choices) {
  IngestOptions options;
  options.columns = kEdgeColumns[choices % 4];
  options.node_columns = kNodeColumns[choices % 4];
  if (choices % 4 == 3 && (choices & 4) != 0) options.split_column = "split2";
  options.header = (choices & 8) != 0;
  options.id_type = static_cast<IdType>(choices / 16 % 3);
  options.max_bad_lines = (choices & 64) != 0 ? 2 : 0;
  options.memory_bytes = kMemoryBytes;
  return options;
}

/// Reads the edges. Every edge must have two endpoints and a value in each column.
void ReadTheEdges(IngestContext& context) {
  IdTable ids(context.options.id_type);
  if (const Status status = CheckEdgeColumns(context.options); !status.ok())
    return CheckRefused(status);
  const auto edges = ReadEdges(context, ids, nullptr);
  if (!edges) return CheckRefused(edges.error());
  const std::uint64_t count = ids.edge_count();
  const EdgeList& columns = edges->columns;
  RHIZOME_CHECK(columns.type.empty() || columns.type.size() == count);
  RHIZOME_CHECK(columns.weight.empty() || columns.weight.size() == count);
  for (const TypeId type : columns.type) RHIZOME_CHECK(type < edges->type_names.size());
  const auto vertices = std::move(ids).Resolve(0, "");
  RHIZOME_CHECK(vertices.has_value() && vertices->src.size() == count);
  for (std::size_t e = 0; e < count; ++e) {
    const auto inside = [&](VertexId v) {
      return v >= 0 && static_cast<std::uint64_t>(v) < vertices->count;
    };
    RHIZOME_CHECK(inside(vertices->src[e]) && inside(vertices->dst[e]));
  }
}

void ReadTheNodes(IngestContext& context) {
  IdTable ids(context.options.id_type);
  if (const Status status = CheckNodeColumns(context.options); !status.ok())
    return CheckRefused(status);
  auto nodes = ReadNodes(context, ids);
  if (!nodes) return CheckRefused(nodes.error());
  RHIZOME_CHECK(ids.node_count() + context.bad_lines() == nodes->lines);
  RHIZOME_CHECK(nodes->type.empty() || nodes->type.size() == ids.node_count());
  const auto vertices = std::move(ids).Resolve(0, "");
  RHIZOME_CHECK(vertices.has_value());
  for (NodeColumn& column : nodes->columns) {
    const ArrayInput array = std::move(column).ToArray(vertices->nodes, vertices->count);
    std::vector<VertexId> all(vertices->count);
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<VertexId>(v);
    std::vector<std::byte> rows(all.size() * array.dim * DataTypeBytes(array.dtype));
    RHIZOME_CHECK(array.read_rows(all, rows).ok());
  }
}

void ReadTheArray(IngestContext& context, const ArrayFile& file) {
  const auto array = ReadArrayFile(context, file);
  if (!array) return CheckRefused(array.error());
  std::vector<std::byte> row((*array)->row_bytes());
  RHIZOME_CHECK(row.size() <= kMemoryBytes);
  for (std::uint64_t r = 0; r < std::min<std::uint64_t>((*array)->rows + 1, 200); ++r)
    (*array)->CopyRow(r, row);
}

void ReadTheRows(FileSystem& fs, const Path& path, std::uint8_t choices) {
  const DataType dtype = (choices & 1) != 0 ? DataType::kFloat32 : DataType::kInt64;
  const auto missing = (choices & 2) != 0 ? std::optional<std::int64_t>(-1) : std::nullopt;
  const auto source = OpenTextRows(fs, path, choices / 4 % 8, dtype, missing);
  if (!source) return CheckRefused(source.error());
  const std::uint64_t row_bytes = (*source)->dim * DataTypeBytes((*source)->dtype);
  std::vector<std::byte> rows((*source)->rows * row_bytes);
  Status status = (*source)->Read(rows);
  if (status.ok()) status = (*source)->Finish();
  if (!status.ok()) CheckRefused(status);
}

}  // namespace

// Reads arbitrary bytes as the files of an ingestion. They must be rejected with a reason, or the
// numbers of edges, vertices and rows read must match the number of lines that are not malformed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto bytes = std::as_bytes(std::span(data + 3, size - 3));
  const std::uint8_t choices = data[1];
  fuzzing::MemoryFiles files;
  constexpr const char* kNames[] = {"a.tsv", "a.csv", "a.npy"};
  const Path path = kNames[data[2] % 3];
  files.files[path] = {bytes.begin(), bytes.end()};
  const std::string two_edges = "1\t2\n2\t1\n";
  const auto text = std::as_bytes(std::span(two_edges));
  files.files["two.tsv"] = {text.begin(), text.end()};
  IngestOptions options = OptionsOf(choices);
  ArrayFile array{.name = "x", .path = path, .dim = data[2] / 3 % 8u};
  if (const DataType dtype = kTypes[data[2] / 21 % std::size(kTypes)]; dtype != DataType::kInvalid)
    array.dtype = dtype;
  EdgeFile edges(path);
  if ((choices & 128) != 0) {
    edges.type = "t";
    edges.src = IdRange{.first = 10, .count = 4};
    edges.dst = IdRange{.first = 0, .count = 9};
    edges.sources_first = (choices & 64) != 0;
    edges.edges = 3;
  }
  options.edges = {edges};
  options.nodes = path;
  if (data[0] % 5 == 4) {  // an array with a row per edge
    options.edges = {EdgeFile(Path("two.tsv"))};
    options.columns = {"src", "dst"};
    options.header = false;
    options.edge_arrays = {{.name = (choices & 2) != 0 ? "weight" : "y",
                            .dim = (choices & 2) != 0 ? 1 : array.dim,
                            .dtype = (choices & 4) != 0 ? DataType::kInt64 : DataType::kFloat32,
                            .files = {array}}};
    if (!CheckEdgeArrays(options).ok()) return 0;
  }
  const JobControl control;
  if (data[0] % 5 == 2) {
    IngestContext context(files, options, control, /*spills=*/false);
    ReadTheArray(context, array);
    return 0;
  }
  const auto plan = Sniff(files, options);
  if (!plan) {
    CheckRefused(plan.error());
    return 0;
  }
  IngestContext context(files, *plan, control, /*spills=*/false);
  if (data[0] % 5 == 0 || data[0] % 5 == 4) ReadTheEdges(context);
  if (data[0] % 5 == 1) ReadTheNodes(context);
  if (data[0] % 5 == 3) ReadTheRows(files, path, choices);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  const char* const kEdges[] = {"1\t2\n3\t4\n", "1\t2\ta\n2\t2\tb\n", "a\tb\t0.5\nb\tc\t2\n",
                                "1\tx\t2\tcites\t0.5\t17\t3\n1\ty\t2\tsees\t1\t18\t3.5\n"};
  const char* const kNodes[] = {"1\n2\n2\n", "1\ta\n2\tb\n3\t\n", "a\t1\ttrain\nb\t-1\t255\n",
                                "n\t1\t7\tauthor\tval\nm\t2\t7.5\tpaper\ttest\n"};
  for (std::uint8_t columns = 0; columns < 4; ++columns) {
    for (std::uint8_t ids = 0; ids < 3; ++ids) {
      for (const std::uint8_t more : {0, 4, 8, 64, 128}) {
        const auto choices = static_cast<std::uint8_t>(columns + 16 * ids + more);
        AddChanged(seeds, Joined({0, choices, 0}, kEdges[columns]), 3, 60);
        AddChanged(seeds, Joined({1, choices, 0}, kNodes[columns]), 3, 60);
      }
    }
  }
  for (const char* const triplets :
       {"0\t1\t2.5\n3\t0\t-1\n", "0\t0\t1\n0\t0\t1\n", "2\t1\t300\n1\t2\t9\n"})
    for (std::uint8_t dtype = 0; dtype < std::size(kTypes); ++dtype)
      AddChanged(seeds, Joined({2, 0, static_cast<std::uint8_t>(dtype * 21 + 3 * 3)}, triplets), 3,
                 60);
  for (const char* const rows : {"1\t2\n3\t4\n", "1\tnan\n\t4.5\n", "3.0\t4\n5\n", "1e39\t1\n", ""})
    for (std::uint8_t choices = 0; choices < 16; ++choices)
      AddChanged(seeds, Joined({3, choices, 0}, rows), 3, 16);
  for (const DataType dtype : {DataType::kInt64, DataType::kFloat32, DataType::kInt32}) {
    const std::vector<std::vector<std::uint64_t>> kShapes = {{3, 2}, {2, 3}, {6}};
    for (const auto& shape : kShapes) {
      std::vector<std::byte> npy = EncodeNpyHeader(dtype, shape);
      for (std::size_t i = 0; i < 6 * DataTypeBytes(dtype); ++i)
        npy.push_back(static_cast<std::byte>(i % DataTypeBytes(dtype) == 0 ? 1 + i % 3 : 0));
      for (const std::uint8_t choices : {0, 1, 128, 192})
        AddChanged(seeds, Joined({0, choices, 2}, npy), 120, 24);
      for (std::uint8_t kind = 2; kind < 168; kind += 3)
        AddChanged(seeds, Joined({2, 0, kind}, npy), 130, 2);
      for (std::uint8_t kind = 2; kind < 168; kind += 3)
        for (const std::uint8_t choices : {0, 2, 4, 6})
          seeds.push_back(Joined({4, choices, kind}, npy));
    }
  }
  return seeds;
}
