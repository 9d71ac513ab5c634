#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/safetensors.h"
#include "rhizome/gnn/incremental.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/layerwise_inference.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// Memory for what libtorch and the allocator take when they first work.
inline constexpr std::uint64_t kInferSlackBytes = std::uint64_t{48} << 20;

/// What an inference job works on, open, and how it uses memory: what the verb `infer`, its plan
/// and its workers have in common.
struct InferJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
  LoadedTensorFile model_file;
  std::optional<Model> model;
  std::optional<ClassLabels> labels;

  /// The array as users write it (emb, or emb@3), where options.resume finds that a run before has
  /// published just what this one would make.
  std::optional<std::string> published;
};

/// Errors: those of store, graph and model file; kInvalidArgument, arrays that do not fit the
/// model. Unless `no_output`, kAlreadyExists: the store has an array of that name.
Result<InferJob> OpenInferJob(const InferOptions& options, bool no_output = false);

/// The job's folder in a store's scratch.
std::string InferScratchName(const InferOptions& options);

/// All that the result's bytes depend on; a killed run is continued only where it is equal.
/// `base`: of an incremental run.
std::string DescribeInferJob(const InferJob& job, const InferOptions& options,
                             const IncrementalBase* base);

/// How the job uses memory; the sizes of stage, blocks and caches do not change results.
struct InferMemory {
  LayerwiseOptions options;
  std::uint64_t neighbor_cache_bytes = 0;
};

/// Divides options.memory_bytes beyond `base_bytes`. Errors: kOutOfMemory, saying how much is
/// needed.
Result<InferMemory> MakeLayerwiseOptions(const InferJob& job, const InferOptions& options,
                                         std::uint64_t base_bytes);

/// Lists on disk, where they are, set in `memory`; else null.
Result<std::unique_ptr<ListsOnDisk>> OpenInferLists(const InferJob& job,
                                                    const InferOptions& options,
                                                    InferMemory& memory, const JobControl& control);

}  // namespace rhizome::inline internal
