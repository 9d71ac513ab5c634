#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// The separator of the fields of a line of text.
enum class Delimiter : std::uint8_t {
  kTab,
  kComma,
  kSemicolon,
  kPipe,
  kBlanks,  ///< any number of blanks and tabs
  kNone,    ///< nothing: the line, unchanged, is its only field
};

/// Returns "tab", "comma", "semicolon", "pipe", "blanks" or "none".
std::string_view DelimiterName(Delimiter delimiter);

/// The inverse of DelimiterName, without "none".
std::optional<Delimiter> ParseDelimiter(std::string_view name);

/// The rules that divide a text file into lines and fields. Unless the delimiter is kNone, blank
/// lines are skipped, and blanks around a field are not part of it.
struct TextDialect {
  Delimiter delimiter = Delimiter::kTab;

  /// Fields may be quoted as in CSV (RFC 4180): "a ""b""". Blanks in quotes are part of the field.
  bool quotes = false;

  /// A line that begins with one of these characters is skipped.
  std::string comments = {};

  friend bool operator==(const TextDialect&, const TextDialect&) = default;
};

/// The rows of a dense array, read once from front to back, from a file or from an importer that
/// combines several files. Shape: [rows, dim], row-major elements of dtype.
/// Threads: one at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;

  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;

  /// Returns the number of bytes of all elements.
  std::uint64_t data_bytes() const { return rows * dim * DataTypeBytes(dtype); }

  /// Reads the next out.size() bytes of whole elements, row-major; the caller must not ask for more
  /// than data_bytes() in total.
  /// Errors: kInvalidArgument, a file ends early or a value is malformed, naming the file;
  /// kIoError.
  virtual Status Read(std::span<std::byte> out) = 0;

  /// Checks that nothing follows the last row. Errors: kInvalidArgument.
  virtual Status Finish() { return Status::Ok(); }

  /// Returns the number of bytes of its files on disk; 0 if unknown.
  virtual std::uint64_t file_bytes() const { return 0; }

  /// Returns the maximum memory that it holds, without the memory of its creator.
  virtual std::uint64_t memory_bytes() const { return 0; }
};

/// The rule that assigned homes to the rows of a store.
enum class HomeRule : std::uint8_t {
  kNone,     ///< the store has no homes
  kEdgeCut,  ///< DivideRows
  kOwner,    ///< the owners of the vertices (the partition where a look-up begins)
  kFile,     ///< a file that another program wrote
};

inline constexpr std::int32_t kNoHome = -1;

/// Quality of a set of homes.
struct HomeMetrics {
  double cut_share = 0;     ///< share of edges between homes; self-loops do not count
  double row_balance = 1;   ///< maximum rows of a home over the mean
  double seed_balance = 1;  ///< maximum seeds of a home over the mean; 1 without seeds
  friend bool operator==(const HomeMetrics&, const HomeMetrics&) = default;
};

/// Facts about the homes of a store, as of its creation. They are attributes of the array. When a
/// repair publishes a new version of the array with the rows that it could save, it keeps them. An
/// array named "home" without these attributes is not an array of homes.
struct StoredHomes {
  std::uint32_t homes = 1;  ///< number of homes, in [1, kMaxPartitions]
  HomeRule rule = HomeRule::kNone;
  std::uint64_t seeds = 0;  ///< number of training vertices of all homes
  HomeMetrics metrics;

  /// Returns whether a row of the array may have this value.
  bool Allows(std::int32_t home) const {
    return home == kNoHome || (home >= 0 && static_cast<std::uint32_t>(home) < homes);
  }
  friend bool operator==(const StoredHomes&, const StoredHomes&) = default;
};

/// The encoding of adjacency lists in a partition file.
enum class TopologyCodec : std::uint8_t {
  kNone,       ///< 4 bytes an entry; the fastest to read
  kEliasFano,  ///< ascending lists in about 2 + log2(vertices / list length) bits an entry
};

/// Options of BuildGeneration.
struct BuildOptions {
  PartitionOptions partition;
  OrderKind order = OrderKind::kPds;
  Direction directions = Direction::kBoth;
  TopologyCodec topology_codec = TopologyCodec::kNone;

