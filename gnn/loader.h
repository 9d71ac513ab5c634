#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/cache/feature_cache.h"
#include "rhizome/cache/policy.h"
#include "rhizome/gnn/minibatch.h"
#include "rhizome/gnn/minibatch_sampler.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

struct LoaderOptions {
  MinibatchSamplerOptions sampler;
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< nullptr: the graph, in memory
  std::string features;
  bool normalize = false;
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t cache_bytes = 0;
  std::uint32_t superbatch = 1;  ///< minibatches that are sampled ahead and scheduled together
  IoMaker io = IoMaker::kAuto;
  std::size_t staging_bytes = std::size_t{16} << 20;
  Path scratch;  ///< an existing folder for the superbatch files
};

/// Delivers minibatches with their features, in order. Three stages run at once: one thread samples
/// superbatch k + 1 to a scratch file and makes its cache schedule while superbatch k is used; one
/// gathers minibatch i + 1 and i + 2 while the caller computes on i. What is delivered depends on
/// the seeds and the sampler's seed only, not on policy, cache size, superbatch or I/O maker.
///
/// Source: the inspector-executor of Ginex (VLDB 2022), overlapped.
/// Threads: Next one at a time. Ownership: graph, its store and `control` must outlive it.
class Loader {
 public:
  /// Asked for the next batch by the sampling thread; nothing after the last.
  using NextSeeds = std::function<std::optional<SeedBatch>()>;

  /// Errors: those of FeatureCache::Open and Sampler::Create; kInvalidArgument, features of a
  /// dtype that is no number to compute on.
  static Result<std::unique_ptr<Loader>> Open(const Graph& graph, const LoaderOptions& options,
                                              NextSeeds next_seeds, const JobControl& control);

  /// Stops the threads, whatever they do. Superbatch files may be left in the scratch folder.
  ~Loader();

  /// The next minibatch; nothing after the last. Errors: of any stage, reported once everything
  /// before it was delivered; kInterrupted.
  Result<std::optional<Minibatch>> Next();

  /// How the reads were made. Call when Next has returned nothing.
  RowReaderStats reader_stats() const;

 private:
  class Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
