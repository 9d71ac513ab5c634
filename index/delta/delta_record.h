#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "index/delta/delta_run.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The state of the graph before a commit, against which the commit's record is checked.
struct DeltaContext {
  bool symmetric = false;
  bool string_ids = false;
  std::uint32_t attribute_count = 0;  ///< number of attribute values of an edge
  std::uint64_t vertices = 0;
  std::uint64_t vertex_types = 1;
  std::uint64_t edge_types = 1;

  /// Sequence of the previous record. For the first record after the generation, the last commit
  /// that the generation includes.
  std::uint64_t previous = 0;
  bool first = true;

  /// By dictionary, the code after the last text that earlier commits added to it.
  std::map<TextsId, std::int64_t> texts = {};
};

/// Encodes a commit's record in the catalogue: the run with its out-side, each symmetric pair once
/// (storage/FORMAT.md, "Catalogue records"). `previous` chains the records, so that a lost one is
/// detected. The hash of the run's state is known only once the rows are known: see
/// SealDeltaRecord.
std::vector<std::byte> EncodeDeltaRecord(const DeltaRun& run, const DeltaContext& context);

/// Parses and checks a whole record; accesses no file.
/// Errors: kCorruption, naming offset and field; kUnsupported, a newer version.
Result<DeltaRun> DecodeDeltaRecord(std::span<const std::byte> bytes, std::uint64_t sequence,
                                   const DeltaContext& context);

}  // namespace internal
}  // namespace rhizome