  /// The rule that assigns homes to rows. There is one home for each partition; the array `home`
  /// stores them (home_array.h). Training vertices are the vertices whose `split` is 0 (uint8
  /// [vertices, 1]); without that array there are none. With GraphInput::homes the rule must be
  /// kFile.
  HomeRule homes = HomeRule::kNone;

  /// Bound on the memory of the build, in bytes; 0: none. It also limits the number of threads that
  /// write partitions.
  std::uint64_t memory_bytes = 0;
};

/// Type of the external ids in the input files.
enum class IdType : std::uint8_t { kAuto, kInteger, kString };

/// An array file: .npy; a member of .npz ("x.npz:feat"); the folder of a Zarr v3 array (see
/// ZarrSourceFormat for the accepted ones); text with one row a line (int64 if all values are
/// integers, otherwise float32); or sparse triplets `row column value` as text. Files may be
/// compressed by gzip, zstd, bzip2 or xz.
struct ArrayFile {
  std::string name;
  Path path;

  /// If set, the array is bound to this vertex type: only rows of its vertices are stored. Row i
  /// belongs to the i-th vertex of the type; at ingestion, in the order of the nodes file without
  /// its bad lines, and each vertex of the type has a row. No effect if there is one vertex type.
  std::string vertex_type = {};

  /// Required for triplets; checked for other files. 0: the width of the file.
  std::uint64_t dim = 0;

  /// Whether a text file has triplets. Unset: rows, unless `dim` is given and only triplets have
  /// the file's number of columns; refused if both do.
  std::optional<bool> triplets = {};

  /// Target dtype; unset: the dtype of the file (triplets: float32; uint64 is stored as int64). A
  /// value that does not fit is refused; floats are rounded only to a dtype that is named here.
  std::optional<DataType> dtype = {};

  /// Attributes of the stored array (ArrayEntry::attributes). `null`: the integer that means that a
  /// vertex has no value, as a decimal; floats use NaN. `type`: `timestamp` if the values are int64
  /// microseconds since 1970 in UTC. Unset: those that every new array gets.
  std::optional<std::vector<std::pair<std::string, std::string>>> attributes = {};

  /// An importer's own rows, which replace the rows of `path`; `path` then appears only in
  /// messages. It may be called more than once. Objects that it refers to must live until the
  /// ingestion ends.
  std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)> open = {};

  /// If set, the rows are int64 codes of these texts: code c is text c, and -1 is none.
  /// The texts are distinct, and none is empty; look-ups are fastest if they ascend by their bytes.
  std::shared_ptr<const std::vector<std::string>> texts = {};
};

/// Maps the ids 0..count-1 of a file to the ids first..first+count-1 of the graph.
struct IdRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// An edge file: text; a Matrix Market file of coordinates; or .npy, integers [m, 2] or [2, m];
/// each plain or compressed by gzip, zstd, bzip2 or xz. Alternatively, edges in memory.
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
  /// For .npy: whether the shape is [2, m], all sources, then all destinations. Unset: by the
  /// shape; [2, 2] is then refused.
  std::optional<bool> sources_first = {};
  /// The expected number of edges; any other number is an error.
  std::optional<std::uint64_t> edges = {};
};

/// Values of edges in separate files, one row for each edge: an edge attribute, or the weights if
/// the name is `weight`. In an undirected input both directions of an edge get its row.
struct EdgeArrayFile {
  std::string name;
  std::uint64_t dim = 1;  ///< values in every row
  /// kInt64, kFloat32 or kFloat64; rows are converted to this dtype. Other integers are widened to
  /// int64, other floats to float32. Weights are float32, and not 0 unless they are given as 0.
  DataType dtype = DataType::kFloat32;

  /// As ArrayFile::attributes; also `type`: `bool` if the values are 0 and 1 for false and true.
  std::vector<std::pair<std::string, std::string>> attributes = {};

  /// Either one file with the rows of the edges of all edge files, in order; or one file for each
  /// edge file with the rows of its edges, where an entry without a path means zeros.
  std::vector<ArrayFile> files = {};

  /// As ArrayFile::texts; dtype must be kInt64, and dim 1.
  std::shared_ptr<const std::vector<std::string>> texts = {};
};

