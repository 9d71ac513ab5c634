#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/cache/minibatch.h"
#include "rhizome/cache/overlap.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/prior.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/sampler_options.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// Settings fixed when a Loader opens. `sampler.fanouts`, `features`, and either `seeds` or `split`
/// must be given.
struct LoaderOptions {
  /// The samples to draw around the seeds: any that a Sampler draws. Its `seed` also determines the
  /// order of the seeds.
  SamplerOptions sampler = {};

  /// The array of feature rows, float32 or float16, of layout kRow. With `normalize` every row is
  /// divided by the sum of its absolute values (rows of zeros stay), and is float32.
  std::string features = {};
  bool normalize = false;

  /// The vertices that an epoch goes over, each once: these, which are distinct; or the set `set`
  /// of the array `split`, of dtype uint8 with one column.
  std::vector<VertexId> seeds = {};
  std::string split = {};
  Split set = Split::kTrain;

  /// The times of the seeds, if samples are temporal (`sampler.times`), and only then: one for each
  /// of `seeds`; or an array, int64 or int32 with one column, that has those of vertices as seeds.
  std::vector<std::int64_t> seed_times = {};
  std::string seed_time_array = {};

  /// Fill Minibatch::labels from this array, int32 or int64 with one column; every seed must have a
  /// label. Empty: none.
  std::string labels = {};

  /// Fill Minibatch::degrees: of every vertex in the whole graph, in the direction that is walked.
  bool degrees = false;

  std::uint64_t batch_size = 1000;  ///< seeds of a minibatch
  bool drop_last = false;           ///< leave out the minibatch of an epoch that has fewer seeds
  bool shuffle = true;              ///< an order of each epoch's own; else as given, or by id

  /// This is one of `ranks` loaders, of as many processes, which divide each epoch among them: all
  /// have the same options but for `rank`, from 0. Each has equally many minibatches, so that they
  /// can be computed in step. Minibatch i of rank r is minibatch i * ranks + r of a loader that is
  /// alone, as long as there are `batch_size` seeds for every rank; the seeds that are left are
  /// divided evenly (if they are fewer than the ranks, together with the round before). drop_last
  /// leaves them out. Range of `ranks`: [1, 2^20].
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;

  /// Range [0, 2^23]; 0: without an end. Minibatches of the next epoch are prepared while the last
  /// ones of an epoch are used, so that more epochs are asked of one Loader, not of many.
  std::uint32_t epochs = 1;

  /// Minibatches of this rank to leave out at the beginning, of all epochs: what position() said
  /// when a job was stopped. What follows is the same as if it had not been.
  std::uint64_t first = 0;

  /// Bound on what the loader takes, in bytes: rows, schedules, minibatches that are prepared and
  /// one that the caller has (LoaderMemory). The graph that is open is not counted. 0: no bound,
  /// and up to 1 GiB for the cache.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;

  /// The cache policy. kBelady reads the fewest rows; kStatic keeps those that a superbatch asks
  /// for most often.
  PolicyKind policy = PolicyKind::kBelady;

  /// The worth of rows that a superbatch does not ask for again, where the policy takes a prior.
  Prior prior = Prior::kUses;

  /// Minibatches that are sampled ahead and scheduled together; 0: chosen, from a trial that takes
  /// a second at most.
  std::uint32_t superbatch = 0;
  IoMaker io = IoMaker::kAuto;

  /// Names the folder for samples below Store::scratch(); where another loader has it, a number is
  /// appended. It is removed at the end.
  std::string job = "feed";
};

/// How a loader divides its memory, in bytes: estimates from its first minibatch.
struct LoaderMemory {
  std::uint64_t held = 0;       ///< seeds, labels, tables of the sampler
  std::uint64_t working = 0;    ///< minibatches, rows beside the cache, read buffers, checksums
  std::uint64_t schedules = 0;  ///< of the superbatch in use and the next one
  std::uint64_t cache = 0;      ///< feature rows that are kept
  std::uint64_t neighbor_cache =
      0;                         ///< 0 where lists are in memory; kChangeset: in turn with cache
  std::uint32_t superbatch = 0;  ///< minibatches, a count
  Overlap overlap = Overlap::kAll;

