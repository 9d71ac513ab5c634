#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/feed/feed_pipeline.h"
#include "cache/ranks/rank_plan.h"
#include "cache/ranks/remote_cache_policies.h"
#include "cache/ranks/remote_rows.h"
#include "cache/ranks/row_homes.h"
#include "cache/ranks/row_service.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rows of one rank in distributed training: serves its own rows from its disk to other ranks,
/// and fetches rows of other ranks. Counts what the rank does, in the terms of PlanRanks.
/// Threads: Counts and serve_seconds from any thread. Ownership: graph and transport must outlive
/// it, and it must outlive the pipeline.
class RankRows {
 public:
  /// Creates the table of row locations. `link` is the network of a rank, and `io` how its rows are
  /// read; both determine the costs in the schedule. Errors: kNotFound, no such array; any error of
  /// reading the delta.
  static Result<std::unique_ptr<RankRows>> Create(const GraphSnapshot& graph,
                                                  const std::string& features,
                                                  const RowHomes& homes, Transport& transport,
                                                  const LinkModel& link, IoMaker io);

  ~RankRows();

  /// Selects the remote cache policy. Call it before Feed. `superbatch`: in steps. Errors: as
  /// PrefetchLookahead.
  Status Keep(const PrefetchLookahead& outlook, const HomeEpochs& epochs, std::uint64_t superbatch);

  /// Makes a pipeline read rows through this object, which serves other ranks from the time that
  /// the pipeline opens. Sets FeedPipelineOptions::complete.
  void Feed(FeedPipelineOptions& pipeline);

  /// Returns the counts since then. `disk_rows` is the count of the pipeline's reader.
  RankCounts Counts(std::uint64_t disk_rows) const;

  /// Processor time spent on serving other ranks.
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