/// Consecutive vertices of one type.
struct VertexRange {
  std::string type;
  std::uint64_t count = 0;
};

/// Edges that are held out of a new store, for the validation and the test of link prediction. They
/// are written to text files, and their ends are vertices of the store.
///
/// All edges between two vertices, in either direction and of any type that is held out, are in one
/// set: a model that has learned one of them would know the others.
struct HoldOutOptions {
  double valid = 0;  ///< share of the edges; the shares are at least 0, and their sum is below 1
  double test = 0;

  /// Edge types that are held out, and types whose edges are the inverse of others: if one of a
  /// pair is held out, the other one is, too. Empty: all types are held out.
  std::vector<std::string> relations = {};
  std::vector<std::pair<std::string, std::string>> inverse = {};

  enum class By : std::uint8_t {
    kRandom,  ///< a draw for each pair of vertices, by the seed of IngestOptions::build.partition
    kTime     ///< the latest pairs; the time of a pair is the latest `time` of its edges
  };
  By by = By::kRandom;

  /// The files are `files`.valid.tsv.zst and `files`.test.tsv.zst: a header, then a line for each
  /// edge with src, dst, type if there are types, and its other columns. Empty: the store's path.
  Path files = {};
  bool overwrite = false;  ///< replace files that exist

  /// Returns whether edges are held out.
  bool any() const { return valid > 0 || test > 0; }
};

/// Input files and options of an ingestion (ingest.h).
struct IngestOptions {
  std::vector<EdgeFile> edges = {};
  std::optional<Path> nodes = {};

  /// Files whose kind is found by their content: edge files, one node file, and .npy arrays, which
  /// get the names of their files.
  std::vector<Path> inputs = {};

  /// Ids in memory, which replace the lines of `nodes`; `nodes` then appears only in messages, and
  /// `node_columns` must be just "id", or "id" and "type" with `node_types`. A repeated id is an
  /// error. Memory: as EdgeFile::spans.
  std::optional<IdSpan> node_ids = {};

  /// The name of the type of each vertex of `node_ids`; empty: no types. Memory: as
  /// EdgeFile::spans.
  std::span<const std::string_view> node_types = {};
  std::vector<ArrayFile> arrays = {};
  std::vector<EdgeArrayFile> edge_arrays = {};

  /// The columns of edge files: src, dst, type, weight, or "-" to skip a column. Other names become
  /// edge attributes, of the type of their values (`types`); `time` must be integers or dates.
  /// Empty: found by Sniff.
  std::vector<std::string> columns = {};
  /// The columns of the node file: id, label, split, type, ntype, name, ... Empty: found by Sniff.
  std::vector<std::string> node_columns = {};
  std::string split_column = {};  ///< name of the split column; empty: "split"

  /// Types of columns of text files that become arrays or edge attributes, by name: bool, int8,
  /// int16, int32, int64, uint8, uint32, float32, float64, timestamp or text. A value of another
  /// type is refused. Edge attributes of integers are int64 in the store; label is int64 or text.
  ///
  /// A column that is not named here is int64 if all numbers are integers; float32 if float32 keeps
  /// the decimal of each number, otherwise float64; bool (true, false); or int64 microseconds since
  /// 1970 in UTC with the attribute `type` = `timestamp` (ISO 8601 dates and times). An empty
  /// field, null, NA or nan means that there is no value: NaN in floats, and otherwise the integer
  /// in the attribute `null`. A number that no such type holds exactly is refused.
  std::map<std::string, std::string> types = {};

  /// Whether text files have a header. Unset: found by Sniff, for each file.
  std::optional<bool> header = {};
  std::optional<Delimiter> delimiter = {};  ///< of text files; unset: found by Sniff, for each file

  /// For edges between two kinds of vertices whose ids overlap: the type of all sources and the
  /// type of all destinations. An id 7 becomes the text "user:7". With a node file, its type column
  /// must have these types. Types may contain ':', but none may begin with another one and ':', so
  /// that each id has one reading. Empty: one kind of vertices, or found by Sniff (userId,
  /// movieId).
  std::vector<std::string> end_types = {};
  IdType id_type = IdType::kAuto;
  bool undirected = false;
  std::optional<std::uint64_t> vertices = {};  ///< number of vertices, for dense ids
  /// Number of malformed lines that are skipped and counted before the ingestion fails.
  std::uint64_t max_bad_lines = 0;

