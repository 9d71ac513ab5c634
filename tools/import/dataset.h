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

/// A known data set as Ingest takes it: its files stay where they are, and are read as they are.
struct Dataset {
  IngestOptions options;

  /// What the set has and the store will not, with the reason.
  std::vector<std::string> left_out;

  /// Vertices by type, in the order of their ids; one without a name if there are no types.
  std::vector<VertexRange> vertices;

  /// What options.arrays hold in memory already.
  std::uint64_t held_bytes = 0;

  std::uint64_t vertex_count() const;

  /// The ids of a type. Errors: kInvalidArgument, there is no such type; `where` asks for it.
  Result<IdRange> RangeOf(const std::string& type, const Path& where) const;

  /// Tells the options of the vertices, once all are known, before anything is made for each of
  /// them. `memory_bytes`: what the import may take; 0: no limit. Errors: kInvalidArgument, too
  /// many; a name that cannot be a type's, or that stands twice; kOutOfMemory.
  Status SetVertices(std::uint64_t memory_bytes);
};

using OpenRowsOf = std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)>;

/// The rows of one vertex type in an array.
struct ArrayPart {
  std::string type;
  Path path;
  OpenRowsOf open;
};

/// Adds an array that has rows for some types, the others zeros (or `fill`, one element). Parts
/// that differ in dtype or columns become arrays of their own, `name.type`.
/// Errors: kInvalidArgument, a part has not as many rows as its type has vertices.
Status AddArray(FileSystem& fs, const std::string& name, std::vector<ArrayPart> parts,
                const std::vector<std::byte>& fill, Dataset& dataset);

/// The rows of one edge file, options.edges[file], in an edge attribute; their number is checked as
/// they are read.
struct EdgePart {
  std::size_t file = 0;
  Path path;
  OpenRowsOf open;
};

/// Adds what `parts` tell of edges: integers as int64, other numbers as float32. Edges of files
/// without a part have zeros; parts that differ in kind or columns become attributes of their own,
/// `name.type`. `weight` is the edges' weight if all of them have one number. Names that are taken,
/// by an array or by what edges have anyway, become `edge_name`. To be called after all AddArray.
/// Errors: kInvalidArgument, a part cannot be read.
Status AddEdgeArray(FileSystem& fs, std::string name, std::vector<EdgePart> parts,
                    Dataset& dataset);

/// Which vertices are for training, validation and test: the array `split`.
class SplitColumn {
 public:
  explicit SplitColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::uint8_t>>(vertices, kNone)) {}

  /// Gives `split` (0 train, 1 valid, 2 test) to vertices of a range: those whose numbers in it the
  /// file lists, which is read block by block. Errors: those of IntegerReader; kInvalidArgument
  /// naming the file: a number beyond the range; a vertex in two splits.
  Status Read(FileSystem& fs, const Path& path, const IdRange& range, std::uint8_t split);
  void AddTo(Dataset& dataset) &&;

 private:
  static constexpr std::uint8_t kNone = 255;
  std::shared_ptr<std::vector<std::uint8_t>> values_;
};

/// Labels that are known for some vertices, else -1: the array `label`.
class LabelColumn {
 public:
  explicit LabelColumn(std::uint64_t vertices)
      : values_(std::make_shared<std::vector<std::int64_t>>(vertices, -1)) {}

  /// Reads numbers in a range and their labels side by side. Errors: those of IntegerReader;
  /// kInvalidArgument naming the file: not as many labels as numbers, two labels of one.
  Status Read(FileSystem& fs, const Path& numbers, const Path& labels, const IdRange& range);
  void AddTo(Dataset& dataset) &&;

 private:
  std::shared_ptr<std::vector<std::int64_t>> values_;
};

/// Reads a list of integers: the lines of a text table with one column, or .npy of one dimension
/// or one column. Errors: kInvalidArgument naming the file, and the line; those of InputStream.
class IntegerReader {
 public:
  virtual ~IntegerReader() = default;
  static Result<std::unique_ptr<IntegerReader>> Open(FileSystem& fs, const Path& path);

  /// The next ones, as many as a block has, fewer at the end, none behind it.
  Result<std::span<const std::int64_t>> Next();

 protected:
  /// Appends the next integers to an empty block, at most `count`.
  virtual Status Fill(std::size_t count, std::vector<std::int64_t>& block) = 0;

 private:
  std::vector<std::int64_t> block_;
};

/// Reads a short list, of at most a block: others are refused.
Result<std::vector<std::int64_t>> ReadIntegers(FileSystem& fs, const Path& path);

/// Is there a file or folder? Links are followed.
bool Exists(FileSystem& fs, const Path& path);

}  // namespace rhizome
