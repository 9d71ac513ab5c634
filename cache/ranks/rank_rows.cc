#include "cache/ranks/rank_rows.h"

#include <algorithm>
#include <utility>

#include "cache/feed/minibatch_sampler.h"
#include "cache/ranks/row_costs.h"

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<RankRows>> RankRows::Create(const GraphSnapshot& graph,
                                                   const std::string& features,
                                                   const RowHomes& homes, Transport& transport,
                                                   const LinkModel& link, IoMaker io) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph.store().OpenArray(features));
  const ArrayEntry& entry = array->entry();
  std::unique_ptr<RankRows> rows(
      new RankRows(transport, homes.RanksOfRows(graph, entry, transport.ranks())));
  // Uses the disk costs of the plan, not of this machine: schedules must be the same on all
  // machines.
  rows->costs_ = WithCosts(rows->view(), ReadsOfRanks(io), link, entry.row_bytes());
  rows->row_bytes_ = std::max<std::uint64_t>(entry.row_bytes(), 1);
  const MutexLock lock(rows->mutex_);
  for (const std::uint16_t home : homes.of_row)
    rows->counts_.rows += homes.RankOf(home, transport.ranks()) == transport.rank();
  return rows;
}

RankRows::~RankRows() = default;

Status RankRows::Keep(const PrefetchLookahead& outlook, const HomeEpochs& epochs,
                      std::uint64_t superbatch) {
  const HomeRange own = HomesOfRank(transport_.rank(), epochs.homes(), transport_.ranks());
  RHIZOME_ASSIGN_OR_RETURN(costs_.keeper, outlook.RemotePolicyFactoryOfRank(
                                              view(), own, epochs, superbatch, row_bytes_));
  return Status::Ok();
}

void RankRows::Feed(FeedPipelineOptions& pipeline) {
  pipeline.over_ranks = costs_;
  pipeline.fetcher = [this](std::unique_ptr<RowReader> local, const ArrayEntry& array) {
    return MakeFetcher(std::move(local), array);
  };
  pipeline.complete = [this](Minibatch& minibatch) {
    Count(minibatch);
    return Status::Ok();
  };
}

Result<std::unique_ptr<RowFetcher>> RankRows::MakeFetcher(std::unique_ptr<RowReader> local,
                                                          const ArrayEntry& array) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> serving, local->Another());
  RHIZOME_ASSIGN_OR_RETURN(service_,
                           RowService::Start(transport_, std::move(serving), array, view()));
  remote_ = std::make_unique<RemoteRows>(transport_, array, view());
  return std::make_unique<RowsByHome>(std::move(local), *remote_, view());
}

void RankRows::Count(const Minibatch& minibatch) {
  // Vertices in different parts of a disjoint sample can share a row.
  const DistinctRows distinct =
      minibatch.seed_of.empty() ? DistinctRows() : DistinctRowsOf(minibatch.rows);
  const std::vector<Row>& rows = minibatch.seed_of.empty() ? minibatch.rows : distinct.rows;
  std::uint64_t remote = 0;
  for (const Row row : rows) remote += !view().IsOwn(row);
  const MutexLock lock(mutex_);
  ++counts_.minibatches;
  counts_.edges += minibatch.neighbors.size();
  counts_.rows_requested += rows.size();
  counts_.remote_rows_requested += remote;
}

RankCounts RankRows::Counts(std::uint64_t disk_rows) const {
  const RemoteRowsStats asked = remote_ == nullptr ? RemoteRowsStats() : remote_->stats();
  const RowServiceStats served = service_ == nullptr ? RowServiceStats() : service_->stats();
  const MutexLock lock(mutex_);
  RankCounts counts = counts_;
  counts.disk_rows = disk_rows;
  counts.remote_rows = asked.rows;
  counts.requests = asked.requests;
  counts.served_rows = served.rows;
  counts.served_requests = served.requests;
  counts.bytes_in = asked.bytes_in + served.bytes_in;
  counts.bytes_out = asked.bytes_out + served.bytes_out;
  return counts;
}

double RankRows::serve_seconds() const {
  return service_ == nullptr ? 0 : service_->stats().processor_seconds;
}

}  // namespace internal
}  // namespace rhizome
