#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/neighbor_sampling.h"
#include "rhizome/cache/overlap.h"
#include "rhizome/cache/prefetch.h"
#include "rhizome/cache/prior.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/read_cost.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace RHIZOME_API rhizome {

/// A network between ranks, as a plan reckons with it.
struct LinkModel {
  double bits_per_second = 1e10;   ///< of a rank, each way
  double latency_seconds = 50e-6;  ///< one way
};

/// Returns the reads of own rows that plans and schedules over ranks reckon with: those of one NVMe
/// drive, or, with IoMaker::kMapped, those of rows in the page cache. They are constants, so that
/// schedules are the same on all machines.
RHIZOME_API ReadCost ReadsOfRanks(IoMaker io);

/// Bytes of messages between ranks, as a plan counts them beside their headers: a request names
/// rows, a reply has the rows, each with its checksum.
inline constexpr std::uint64_t kRequestRowBytes = 8;
inline constexpr std::uint64_t kReplyChecksumBytes = 4;

/// A training whose rows are spread over ranks, to be planned.
struct RankPlanOptions {
  std::string features = "feat";
  std::string split = "split";            ///< array, or NAME:K; its training vertices are seeds,
                                          ///< and those of its validation set
  std::vector<std::uint32_t> ranks = {};  ///< numbers of ranks, each at least 1
  std::vector<std::int64_t> fanouts = {10, 10};
  std::vector<std::int64_t> eval_fanouts = {};  ///< of the validation set; empty: `fanouts`
  NeighborSampling sampling = {};
  std::uint64_t batch_size = 1000;  ///< seeds of a home in a step, on average
  std::uint32_t epochs = 1;
  std::uint32_t eval_every = 1;  ///< epochs, after which the validation set is measured
  std::uint64_t steps = 0;       ///< that learn, of an epoch at most; 0: all
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  std::uint32_t superbatch = 16;  ///< steps that are scheduled together; not of Prefetch::kEpoch
  std::uint64_t pool_bytes = std::uint64_t{256} << 20;  ///< of each rank, for rows
  Prior prior = Prior::kUses;
  PrefetchOptions prefetch = {};
  Overlap overlap = Overlap::kAll;  ///< or kNone, for the modelled seconds
  LinkModel link = {};
  ReadCost disk = {};                ///< ReadsOfRanks, for schedules as training has them
  double compute_seconds = 0;        ///< of a minibatch, by itself; 0: left out
  std::uint64_t gradient_bytes = 0;  ///< that ranks add up after a step that learns

  /// Processors of a rank, which what it does beside computing takes too: sampling and schedules,
  /// for which the time of this planning is taken, and rows; 0: enough of them that nothing delays
  /// computing.
  double processors = 0;
  double row_seconds = 0;  ///< of processor, of a row that is brought, at asker and owner together
  double own_seconds = 0;  ///< of processor, of a row of the rank's own that is brought

  /// Seconds in which a disk reads a row, for the modelled seconds alone: 0 where rows come out of
  /// the page cache. Absent: as `disk` says.
  std::optional<double> read_seconds = {};
};

/// Counts of what one rank has and does in a training over ranks, counted over all its epochs.
struct RankCounts {
  std::uint32_t first_home = 0, homes = 0;  ///< consecutive ones
  std::uint64_t rows = 0;                   ///< of its homes
  std::uint64_t training_vertices = 0;
  std::uint64_t minibatches = 0;
  std::uint64_t edges = 0;                  ///< sampled
  std::uint64_t rows_requested = 0;         ///< by its minibatches, each its distinct rows
  std::uint64_t remote_rows_requested = 0;  ///< of those, of other ranks
  std::uint64_t disk_rows = 0;    ///< fetched from its own disk, to fill the pool included
  std::uint64_t remote_rows = 0;  ///< fetched from other ranks, likewise
  std::uint64_t served_rows = 0;  ///< fetched by other ranks from it
  std::uint64_t requests = 0;     ///< sent; each has a reply
  std::uint64_t served_requests = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  ///< requests, replies and headers
  std::uint64_t pool_bytes = 0;
};

/// The share of one rank in a training that is planned.
struct RankShare : RankCounts {
  std::uint64_t topology_bytes = 0;  ///< of all partitions
  std::uint64_t table_bytes =
      0;  ///< order, homes, checksums of its rows, uses of all rows, what frames hold
  std::uint64_t schedule_bytes = 0;  ///< of its largest superbatch, and the one in use

  /// Seconds, added up over superbatches, that its disk, and its link each way, would work; and
  /// that it would compute.
  double disk_seconds = 0, in_seconds = 0, out_seconds = 0, compute_seconds = 0;

  std::uint64_t memory_bytes() const {
    return pool_bytes + topology_bytes + table_bytes + schedule_bytes;
  }
};

/// A plan for one number of ranks.
struct RankPlan {
  std::vector<RankShare> shares;  ///< by rank

  /// Modelled, minibatch by minibatch, as pipelines on all ranks would work (RankClock).
  double seconds = 0;
};

struct RankPlanReport {
  std::uint32_t homes = 1;
  std::string homes_by;  ///< "edgecut", "owner", "file", or "partitions" without homes
  std::uint64_t vertices = 0;
  std::uint64_t training_vertices = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t steps = 0;        ///< of an epoch, that learn
  std::uint64_t valid_steps = 0;  ///< of an epoch whose end is measured
  std::vector<RankPlan> plans;    ///< by RankPlanOptions::ranks
};

/// Checks that a store has a home for each of so many ranks, before any of them opens its graph.
/// Errors: kInvalidArgument, no ranks, or more than homes; those of opening the store.
Status CheckRanksOf(const Path& store, std::uint32_t ranks);

/// Says what each of several ranks would hold, sample, fetch and send in a training over ranks
/// (TrainOptions::transport), without a network and without training: it samples the epochs'
/// minibatches, those that measure the validation set too, and replays the schedule of each rank's
/// pool, exactly and in any number of ranks. A home is the unit of work: a rank has consecutive
/// homes (of a store without homes: partitions), their rows, and in every step a minibatch of each.
/// Topology is on every rank. Seconds are modelled from the link, the disk and the processors
/// (RankSeconds, RankClock), with owners that read what they serve from their disk.
///
/// Memory: the graph; for each of all ranks together 4 bytes a row, and a superbatch of samples;
/// with policies that NeedsLists says, the lists of all rows. Errors: those of CheckPrefetch;
/// kInvalidArgument, more ranks than homes, an option out of range, no training vertices;
/// kNotFound, no such array; those of sampling; kInterrupted.
Result<RankPlanReport> PlanRanks(const GraphSnapshot& graph, const RankPlanOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
