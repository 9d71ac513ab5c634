#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/index/delta_run.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// What a record of the delta must fit to: the graph before its commit.
struct DeltaContext {
  bool symmetric = false;
  bool string_ids = false;
  std::uint32_t attribute_count = 0;  ///< values that an edge has in its attributes
  std::uint64_t vertices = 0;
  std::uint64_t vertex_types = 1;
  std::uint64_t edge_types = 1;

  /// Sequence of the record before; of the first record, which follows one that the generation
  /// holds, the last commit in the generation.
  std::uint64_t previous = 0;
  bool first = true;
};

/// A commit's record in the catalogue: the run, its out-side once for each pair (storage/FORMAT.md,
/// "Delta records"). `previous` chains the records: one that was lost is noticed.
std::vector<std::byte> EncodeDeltaRecord(const DeltaRun& run, const DeltaContext& context);

/// Parses and checks everything; touches no file. Errors: kCorruption naming offset and field.
/// kUnsupported, a newer version.
Result<DeltaRun> DecodeDeltaRecord(std::span<const std::byte> bytes, std::uint64_t sequence,
                                   const DeltaContext& context);

}  // namespace rhizome::inline internal
