#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// The array with the input features of the vertices of one type.
struct FeatureInput {
  std::string vertex_type;  ///< a name in Graph::vertex_types

  /// Empty: vertices of this type have no features. "learned:64": they have rows of 64 numbers that
  /// are learned with the model; only in training on minibatches.
  std::string array;
  friend bool operator==(const FeatureInput&, const FeatureInput&) = default;
};

/// How schedules of consecutive superbatches value rows that the current superbatch does not
/// request again.
enum class Prior : std::uint8_t {
  kNone,  ///< worth nothing
  kUses,  ///< by the number of requests so far
};

/// Returns "none" or "uses".
std::string_view PriorName(Prior prior);

/// The stages of training that overlap.
enum class Overlap : std::uint8_t {
  /// Superbatch k + 1 is sampled and scheduled while superbatch k is trained on. The caches of
  /// lists and of features share the memory.
  kAll,

  /// Superbatch k + 1 is sampled while superbatch k is scheduled, then k is trained on. The two
  /// caches use all of the memory in turn (Ginex, section 3.1). This reduces reads if memory is
  /// short, but no sampling takes place while the model computes.
  kChangeset,

  /// Superbatches are sampled and scheduled as with kAll, but no row is read before the step that
  /// needs it is requested, as in DistDGL without prefetching. For comparison.
  kNone,
};
inline std::string_view OverlapName(Overlap overlap) {
  if (overlap == Overlap::kNone) return "none";
  return overlap == Overlap::kAll ? "all" : "changeset";
}

/// How minibatches are prepared: sampled a superbatch ahead, scheduled, and served from a cache.
/// Shared by Loader, by training on minibatches, and by plans of training over ranks.
struct FeedOptions {
  /// Policy of the row cache. kBelady reads the fewest rows. kStatic keeps the rows that a
  /// superbatch requests most often.
  PolicyKind cache = PolicyKind::kBelady;

  /// Size of the row cache; default: what the memory limit leaves, or up to 1 GiB without a limit.
  std::optional<std::uint64_t> cache_bytes = {};

  /// For lists on disk: size of the neighbour cache; 0: none. Default: all lists if they fit into a
  /// quarter of the memory and into 256 MiB, or in turn with the row cache (Overlap::kChangeset);
  /// else none, and several minibatches are sampled together in sweeps over the lists.
  std::optional<std::uint64_t> neighbor_cache_bytes = {};

  /// Number of minibatches that are sampled ahead and scheduled together. 0: chosen by a trial of
  /// up to one second.
  std::uint32_t superbatch = 0;
  std::optional<Overlap> overlap = {};  ///< default: chosen
  Prior prior = Prior::kUses;           ///< for policies with TakesPrior
};

/// Counts of what one rank stores and does in distributed training, over all epochs.
struct RankCounts {
  std::uint32_t first_home = 0, homes = 0;  ///< consecutive homes
  std::uint64_t rows = 0;                   ///< rows of its homes
  std::uint64_t training_vertices = 0;
  std::uint64_t minibatches = 0;
  std::uint64_t edges = 0;                  ///< sampled edges
  std::uint64_t rows_requested = 0;         ///< by its minibatches, distinct rows of each
  std::uint64_t remote_rows_requested = 0;  ///< part of these that other ranks own
  std::uint64_t disk_rows = 0;              ///< fetched from its own disk, including prefill
  std::uint64_t remote_rows = 0;            ///< fetched from other ranks, including prefill
  std::uint64_t served_rows = 0;            ///< fetched from it by other ranks
  std::uint64_t requests = 0;               ///< sent requests; each has a reply
  std::uint64_t served_requests = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;  ///< requests, replies and headers
  std::uint64_t pool_bytes = 0;
};

/// Policies for rows of other ranks: which of them a rank caches, and when they are fetched.
///
/// With kBelady, one schedule manages the whole pool, with rows from the local disk and from other
/// ranks, weighted by their costs. The other policies implement other systems for comparison. They
/// manage a part of the pool for rows of other ranks; the schedule manages the rest for the rank's
/// own rows.
enum class Prefetch : std::uint8_t {
  kBelady,

  /// MassiveGNN ("Prefetching for Distributed-Memory GNN Training", Algorithms 1 and 2): initially
  /// caches the neighbours of own rows with the highest degree. At the end of each superbatch,
  /// which is its interval Delta, scores determine which of them are replaced.
  kScored,

  /// SALIENT++ (MLSys 2023): caches, for the whole job, the rows that a minibatch most probably
  /// needs, by vertex-inclusion probability.
  kVip,

  /// RapidGNN (arXiv 2505.10806): caches, in each epoch, the rows that the epoch requests most
  /// often. A superbatch is an epoch.
  kEpoch,
  kStatic,  ///< for the whole job, the neighbours of own rows with the highest degree
  kLru,     ///< least recently used eviction
  kNone,    ///< no cache: rows are fetched when a minibatch requests them, as in DistDGL
};

struct PrefetchOptions {
  Prefetch policy = Prefetch::kBelady;

  /// Bytes of the pool for rows of other ranks; absent: half of the pool. Not with kBelady or
  /// kNone.
  std::optional<std::uint64_t> remote_bytes = {};
  double gamma = 0.995;  ///< decay of the eviction score of kScored, in (0, 1)
};

std::vector<Prefetch> AllPrefetches();
std::string_view PrefetchName(Prefetch policy);

/// Returns whether a policy needs the neighbour lists of all rows in memory.
bool NeedsLists(Prefetch policy);

/// Checks the options. `superbatch` is the requested length; 0: none. Errors: kInvalidArgument, an
/// option that the policy does not support, or that is out of range.
Status CheckPrefetch(const PrefetchOptions& options, std::uint64_t superbatch = 0);

class Transport;

/// Model of the network between ranks.
struct LinkModel {
  double bits_per_second = 1e10;   ///< per rank, in each direction
  double latency_seconds = 50e-6;  ///< one way
};

/// Training over ranks: processes or threads that make the same call and compute one model.
/// MinibatchOptions::batch_size is then the average number of seeds per home and step, and
/// FeedOptions::superbatch counts steps. The row cache is managed by `prefetch`, so
/// FeedOptions::cache must be kBelady.
struct RankOptions {
  Transport* transport = nullptr;  ///< connection to the other ranks; borrowed
  LinkModel link = {};             ///< cost of remote rows relative to rows on disk
  PrefetchOptions prefetch = {};
};

/// Training on the first CUDA device, which also caches feature rows.
struct DeviceOptions {
  /// Device memory for cached rows, in bytes; default: half of the free memory.
  std::optional<std::uint64_t> memory_bytes = {};
  PolicyKind cache = PolicyKind::kBelady;  ///< kBelady, kStatic, kMatch or kNone
};

/// Training on minibatches of sampled neighbourhoods.
struct MinibatchOptions {
  std::uint64_t batch_size = 1000;

  /// Number of neighbours drawn in each layer, starting at the seeds. kAllNeighbors: all.
  std::vector<std::int64_t> fanouts = {10, 10};

  /// Fanouts for measuring the validation set, one per layer. kAllNeighbors in every layer uses all
  /// neighbours of the edge types that training uses. Empty: as in training.
  std::vector<std::int64_t> eval_fanouts = {};
  std::uint64_t steps = 0;  ///< maximum training minibatches per epoch; 0: all
  FeedOptions feed = {};
  Path trace = {};                           ///< Chrome trace of the stages; empty: not written
  std::optional<DeviceOptions> device = {};  ///< absent: the CPU computes
  std::optional<RankOptions> ranks = {};     ///< absent: this process trains alone
};

}  // namespace rhizome
