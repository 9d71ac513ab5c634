#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/column.h"
#include "rhizome/index/external_id.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

inline constexpr const char* kVertexIdsPath = "ids/ids.dict";

/// String ids whose bytes do not fit in memory, as VertexIds::Write takes them.
struct StringIds {
  std::vector<std::uint64_t> offsets;  ///< [vertices + 1] of the texts, by vertex id

  /// Vertex ids in ascending order of external id, all distinct; without the deleted ones.
  std::vector<std::uint64_t> sorted;

  /// Gives the bytes of all texts, piece by piece, by vertex id; they are UTF-8.
  std::function<Status(const std::function<Status(std::span<const std::byte>)>& put)> read_bytes;
};

/// External id <-> vertex id. Dense integer ids need no file. A deleted vertex keeps its external
/// id, which another one may have now, and is not found by it. Strings compare as bytes, which for
/// UTF-8 is the order of code points. Format: storage/FORMAT.md, "Vertex ids".
/// Memory: the file; a string's bytes and about 8 more a vertex, an integer's 8 and 4 or less more.
/// Threads: const after Parse.
class VertexIds {
 public:
  VertexIds(VertexIds&&) = default;
  VertexIds& operator=(VertexIds&&) = default;

  static VertexIds Dense(std::uint64_t vertex_count);

  /// Writes the dictionary of `ids` (by vertex id). Errors: kInvalidArgument, a repeated id or one
  /// that is not UTF-8 (named).
  /// `deleted`: sorted.
  static Status Write(ByteSink& sink, const StoreId& store_id, std::span<const std::int64_t> ids,
                      std::span<const VertexId> deleted = {});
  static Status Write(ByteSink& sink, const StoreId& store_id, std::span<const std::string> ids,
                      std::span<const VertexId> deleted = {});
  static Status Write(ByteSink& sink, const StoreId& store_id, const StringIds& ids);

  /// Errors: kCorruption: offsets, order of the sorted side, or UTF-8 do not hold.
  static Result<VertexIds> Parse(SectionFile file, ExternalIdKind kind, std::uint64_t vertex_count);

  /// The deleted vertices alone, sorted; the ids may have been left on disk. Errors: kCorruption.
  static Result<std::vector<VertexId>> ParseDeleted(const SectionFile& file,
                                                    std::uint64_t vertex_count);

  ExternalIdKind kind() const { return kind_; }

  /// Vertices that were deleted.
  std::uint64_t deleted_count() const { return deleted_.size(); }
  std::span<const VertexId> deleted() const { return deleted_; }  ///< sorted
  bool IsDeleted(VertexId vertex) const {
    return !deleted_.empty() && std::binary_search(deleted_.begin(), deleted_.end(), vertex);
  }

  /// An integer id is also found by its canonical decimal text, and a string id that is one by its
  /// integer.
  std::optional<VertexId> Find(const ExternalId& id) const;

  /// `vertex` must be in range.
  ExternalId IdOf(VertexId vertex) const;

  /// Vertices that are not deleted, in ascending order of external id: that at place i of
  /// [0, sorted_count()), and the first place whose id is not below `id`, of the store's kind.
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
  Status CheckSorted();
  Status Corrupt(const std::string& what) const;
  std::string_view StringAt(std::uint64_t vertex) const;
  template <typename Below>
  std::uint64_t SortedBound(Below&& below) const;
  std::optional<VertexId> FindInteger(std::int64_t id) const;
  std::optional<VertexId> FindString(std::string_view id) const;

  std::optional<SectionFile> file_;
  ExternalIdKind kind_ = ExternalIdKind::kDense;
  std::uint64_t vertex_count_ = 0;
  std::span<const std::int64_t> integers_;  // by vertex id
  Column offsets_;                          // [vertices + 1] into bytes_
  std::span<const std::uint8_t> bytes_;
  Column sorted_;  // vertex ids in order of external id
  std::vector<VertexId> deleted_;
};

}  // namespace rhizome::inline internal