  /// Columns of the node file that together become one array, `feat`, float32, instead of an array
  /// each: names, or just "all", every column of numbers except label and split. Nulls become NaN.
  std::vector<std::string> feature_columns = {};

  /// Shares of training, validation and test, to which vertices with a label (all, if the node file
  /// has no column label) are assigned at random, by the seed of `build.partition`, in a new array
  /// `split`. Empty: no such array.
  std::vector<double> random_split = {};

  HoldOutOptions hold_out = {};

  /// Names of the first types, in the order of their numbers. Other names follow in order of first
  /// occurrence. Without a column of types there may be one name, which all vertices or edges have.
  std::vector<std::string> vertex_types = {};
  std::vector<std::string> edge_types = {};

  /// The expected number of lines of `nodes`; any other number is an error.
  std::optional<std::uint64_t> node_lines = {};

  /// Series whose versions are in `arrays`, under their stored names such as emb.v3.
  std::vector<ArraySeries> series = {};

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

/// The edges of a set that were held out (HoldOutOptions).
struct HeldOutSet {
  std::string name;  ///< "valid" or "test"
  Path path;
  std::uint64_t edges = 0;        ///< lines of the file
  std::uint64_t unseen_ends = 0;  ///< of these, edges with an end that no edge of the store has
  std::vector<std::pair<std::string, std::uint64_t>> by_type = {};  ///< edges of each type, by name
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
  std::vector<HeldOutSet> held_out = {};  ///< one for each share that is not 0

  /// Choices that were made where the input leaves one, and skipped lines: one sentence each.
  std::vector<std::string> notes = {};
};

/// Reads input files and writes them as a new store at `path`. Unless it returns OK, no store
/// exists there.
///
/// Memory: if the input fits in memory_bytes (or there is no limit), it is held in memory.
/// Otherwise it passes through spill files below the store's scratch folder; each single partition
/// must then fit. About 16 bytes a vertex (more with more than 16 partitions: one for each further
/// 8), the nodes file's ids (unless they are 0, 1, 2, ...) and its columns are always in memory.
/// Both methods write the same bytes if they use the same partitioner; if memory does not suffice
/// for one that sees all edges at once (refined, adadne, dne), hdrf replaces it.
///
/// Ids: if all are canonical decimals, they are integers, otherwise strings. Integers that are
/// exactly 0..n-1 (including those that `vertices` implies, and rows of arrays without a nodes
/// file) are the vertex ids; others are numbered in order of first occurrence: nodes file, then
/// edges, src before dst.
///
/// Types are names of 1 to 512 bytes of UTF-8 without control characters, numbered in order of
/// first occurrence; without a type column there is one vertex type "vertex" and one edge type
/// "edge". A vertex that a typed nodes file does not list has the type "unknown".
///
/// Columns of the nodes file become arrays: label int64 [rows, 1] (-1: none), split uint8 [rows, 1]
/// (0 train, 1 valid, 2 test, 255 none). Other columns have the type of their values
/// (IngestOptions::types), or uint8 if they are split words; "-" is skipped. A label that is no
/// integer, or any other value in another column, makes its column texts (TextValues), if no float,
/// bool or date precedes it; "name" has texts. The same applies to columns of edges.
///
/// Rows of arrays: row i of an array file belongs to line i of the nodes file (bad lines included),
/// or, without one, to integer id i. Vertices that only edges name get the values of
/// FillMissingRows. An array of one vertex type (ArrayFile::vertex_type) has the rows of its
/// vertices only.
///
/// Homes (BuildOptions::homes, IngestOptions::homes_file) are stored in the array `home`.
///
/// Edges that are held out (IngestOptions::hold_out) count as edges of the input in all of the
/// above: they name vertices and types. Their files exist if the store exists. By time, the input
/// is read twice and always passes through spill files.
///
/// Errors: kInvalidArgument, naming file, line and reason; kNotFound; kAlreadyExists; kOutOfSpace;
/// kOutOfMemory, naming the memory that would suffice; kInterrupted.
Result<IngestReport> Ingest(FileSystem& fs, const Path& path, const IngestOptions& options,
                            const JobControl& control);

enum class InputKind : std::uint8_t { kEdges, kNodes, kArray };
std::string_view InputKindName(InputKind kind);
enum class InputFormat : std::uint8_t { kText, kMatrixMarket, kNpy, kZarr, kMemory };
std::string_view InputFormatName(InputFormat format);

/// The type of the values in a column of the first lines.
enum class ColumnType : std::uint8_t { kEmpty, kInteger, kNumber, kTime, kText };
std::string_view ColumnTypeName(ColumnType type);

/// A column of a text file.
struct ColumnPlan {
  std::string name = {};  ///< in the header; empty without one
  std::string role = {};  ///< as in IngestOptions::columns or node_columns
  ColumnType type = ColumnType::kEmpty;
};

/// How one file is read.
struct FilePlan {
  Path path;
  InputKind kind = InputKind::kEdges;
  InputFormat format = InputFormat::kText;
  std::string compression = {};  ///< "gzip", "zstd", "bzip2", "xz" or empty
  TextDialect dialect = {};
  bool header = false;
  std::vector<ColumnPlan> columns = {};

