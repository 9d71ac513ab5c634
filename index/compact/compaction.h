#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "index/compact/compacted_edges.h"
#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "rhizome/graph_types.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

/// The input of a compaction: a graph at one commit.
struct CompactionInput {
  std::shared_ptr<const Store> store;  ///< a snapshot
  std::shared_ptr<const GraphParts> parts;
  std::shared_ptr<const Delta> delta;
  std::shared_ptr<const DeltaView> view;  ///< null: nothing was written since the generation
  IoPacer* pacer = nullptr;               ///< shared with the graph's writers; may be null

  /// Additions to the edges. If it is not empty, the store must not be written to before the new
  /// generation is current, because commits of the delta do not say how many values an edge has.
  SchemaChange change = {};
};

/// Returns the retention rule for earlier generations: `rule`, overridden by the options.
KeepRule RuleOf(const CompactOptions& options, KeepRule rule);

/// Makes the new generation current. `parts` are its files, read back and verified. `commit`
/// commits it through a handle that is open for writing; it writes only the commit record.
using CommitGeneration = std::function<Status(Store& store)>;
using SwitchGeneration =
    std::function<Status(std::shared_ptr<const GraphParts> parts, const CommitGeneration& commit)>;

/// Writes `input` as the next generation of `store`. The store may be written to at the same time,
/// by this handle or, if it is open for reading, by another process: later commits become the delta
/// of the new generation. Every file is read back and compared before `switch_to` is called. On
/// failure nothing has changed, and the written files are orphans (Store::CollectGarbage).
///
/// Memory: see CompactOptions.
/// Errors: kOutOfSpace, before writing, if the disk has no space for a second copy;
/// kInvalidArgument; kOutOfMemory; kInterrupted; kIoError; kCorruption.
Status CompactGeneration(Store& store, const CompactionInput& input, const CompactOptions& options,
                         const JobControl& control, const SwitchGeneration& switch_to);

}  // namespace internal
}  // namespace rhizome
