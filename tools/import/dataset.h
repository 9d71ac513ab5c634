#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/ingest.h"

namespace rhizome {

/// A recognised data set as input of Ingest. Its files remain where they are and are read in place.
struct Dataset {
  /// Edge files have two columns and no header.
  IngestOptions options = {.columns = {"src", "dst"}, .header = false};

  /// Parts of the data set that are not imported, each with the reason.
  std::vector<std::string> left_out;

  /// Vertex ranges by type, in id order. A single unnamed range if the data set has no types.
  std::vector<VertexRange> vertices;

  /// Memory already held by options.arrays, in bytes.
  std::uint64_t held_bytes = 0;

  std::uint64_t vertex_count() const;

  /// Returns the id range of a vertex type. Errors: kInvalidArgument, there is no such type; the
  /// message names `where`.
  Result<IdRange> RangeOf(const std::string& type, const Path& where) const;

  /// Copies the vertices into `options`. Call it once, when all ranges are known and before
  /// anything is allocated per vertex. `memory_bytes` is the memory limit of the import (0: no
  /// limit).
  /// Errors: kInvalidArgument, too many vertices, or a type name that is malformed or occurs twice;
  /// kOutOfMemory.
  Status SetVertices(std::uint64_t memory_bytes);
};

/// Returns the name of an edge type whose relation also connects other vertex types:
/// "author__writes__paper".
std::string NameOfTriple(const std::string& src, const std::string& relation,
                         const std::string& dst);

using OpenRowsOf = std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)>;

/// Rows of one vertex type in an array.
struct ArrayPart {
  std::string type;
  Path path;
  OpenRowsOf open;
};

/// Adds an array from `parts`; each part holds the rows of one vertex type. If the parts differ in
/// dtype or number of columns, each becomes an array that is bound to its type, named `name.type`
/// (with _ for characters that an array's name cannot have). If only one of several types has a
/// part, the array is bound to it, unless `fill` is given. Otherwise there is one array, in which
/// vertices of other types have `fill`, one element, or zeros. Errors: kInvalidArgument, the number
/// of rows of a part is not the number of vertices of its type.
Status AddArray(FileSystem& fs, const std::string& name, std::vector<ArrayPart> parts,
                const std::vector<std::byte>& fill, Dataset& dataset);

/// Values of an edge attribute for the edges of one file, options.edges[file]. The number of rows
/// is checked when they are read.
struct EdgePart {
  std::size_t file = 0;
  Path path;
  OpenRowsOf open;
};

/// Adds an edge attribute from `parts`: integers become int64, other numbers float32. Edges of
/// files without a part get zeros. If the parts differ in kind of number or number of columns, each
/// becomes an attribute of its own, named `name.type` in the same way. The name `weight` sets the
/// weights of the edges if every edge file has a part with one number per edge. A name that is
/// already used, by an array or by a built-in field of edges, becomes `edge_name`. Call it after
/// all calls of AddArray. Errors: kInvalidArgument, a part cannot be read.
Status AddEdgeArray(FileSystem& fs, std::string name, std::vector<EdgePart> parts,
                    Dataset& dataset);

/// Builds the array `split`, which assigns vertices to the training, validation and test sets.
class SplitColumn {
 public:
  explicit SplitColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::uint8_t>>(vertices, kNone)) {}

  /// Reads a file of vertex numbers within `range`, block by block, and assigns these vertices to
  /// `split` (0 train, 1 valid, 2 test).
  /// Errors: as IntegerReader; kInvalidArgument, naming the file: a number out of range, or a
  /// vertex in two splits.
  Status Read(FileSystem& fs, const Path& path, const IdRange& range, std::uint8_t split);
  void AddTo(Dataset& dataset) &&;

 private:
  static constexpr std::uint8_t kNone = 255;
  std::shared_ptr<std::vector<std::uint8_t>> values_;
};

/// Builds the array `label` from the labels of some vertices. The other vertices get -1.
class LabelColumn {
 public:
  explicit LabelColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::int64_t>>(vertices, -1)) {}

  /// Reads vertex numbers within `range` and their labels from two files in parallel.
  /// Errors: as IntegerReader; kInvalidArgument, naming the file: the numbers of labels and of
  /// vertices differ, or a vertex has two different labels.
  Status Read(FileSystem& fs, const Path& numbers, const Path& labels, const IdRange& range);
  void AddTo(Dataset& dataset) &&;

 private:
  std::shared_ptr<std::vector<std::int64_t>> values_;
};

/// Reads a list of integers: a text table with one column, or .npy of one dimension or one column.
/// Errors: as InputStream; kInvalidArgument, naming the file and the line.
class IntegerReader {
 public:
  virtual ~IntegerReader() = default;
  static Result<std::unique_ptr<IntegerReader>> Open(FileSystem& fs, const Path& path);

  /// Returns the next block of integers; the last block may be shorter. Returns empty blocks after
  /// the end.
  Result<std::span<const std::int64_t>> Next();

 protected:
  /// Appends at most `count` integers to `block`, which is empty.
  virtual Status Fill(std::size_t count, std::vector<std::int64_t>& block) = 0;

 private:
  std::vector<std::int64_t> block_;
};

/// Reads a list of at most one block of integers; a longer one is an error.
Result<std::vector<std::int64_t>> ReadIntegers(FileSystem& fs, const Path& path);

/// Returns whether a file or folder exists at `path`. Symbolic links are followed.
bool Exists(FileSystem& fs, const Path& path);

}  // namespace rhizome