  /// For kNodes: the type of all vertices, from the name of their ids (movieId), if the edges are
  /// between two types.
  std::string type = {};

  // Counts of the first 10,000 lines, or 4 MiB.
  std::uint64_t lines = 0;          ///< rows, without the header, comments and blank lines
  std::uint64_t comment_lines = 0;  ///< lines skipped as comments
  std::uint64_t bad_lines = 0;      ///< lines with another number of fields, or malformed
  bool whole = false;               ///< these are all lines

  /// For kMatrixMarket: the symmetry word of the header, and its sizes.
  std::string symmetry = {};
  std::uint64_t matrix_rows = 0;
  std::uint64_t matrix_columns = 0;
  std::uint64_t matrix_entries = 0;
};

/// The external ids in the first lines of the edge files and the node file.
struct IdPlan {
  bool texts = false;  ///< at least one is not an integer, or texts are requested
  bool mixed = false;  ///< some are integers, some are not
  /// The first id that is not an integer: where ("edges.csv:12"), the id, and why it is none.
  std::string place = {};
  std::string id = {};
  std::string reason = {};
  /// Ids that are the same number written in two ways, such as "3" and "3.0": a sentence each.
  std::vector<std::string> variants = {};
};

/// How Ingest reads an input.
struct InputPlan {
  /// The options with all that was found: files of `inputs` are in `edges`, `nodes` and `arrays`;
  /// `columns`, `node_columns` and `end_types` are set.
  IngestOptions options;

  std::vector<FilePlan> edges;  ///< by edge file of `options`
  std::optional<FilePlan> nodes;
  std::vector<FilePlan> arrays;  ///< by array of `options`
  IdPlan ids;
  std::vector<std::string> notes;  ///< choices that were made where the input leaves one
};

/// Determines how Ingest reads its files, from their first 10,000 lines:
/// - compression and format, by content;
/// - the delimiter: comma, tab, semicolon, pipe or blanks;
/// - whether the first line is a header: names, unlike the rows below;
/// - the role of each column, from its name in the header (upper and lower case, and a suffix `_id`
///   or `Id`, do not matter): src, source, from, head, subject, u; dst, target, to, tail, object,
///   v; rel, relation, type, predicate, label (of an edge); weight, w; time, timestamp, ts; id,
///   node, name, key (of a vertex); label, class, y; split. Other names are attributes or arrays.
///   Two names that end in "id", such as userId and movieId, are the ends of edges between two
///   types of vertices (IngestOptions::end_types). Without a header, two columns are src and dst,
///   and three whose second has few distinct texts are src, type and dst;
/// - the kind of each file of `inputs`.
/// Options that are set override what would be found. Files may differ in delimiter, header and
/// order of columns, but must have the same columns.
///
/// Memory: a few times 4 MiB.
/// Errors: kInvalidArgument, an ambiguous or unsupported input, naming the file and the options
/// that decide; kNotFound; kIoError.
Result<InputPlan> Sniff(FileSystem& fs, const IngestOptions& options);

}  // namespace rhizome
