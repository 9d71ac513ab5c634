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

namespace rhizome {

/// Memory that libtorch and the allocator take when they first work.
inline constexpr std::uint64_t kInferSlackBytes = std::uint64_t{48} << 20;

/// The opened inputs of an inference job, which the verb `infer`, its plan and its workers share.
struct InferJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
  LoadedTensorFile model_file;
  std::optional<Model> model;
  std::optional<ClassLabels> labels;

  /// The array's name as users write it (emb, or emb@3), if options.resume finds that an earlier
  /// run has published exactly what this one would make.
  std::optional<std::string> published;
};

/// Opens the inputs of a job. Errors: those of store, graph and model file; kInvalidArgument,
/// arrays that do not fit the model. Unless `no_output`: kAlreadyExists, the store has an array of
/// that name.
Result<InferJob> OpenInferJob(const InferOptions& options, bool no_output = false);

/// Returns the name of the job's scratch folder.
std::string InferScratchName(const InferOptions& options);

/// Describes everything that the result's bytes depend on; a killed run is resumed only if its
/// description is equal. `base` is that of an incremental run, or null.
std::string DescribeInferJob(const InferJob& job, const InferOptions& options,
                             const IncrementalBase* base);

/// How a job uses memory. The sizes of stage, blocks and caches do not change results.
struct InferMemory {
  LayerwiseOptions options;
  std::uint64_t neighbor_cache_bytes = 0;
};

/// Divides options.memory_bytes beyond `base_bytes`, the memory of the bare process. Errors:
/// kOutOfMemory, naming how much is needed.
Result<InferMemory> MakeLayerwiseOptions(const InferJob& job, const InferOptions& options,
                                         std::uint64_t base_bytes);

/// Opens the lists if they are on disk, and sets them in `memory`; returns null otherwise.
Result<std::unique_ptr<ListsOnDisk>> OpenInferLists(const InferJob& job,
                                                    const InferOptions& options,
                                                    InferMemory& memory, const JobControl& control);

}  // namespace rhizome
