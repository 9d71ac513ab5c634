#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "rhizome/index/compacted_edges.h"
#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/graph_types.h"
#include "rhizome/storage/io_pacer.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// What a compaction works on: a graph as it is at one commit.
struct CompactionInput {
  std::shared_ptr<const Store> store;  ///< a snapshot
  std::shared_ptr<const GraphParts> parts;
  std::shared_ptr<const Delta> delta;
  std::shared_ptr<const DeltaView> view;  ///< not null: something was written
  IoPacer* pacer = nullptr;               ///< of the graph's writers; may be null
};

/// The store's rule for earlier generations, as far as the options do not say otherwise.
KeepRule RuleOf(const CompactOptions& options, KeepRule rule);

/// Makes the new generation current. `parts` are its files, read back and verified; `commit` is the
/// commit itself, and writes no file but the manifest.
using SwitchGeneration = std::function<Status(std::shared_ptr<const GraphParts> parts,
                                              const std::function<Status()>& commit)>;

/// Writes `input` as the next generation of `store`, which may be written to meanwhile: later
/// commits become the delta of the new one. Every file is read back and compared before
/// `switch_to` is called. On failure nothing has changed, and what was written is an orphan
/// (Store::CollectGarbage).
///
/// Memory: see CompactOptions. Errors: kOutOfSpace, beforehand if the disk has no room for a second
/// copy; kInvalidArgument; kOutOfMemory; kInterrupted; kIoError; kCorruption.
Status CompactGeneration(Store& store, const CompactionInput& input, const CompactOptions& options,
                         const JobControl& control, const SwitchGeneration& switch_to);

}  // namespace rhizome::inline internal
