#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "index/generation/spill.h"
#include "index/topology/vertex_ids.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// A spill file of external ids, encoded as in IdStream, in the order in which they were added.
struct IdSpool {
  SpillFile file;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< of the ids, without their lengths
};

/// Writes an IdSpool.
class IdSpoolWriter {
 public:
  static Result<IdSpoolWriter> Create(SpillSpace& space, std::size_t block_bytes);
  Status Add(std::string_view id);
  Result<IdSpool> Finish();

 private:
  explicit IdSpoolWriter(SpillWriter writer) : writer_(std::move(writer)) {}
  SpillWriter writer_;
  IdSpool spool_;
  std::vector<std::byte> record_;
};

/// Reads an IdSpool in order. Ownership: the spool must outlive it.
class IdSpoolReader {
 public:
  static Result<IdSpoolReader> Open(const IdSpool& spool);

  /// Returns the next id, valid until the next call; nullopt at the end.
  Result<std::optional<std::string_view>> Next();

 private:
  explicit IdSpoolReader(SpillReader reader) : reader_(std::move(reader)) {}
  SpillReader reader_;
  std::span<const std::byte> rest_;
};

/// Returns the ids in another order: id i becomes number_of(i), where the numbers are a permutation
/// of [0, ids.count). The ids are scattered to files that each fit in `memory_bytes`.
/// Errors: any error of spilling; kInterrupted.
Result<IdSpool> ReorderIds(SpillSpace& space, IdSpool ids,
                           const std::function<std::uint64_t(std::uint64_t)>& number_of,
                           std::uint64_t memory_bytes, const JobControl& control);

/// The external ids of a graph in spill files.
struct SpilledDictionary {
  IdSpool ids;       ///< by vertex id
  SpillFile sorted;  ///< uint32: the vertex ids in ascending order of external id

  /// Returns the ids as an input of VertexIds::Write.
  /// Ownership: this object must outlive the result.
  IdStream Stream(ExternalIdKind kind) const;
};

}  // namespace internal
}  // namespace rhizome
