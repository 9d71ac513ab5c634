#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/topology/column.h"
#include "rhizome/graph_types.h"
#include "rhizome/manifest.h"
#include "rhizome/types.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

inline constexpr const char* kVertexIdsPath = "ids/ids.dict";

/// External ids that are read one by one, as an input of VertexIds::Write. A text is its bytes; an
/// integer id is an int64 in native byte order.
struct IdStream {
  using PutId = std::function<Status(std::string_view id)>;
  using PutVertex = std::function<Status(std::uint64_t vertex)>;

  ExternalIdKind kind = ExternalIdKind::kString;
  std::uint64_t vertices = 0;
  std::uint64_t sorted = 0;   ///< number of vertices that are not deleted
  std::uint64_t largest = 0;  ///< the largest of these vertices
  std::uint64_t bytes = 0;    ///< of all ids

  /// Passes the id of each vertex to `put`, by vertex id. Texts must be UTF-8.
  std::function<Status(const PutId& put)> read;

  /// Passes the vertices to `put` in ascending order of external id, all distinct, without the
  /// deleted vertices.
  std::function<Status(const PutVertex& put)> read_sorted;
};

/// Maps external ids to vertex ids and back. Dense integer ids need no file. A deleted vertex keeps
/// its external id, but Find does not return it, and another vertex may have that id now. Strings
/// compare as bytes, which for UTF-8 is the order of code points. Format: storage/FORMAT.md,
/// "Vertex ids".
/// Memory: the file. A string id takes its bytes and about 8 more a vertex; an integer id takes 8
/// bytes and at most 4 more. Of a paged file only the parts that were used, and if vertices were
/// deleted the sorted side.
/// Threads: const after Parse.
class VertexIds {
 public:
  VertexIds(VertexIds&&) = default;
  VertexIds& operator=(VertexIds&&) = default;

  static VertexIds Dense(std::uint64_t vertex_count);

  /// Write the dictionary of `ids` (by vertex id). `deleted` is sorted.
  /// Errors: kInvalidArgument, a repeated id or one that is not UTF-8, naming the id; errors of
  /// `sink`.
  static Status Write(ByteSink& sink, const StoreId& store_id, std::span<const std::int64_t> ids,
                      std::span<const VertexId> deleted = {});
  static Status Write(ByteSink& sink, const StoreId& store_id, std::span<const std::string> ids,
                      std::span<const VertexId> deleted = {});
  static Status Write(ByteSink& sink, const StoreId& store_id, const IdStream& ids);

  /// The ids of a paged file are checked when they are used, but not their order.
  /// Errors: kCorruption, the offsets, the order of the sorted side, or the UTF-8 is wrong.
  static Result<VertexIds> Parse(SectionFile file, ExternalIdKind kind, std::uint64_t vertex_count);

  /// Returns only the deleted vertices, sorted. The ids themselves may be left on disk.
  /// Errors: kCorruption.
  static Result<std::vector<VertexId>> ParseDeleted(const SectionFile& file,
                                                    std::uint64_t vertex_count);

  ExternalIdKind kind() const { return kind_; }

  /// Returns the number of deleted vertices.
  std::uint64_t deleted_count() const { return deleted_.size(); }
  std::span<const VertexId> deleted() const { return deleted_; }  ///< sorted
  bool IsDeleted(VertexId vertex) const {
    return !deleted_.empty() && std::binary_search(deleted_.begin(), deleted_.end(), vertex);
  }

  /// Returns the vertex with this id, or nullopt. An integer id is also found by its canonical
  /// decimal text, and a string id that is a canonical decimal by its integer.
  std::optional<VertexId> Find(const ExternalId& id) const;

  /// `vertex` must be in range.
  ExternalId IdOf(VertexId vertex) const;

  /// The vertices that are not deleted, in ascending order of external id: SortedAt(i) for i in [0,
  /// sorted_count()). LowerBound returns the first position whose id is not below `id`, which must
  /// have the store's kind of ids.
  std::uint64_t sorted_count() const {
    return kind_ == ExternalIdKind::kDense ? vertex_count_ : sorted_.size();
  }
  VertexId SortedAt(std::uint64_t place) const {
    return static_cast<VertexId>(kind_ == ExternalIdKind::kDense ? place : sorted_[place]);
  }
  std::uint64_t LowerBound(const ExternalId& id) const;

 private:
  VertexIds() = default;
  Status ReadIntegers();
  Status ReadStrings();
  Status CheckSorted() const;
  Status Corrupt(const std::string& what) const;
  std::string_view StringAt(std::uint64_t vertex) const;
  std::int64_t IntegerAt(std::uint64_t vertex) const {
    return static_cast<std::int64_t>(integers_[vertex]);
  }
  bool paged() const { return file_ && file_->paged(); }
  template <typename Below>
  std::uint64_t SortedBound(Below&& below) const;
  std::optional<VertexId> FindInteger(std::int64_t id) const;
  std::optional<VertexId> FindString(std::string_view id) const;

  std::optional<SectionFile> file_;
  ExternalIdKind kind_ = ExternalIdKind::kDense;
  std::uint64_t vertex_count_ = 0;
  Column integers_;  // int64, by vertex id
  Column offsets_;   // [vertices + 1] into bytes_
  Column bytes_;
  Column sorted_;  // vertex ids in order of external id
  std::vector<VertexId> deleted_;
};

}  // namespace internal
}  // namespace rhizome
