#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// Returns the cost of reading own rows that plans and schedules of distributed training assume:
/// the cost for one NVMe drive or, with IoMaker::kMapped, for rows in the page cache. These are
/// constants, so that schedules are the same on all machines.
RHIZOME_API ReadCost ReadsOfRanks(IoMaker io);

/// Bytes of messages between ranks, without headers, as plans count them: a request contains row
/// numbers, a reply contains rows and a checksum for each.
inline constexpr std::uint64_t kRequestRowBytes = 8;
inline constexpr std::uint64_t kReplyChecksumBytes = 4;

/// Number of steps that ranks schedule together by default.
inline constexpr std::uint32_t kRankSuperbatch = 16;

/// Distributed training to plan.
struct RankPlanOptions {
  DataOptions data = {};                  ///< the seeds are the training and validation sets
  std::vector<std::uint32_t> ranks = {};  ///< numbers of ranks to plan for, each at least 1

  /// As in training. `ranks` has the link and the policy for rows of other ranks; absent: defaults.
  /// FeedOptions: cache_bytes is the size of each rank's pool, default 256 MiB; superbatch is by
  /// default 16 steps; overlap, default kAll, or kNone, affects the modelled seconds only.
  MinibatchOptions minibatch = {};
  std::uint32_t epochs = 1;
  std::uint32_t eval_every = 1;  ///< epochs between measurements of the validation set
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  ReadCost disk = {};                ///< set to ReadsOfRanks to get the schedules of training
  double compute_seconds = 0;        ///< per minibatch, without other work; 0: not modelled
  std::uint64_t gradient_bytes = 0;  ///< exchanged between ranks after each training step

  /// Processors per rank. They are shared by computing and by other work: sampling and scheduling,
  /// for which the times of this planning are used, and row transfers. 0: enough that computing is
  /// never delayed.
  double processors = 0;
  double row_seconds = 0;  ///< processor time per row between ranks, of both ranks together
  double own_seconds = 0;  ///< processor time per row from the local disk

  /// Seconds in which a disk reads a row, for the modelled seconds only; 0 if rows are in the page
  /// cache. Absent: derived from `disk`.
  std::optional<double> read_seconds = {};
};

/// The share of one rank in the planned training.
struct RankShare : RankCounts {
  std::uint64_t topology_bytes = 0;  ///< topology of all partitions
  std::uint64_t table_bytes =
      0;  ///< order, homes, checksums of own rows, use counts of all rows, frame contents
  std::uint64_t schedule_bytes = 0;  ///< of its largest superbatch and the one in use

  /// Seconds that its disk, its link in each direction and its computation would take, summed over
  /// superbatches.
  double disk_seconds = 0, in_seconds = 0, out_seconds = 0, compute_seconds = 0;

  std::uint64_t memory_bytes() const {
    return pool_bytes + topology_bytes + table_bytes + schedule_bytes;
  }
};

/// A plan for one number of ranks.
struct RankPlan {
  std::vector<RankShare> shares;  ///< by rank

  /// Modelled duration, minibatch by minibatch, with pipelines running on all ranks (RankClock).
  double seconds = 0;
};

struct RankPlanReport {
  std::uint32_t homes = 1;
  std::string homes_by;  ///< "edgecut", "owner", "file", or "partitions" if the store has no homes
  std::uint64_t vertices = 0;
  std::uint64_t training_vertices = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t steps = 0;        ///< training steps per epoch
  std::uint64_t valid_steps = 0;  ///< validation steps per validated epoch
  std::vector<RankPlan> plans;    ///< one per entry of RankPlanOptions::ranks
};

/// Checks that a store has at least one home for each of `ranks` ranks. Call it before a rank opens
/// the graph. Errors: kInvalidArgument, no ranks, or more ranks than homes; any error of opening
/// the store.
Status CheckRanksOf(const Path& store, std::uint32_t ranks);

/// Plans distributed training (RankOptions): what each rank would store, sample, fetch
/// and send. Needs neither a network nor training. It samples the minibatches of all epochs,
/// including validation, and replays the schedule of each rank's pool, exactly, for any number of
/// ranks. The unit of work is a home: a rank has consecutive homes (partitions, if the store has no
/// homes), their rows, and in every step a minibatch of each. Topology is stored on every rank.
/// Seconds are modelled from the link, the disk and the processors (RankSeconds, RankClock); owners
/// read the rows that they serve from their disk.
///
/// Memory: the graph; 4 bytes per row for each rank of all plans; a superbatch of samples; for
/// policies with NeedsLists, the lists of all rows. Errors: as CheckPrefetch; kInvalidArgument,
/// more ranks than homes, an option out of range, no training vertices; kNotFound, no such array;
/// any error of sampling; kInterrupted.
Result<RankPlanReport> PlanRanks(const GraphSnapshot& graph, const RankPlanOptions& options,
                                 const JobControl& control);

}  // namespace rhizome
