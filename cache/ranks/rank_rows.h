#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/cache/feed_pipeline.h"
#include "rhizome/cache/rank_plan.h"
#include "rhizome/cache/remote_keepers.h"
#include "rhizome/cache/remote_rows.h"
#include "rhizome/cache/row_homes.h"
#include "rhizome/cache/row_service.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rows of a rank in a training over ranks: its own on its disk, which it gives to others, and
/// those of others, which it asks for. Counts what the rank does, as PlanRanks foretells it.
/// Threads: Serves and Counts any. Ownership: graph and transport must outlive it, and it the
/// pipeline.
class RankRows {
 public:
  /// `link`: of a rank, and `io`, how its rows are read: for the schedule. Errors: kNotFound, no
  /// such array; those of reading the delta.
  static Result<std::unique_ptr<RankRows>> Create(const GraphSnapshot& graph,
                                                  const std::string& features,
                                                  const RowHomes& homes, Transport& transport,
                                                  const LinkModel& link, IoMaker io);

  ~RankRows();

  /// Finds what decides about rows of other ranks. Call it before Feed. `superbatch`: steps.
  /// Errors: those of PrefetchOutlook.
  Status Keep(const PrefetchOutlook& outlook, const HomeEpochs& epochs, std::uint64_t superbatch);

  /// Lets a pipeline read through this, which serves others from when that opens. It takes the
  /// place of FeedPipelineOptions::complete.
  void Feed(FeedPipelineOptions& pipeline);

  /// Returns what was done since. `disk_rows`: of the pipeline's reader.
  RankCounts Counts(std::uint64_t disk_rows) const;

  /// Processor time for other ranks, and the time that reading waited for their replies.
  double serve_seconds() const;

 private:
  RankRows(Transport& transport, std::vector<std::uint16_t> rank_of)
      : transport_(transport), rank_of_(std::move(rank_of)) {}
  RowRanks view() const { return {.rank_of = rank_of_, .rank = transport_.rank()}; }
  Result<std::unique_ptr<RowFetcher>> MakeFetcher(std::unique_ptr<RowReader> local,
                                                  const ArrayEntry& array);
  void Count(const Minibatch& minibatch);

  Transport& transport_;
  const std::vector<std::uint16_t> rank_of_;  // by row
  std::uint64_t row_bytes_ = 1;
  RowsOverRanks costs_;
  std::unique_ptr<RowService> service_;
  std::unique_ptr<RemoteRows> remote_;
  mutable Mutex mutex_;
  RankCounts counts_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace internal
}  // namespace rhizome
