#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/ingest.h"
#include "rhizome/storage/file_system.h"

namespace rhizome {

/// A known data set in the form that Ingest takes. Its files stay where they are and are read in
/// place.
struct Dataset {
  IngestOptions options;

  /// Parts of the data set that the store will not have, each with the reason.
  std::vector<std::string> left_out;

  /// Vertices by type, in the order of their ids; a single unnamed range if there are no types.
  std::vector<VertexRange> vertices;

  /// Memory that options.arrays hold already.
  std::uint64_t held_bytes = 0;

  std::uint64_t vertex_count() const;

  /// Returns the ids of a type. Errors: kInvalidArgument, there is no such type; the message names
  /// `where`.
  Result<IdRange> RangeOf(const std::string& type, const Path& where) const;

  /// Sets the vertices in `options`. Call once all are known, before anything is made for each of
  /// them. `memory_bytes` is the import's limit (0: none). Errors: kInvalidArgument, too many
  /// vertices, or a type name that is malformed or occurs twice; kOutOfMemory.
  Status SetVertices(std::uint64_t memory_bytes);
};

using OpenRowsOf = std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)>;

/// The rows of one vertex type in an array.
struct ArrayPart {
  std::string type;
  Path path;
  OpenRowsOf open;
};

/// Adds an array that has rows for some types; other vertices get zeros (or `fill`, one element).
/// Parts that differ in dtype or columns become arrays of their own, `name.type`.
/// Errors: kInvalidArgument, a part has not as many rows as its type has vertices.
Status AddArray(FileSystem& fs, const std::string& name, std::vector<ArrayPart> parts,
                const std::vector<std::byte>& fill, Dataset& dataset);

/// The rows of one edge file, options.edges[file], in an edge attribute. Their number is checked
/// when they are read.
struct EdgePart {
  std::size_t file = 0;
  Path path;
  OpenRowsOf open;
};

/// Adds an edge attribute made of `parts`: integers become int64, other numbers float32. Edges of
/// files without a part get zeros; parts that differ in kind or columns become attributes of their
/// own, `name.type`. `weight` becomes the edges' weight if every edge file has a part with one
/// number an edge. A name that is taken, by an array or by a field that edges have anyway, becomes
/// `edge_name`. Call after all AddArray.
/// Errors: kInvalidArgument, a part cannot be read.
Status AddEdgeArray(FileSystem& fs, std::string name, std::vector<EdgePart> parts,
                    Dataset& dataset);

/// Builds the array `split`, which divides vertices into training, validation and test sets.
class SplitColumn {
 public:
  explicit SplitColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::uint8_t>>(vertices, kNone)) {}

  /// Reads a file of numbers within `range`, block by block, and puts those vertices into `split`
  /// (0 train, 1 valid, 2 test). Errors: those of IntegerReader; kInvalidArgument, naming the file:
  /// a number out of range, or a vertex in two splits.
  Status Read(FileSystem& fs, const Path& path, const IdRange& range, std::uint8_t split);
  void AddTo(Dataset& dataset) &&;

 private:
  static constexpr std::uint8_t kNone = 255;
  std::shared_ptr<std::vector<std::uint8_t>> values_;
};

/// Builds the array `label` from labels of some vertices; the others get -1.
class LabelColumn {
 public:
  explicit LabelColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::int64_t>>(vertices, -1)) {}

  /// Reads numbers within `range` and their labels in parallel. Errors: those of IntegerReader;
  /// kInvalidArgument, naming the file: not as many labels as numbers, or two labels of one vertex.
  Status Read(FileSystem& fs, const Path& numbers, const Path& labels, const IdRange& range);
  void AddTo(Dataset& dataset) &&;

 private:
  std::shared_ptr<std::vector<std::int64_t>> values_;
};

/// Reads a list of integers: a text table with one column, or .npy of one dimension or one column.
/// Errors: kInvalidArgument, naming the file and the line; those of InputStream.
class IntegerReader {
 public:
  virtual ~IntegerReader() = default;
  static Result<std::unique_ptr<IntegerReader>> Open(FileSystem& fs, const Path& path);

  /// Returns the next block of integers, a shorter one at the end, then empty ones.
  Result<std::span<const std::int64_t>> Next();

 protected:
  /// Appends the next integers, at most `count`, to an empty block.
  virtual Status Fill(std::size_t count, std::vector<std::int64_t>& block) = 0;

 private:
  std::vector<std::int64_t> block_;
};

/// Reads a short list, of at most one block; longer ones are refused.
Result<std::vector<std::int64_t>> ReadIntegers(FileSystem& fs, const Path& path);

/// Returns whether there is a file or folder at `path`. Links are followed.
bool Exists(FileSystem& fs, const Path& path);

}  // namespace rhizome
