#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_builder.h"
#include "rhizome/id_span.h"
#include "rhizome/row_source.h"
#include "rhizome/store_id.h"

namespace RHIZOME_API rhizome {

/// Type of the external ids in the input files.
enum class IdType : std::uint8_t { kAuto, kInteger, kString };

/// An array file: .npy; the folder of a Zarr v3 array (see ZarrSourceFormat for the accepted ones);
/// or sparse triplets `row column value` as TSV. Files may be plain, .gz or .zst.
struct ArrayFile {
  std::string name;
  Path path;
  /// Required for triplets; checked for other files. 0: the width of the file.
  std::uint64_t dim = 0;

  /// Target dtype; unset: the dtype of the file (triplets: float32). float64 requires float32 or
  /// float16 here.
  std::optional<DataType> dtype = {};

  /// An importer's own rows, which replace the rows of `path`; `path` then appears only in
  /// messages. It may be called more than once. Objects that it refers to must live until the
  /// ingestion ends.
  std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)> open = {};
};

/// Maps the ids 0..count-1 of a file to the ids first..first+count-1 of the graph.
struct IdRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// An edge file: TSV, CSV (by name) or .npy int64 [m, 2]; each plain, .gz or .zst. Alternatively,
/// edges in memory.
struct EdgeFile {
  /// Converts implicitly, so that a list of paths is a list of edge files.
  EdgeFile(Path edge_path) : path(std::move(edge_path)) {}  // NOLINT(google-explicit-constructor)
  EdgeFile() = default;

  Path path;

  /// Edges in memory, which replace the edges of `path`; `path` then appears only in messages. The
  /// caller owns the memory, which must remain valid until the ingestion ends and is not counted.
  std::optional<EdgeSpans> spans = {};

  // Set by importers. With ranges, the ids in the file are numbers within the ranges.
  std::string type = {};  ///< type of all edges in the file; if one file has it, all must
  std::optional<IdRange> src = {};
  std::optional<IdRange> dst = {};
  bool sources_first = false;  ///< for .npy: shape [2, m], all sources, then all destinations
  /// The expected number of edges; any other number is an error.
  std::optional<std::uint64_t> edges = {};
};

/// Values of edges in separate files, one row for each edge: an edge attribute, or the weights if
/// the name is `weight`. In an undirected input both directions of an edge get its row.
struct EdgeArrayFile {
  std::string name;
  std::uint64_t dim = 1;                ///< values in every row
  DataType dtype = DataType::kFloat32;  ///< kFloat32 or kInt64; rows are converted to this dtype

  /// Either one file with the rows of the edges of all edge files, in order; or one file for each
  /// edge file with the rows of its edges, where an entry without a path means zeros.
  std::vector<ArrayFile> files = {};
};

/// Consecutive vertices of one type.
struct VertexRange {
  std::string type;
  std::uint64_t count = 0;
};

/// Input files and options of an ingestion (ingest.h).
struct IngestOptions {
  std::vector<EdgeFile> edges = {};
  std::optional<Path> nodes = {};

  /// Ids in memory, which replace the lines of `nodes`; `nodes` then appears only in messages, and
  /// `node_columns` must be just "id". A repeated id is an error. Memory: as EdgeFile::spans.
  std::optional<IdSpan> node_ids = {};
  std::vector<ArrayFile> arrays = {};
  std::vector<EdgeArrayFile> edge_arrays = {};

  /// The columns of edge files: src, dst, type, weight, or "-" to skip a column. Other names become
  /// edge attributes: int64, or float32 from the first value that is not an integer; `time` must be
  /// integers.
  std::vector<std::string> columns = {"src", "dst"};
  std::vector<std::string> node_columns = {"id"};  ///< id, label, split, type, ntype, name, ...
  std::string split_column = {};                   ///< name of the split column; empty: "split"
  bool header = false;                             ///< skip the first line of every text file
  IdType id_type = IdType::kAuto;
  bool undirected = false;
  std::optional<std::uint64_t> vertices = {};  ///< minimum number of vertices, for dense ids
  /// Number of malformed lines that are skipped and counted before the ingestion fails.
  std::uint64_t max_bad_lines = 0;

  /// The types of the vertices 0, 1, 2, ...; there are no other vertices. For importers: requires
  /// that there is no nodes file, and that every edge file has ranges.
  std::vector<VertexRange> vertex_ranges = {};

  ArrayLayout layout = ArrayLayout::kRow;
  Codec codec{.kind = CodecKind::kBloscLz4, .level = 5};  ///< for layout kChunk
  std::uint64_t chunk_rows = 0;
  std::uint64_t inner_rows = 0;    ///< for vertex arrays in layout kChunk (ArrayInput)
  std::uint64_t memory_bytes = 0;  ///< limit, beyond the memory of the bare process; 0: none

  /// kAuto spills to files if there is a limit and memory_bytes does not suffice.
  enum class Spill : std::uint8_t { kAuto, kAlways, kNever };
  Spill spill = Spill::kAuto;
  Path scratch = {};  ///< folder of spill files (StoreOptions); empty: below the store

  BuildOptions build = {};  ///< its memory_bytes is derived from IngestOptions::memory_bytes

  /// Homes of rows that another program chose, for HomeRule::kFile: a .npy file or a Zarr array of
  /// integers, or a text file with one integer a line, as METIS writes it. The rows have the order
  /// of the array files, and each value is below build.partition.partitions. choose_partitions then
  /// has no effect.
  std::optional<ArrayFile> homes_file = {};
  /// Use build.partition.partitions, or more if memory requires it.
  bool choose_partitions = false;
  std::optional<StoreId> store_id = {};  ///< if set, two ingestions of one input are byte-identical
};

/// The result of an ingestion.
struct IngestReport {
  GenerationInfo info;
  std::uint64_t generation = 0;
  std::uint64_t bad_lines = 0;
  double seconds = 0;
  std::optional<StoredHomes> homes = {};  ///< set if homes were requested
  bool spilled = false;                   ///< whether spill files were used
  std::uint64_t spilled_bytes = 0;        ///< bytes written to spill files
};

}  // namespace rhizome