  std::uint64_t total_bytes() const;
};

/// The counts and times of an epoch so far.
struct LoaderReport {
  std::uint64_t epoch = 0;
  std::uint64_t minibatches = 0;  ///< delivered
  std::uint64_t seeds = 0;        ///< of those
  MinibatchCosts costs = {};      ///< summed; hits and misses, bytes, seconds of each stage
  double wait_seconds = 0;        ///< the caller waited in Next
};

/// Feeds a program with minibatches: sampled subgraphs with the feature rows (and labels) of their
/// vertices, read from disk, for graphs whose features exceed memory. Minibatches are sampled ahead
/// into a scratch file, a *superbatch* at a time, so that the cache of rows knows what will be
/// asked for and keeps what is needed soonest (Belady's rule); meanwhile the superbatch before is
/// read in deep batches of direct reads, and the caller computes.
///
/// Minibatch k of epoch e depends on the graph as it was at Open, on the seeds, `batch_size`,
/// `shuffle`, `drop_last`, the ranks and the sampler's options; not on threads, memory, policy,
/// superbatch, nor on what was asked for before. Its subgraph is what Sampler::Sample returns for
/// its seeds and Minibatch::tag (and Minibatch::seed_times).
///
/// Source: Ginex (VLDB 2022): superbatches as inspector and executor (section 3.1), the neighbour
/// cache (3.2), and the optimal feature cache (3.3, 3.4). There a superbatch is sampled while the
/// one before is scheduled; here also while it is trained on, and the caller computes on the
/// cache's own rows.
///
/// Memory: LoaderOptions::memory_bytes; on disk, two superbatches of samples.
/// Threads: one at a time; two of its own, and those of the sampler. JobControl::Cancel from any.
/// A forked child may only leave it alone.
/// Ownership: keeps a snapshot of the graph; `control` and the FileSystem must outlive it, and it
/// all minibatches that it delivered.
class Loader {
 public:
  /// Samples the first minibatch, divides the memory, and starts to prepare. `control` is asked
  /// whether to stop, then and later; nothing is reported to it.
  /// Errors: kInvalidArgument, no fanouts, other options out of range or that exclude each other,
  /// no seeds, a seed twice, or one that is no vertex or has no label (named), fewer seeds than
  /// minibatches, an array of a wrong dtype, shape or layout; kNotFound, no such array;
  /// kOutOfMemory, the bound is too small: the message says how much is needed; those of
  /// Sampler::Create, of reading arrays (kCorruption, kIoError) and of writing the scratch
  /// (kOutOfSpace, kPermissionDenied); kInterrupted.
  static Result<std::unique_ptr<Loader>> Open(const Graph& graph, const LoaderOptions& options,
                                              const JobControl& control);

  /// Stops its threads, whatever they do, and removes its scratch.
  ~Loader();

  /// The next minibatch; nothing at the end of each epoch, once, and for ever after the last one.
  /// Destroy those that are done first: their rows take the room of those to come.
  /// Errors: kInterrupted, cancelled; those of sampling, of reading and of the scratch, once all
  /// before them was delivered; kOutOfMemory, many minibatches are held. After an error there is
  /// nothing more.
  Result<std::optional<Minibatch>> Next();

  std::uint64_t seed_count() const;            ///< of an epoch, of all ranks, before drop_last
  std::uint64_t minibatches_of_epoch() const;  ///< of this rank
  std::int64_t classes() const;                ///< 1 + the largest label of the array; 0: no labels
  std::uint64_t position()
      const;  ///< minibatches done of all epochs, LoaderOptions::first included

  /// Reports on the epoch that runs, or that Next has just ended. An epoch that began at
  /// LoaderOptions::first counts from there.
  LoaderReport report() const;
  const LoaderMemory& memory() const;

 private:
  class Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
