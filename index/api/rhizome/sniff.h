#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/ingest.h"
#include "rhizome/status.h"
#include "rhizome/text_dialect.h"

namespace RHIZOME_API rhizome {

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
