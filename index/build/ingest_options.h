#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/index/graph_builder.h"
#include "rhizome/index/row_source.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/store_id.h"

namespace RHIZOME_API rhizome {

enum class IdType : std::uint8_t { kAuto, kInteger, kString };

/// An array file: .npy; the folder of a Zarr v3 array (ZarrSourceFormat says which); or sparse
/// triplets `row column value` as TSV. Files may be plain, .gz or .zst.
struct ArrayFile {
  std::string name;
  Path path;
  std::uint64_t dim = 0;  ///< needed for triplets; checked against the others; 0: as the file

  /// Convert to this; default: the file's (triplets: float32). float64 needs float32 or float16.
  std::optional<DataType> dtype = {};

  /// An importer's own rows, in place of those of `path`, which then is for messages. May be called
  /// more than once; what it refers to must live until the ingestion has ended.
  std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)> open = {};
};

/// Ids 0..count-1 of a file that stand for first..first+count-1 of the graph.
struct IdRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// An edge file: TSV, CSV (by name) or .npy int64 [m, 2]; each plain, .gz or .zst.
struct EdgeFile {
  EdgeFile(Path edge_path) : path(std::move(edge_path)) {}  // NOLINT(google-explicit-constructor)
  EdgeFile() = default;

  Path path;

  // What importers say besides. With ranges, ids are numbers within them.
  std::string type = {};  ///< of all its edges; with it in one file, it must be in all of them
  std::optional<IdRange> src = {};
  std::optional<IdRange> dst = {};
  bool sources_first = false;  ///< .npy of integers of shape [2, m]: all sources, then all ends
  std::optional<std::uint64_t> edges = {};  ///< it must have so many
};

/// Values of edges that stand beside the edge files, a row an edge: an edge attribute, or, with the
/// name `weight`, their weights. Of an undirected input both directions have the row.
struct EdgeArrayFile {
  std::string name;
  std::uint64_t dim = 1;                ///< of every row
  DataType dtype = DataType::kFloat32;  ///< kFloat32 or kInt64; rows are converted to it

  /// Rows of the edges of all edge files, in order; or for each edge file those of its edges, where
  /// one without a path means zeros.
  std::vector<ArrayFile> files = {};
};

/// Vertices that follow one another and have one type.
struct VertexRange {
  std::string type;
  std::uint64_t count = 0;
};

struct IngestOptions {
  std::vector<EdgeFile> edges = {};
  std::optional<Path> nodes = {};
  std::vector<ArrayFile> arrays = {};
  std::vector<EdgeArrayFile> edge_arrays = {};

  /// Of src, dst, type, weight, or "-": skip. Others become edge attributes: int64, or float32 from
  /// the first value on that is not an integer; `time` must be integers.
  std::vector<std::string> columns = {"src", "dst"};
  std::vector<std::string> node_columns = {"id"};  ///< id, label, split, type, ntype, name, ...
  std::string split_column = {};  ///< which of several split columns is the split; empty: "split"
  bool header = false;            ///< the first line of every text file is skipped
  IdType id_type = IdType::kAuto;
  bool undirected = false;
  std::optional<std::uint64_t> vertices = {};  ///< at least so many, for dense ids
  std::uint64_t max_bad_lines = 0;             ///< skip and count up to so many malformed lines

  /// Types of the vertices 0, 1, 2, ..., which are then all that there are: for importers; there is
  /// no nodes file then, and every edge file has ranges.
  std::vector<VertexRange> vertex_ranges = {};

  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;    ///< of vertices' arrays, in layout kChunk (ArrayInput)
  std::uint64_t memory_bytes = 0;  ///< what is taken beyond the bare process at most; 0: no limit

  /// kAuto: into spill files what does not fit in memory_bytes, if there is a limit.
  enum class Spill : std::uint8_t { kAuto, kAlways, kNever };
  Spill spill = Spill::kAuto;
  Path scratch = {};  ///< where spill files go (StoreOptions); empty: below the store

  BuildOptions build = {};         ///< its memory_bytes follows from the above
  bool choose_partitions = false;  ///< build.partition.partitions, or more where memory needs it
  std::optional<StoreId> store_id = {};  ///< given: two ingests of one input are byte-identical
};

struct IngestReport {
  GenerationInfo info;
  std::uint64_t generation = 0;
  std::uint64_t bad_lines = 0;
  double seconds = 0;
  bool spilled = false;             ///< did anything go into spill files?
  std::uint64_t spilled_bytes = 0;  ///< written to them
};

}  // namespace rhizome
