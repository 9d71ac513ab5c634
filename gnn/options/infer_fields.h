#pragma once

#include "cache/feed/feed_fields.h"
#include "rhizome/infer_options.h"
#include "storage/options/option.h"

// The table (storage/options/option.h) of InferOptions.

namespace rhizome {
inline namespace internal {

template <>
struct ChoiceNames<InferMode> {
  static Choices<InferMode> Names() {
    return {{"layerwise", InferMode::kLayerwise}, {"samplewise", InferMode::kSamplewise}};
  }
};
template <>
struct ChoiceNames<InferWorkers::Ranges> {
  static Choices<InferWorkers::Ranges> Names() {
    return {{"learned", InferWorkers::Ranges::kLearned}, {"edges", InferWorkers::Ranges::kEdges}};
  }
};
template <>
struct ChoiceNames<ComputeOn> {
  static Choices<ComputeOn> Names() {
    return {{"cpu", ComputeOn::kCpu}, {"cuda", ComputeOn::kCuda}};
  }
};

/// The computation of an inference, which `export --predictions` controls as well. Without `data`
/// and `resources`.
template <typename Visit, typename... Options>
void EachComputedField(Visit&& visit, Options&... options) {
  visit(
      Option{"mode", "mode",
             "layerwise: compute each layer for all vertices before the next; samplewise: compute "
             "each vertex from its own sampled neighbourhood"},
      options.mode...);
  visit(Option{"fanouts", "fanout", "Neighbours sampled in each layer; default: all"}.As(kFanouts),
        options.fanouts...);
  visit(Option{"seed", "seed", "Seed for sampling neighbours"}, options.seed...);
  visit(Option{"scratch", "scratch", "Folder for temporary files; default: in the store"}.As("DIR"),
        options.scratch...);
}

/// How layerwise inference divides its work and memory, which plans have as well.
template <typename Visit, typename... Options>
void EachLayerwiseField(Visit&& visit, Options&... options) {
  visit(Option{"scores", "scores", "Store class scores instead of the last hidden layer"},
        options.scores...);
  visit(Option{"tuning.cache_bytes", "cache-bytes",
               "Size of the chunk cache; default: what `memory_bytes` leaves"}
            .As(kSize),
        options.tuning.cache_bytes...);
  visit(Option{"tuning.neighbor_cache_bytes", "neighbor-cache",
               "With `topology=direct`: memory for the lists that are read most; default: 0, all "
               "lists are read in order"}
            .As(kSize),
        options.tuning.neighbor_cache_bytes...);
  visit(Option{"tuning.block_rows", "block-rows",
               "Vertices computed together; 0: as many as `memory_bytes` holds sums of"}
            .In(0, 4294967296.0),
        options.tuning.block_rows...);
  visit(Option{"chunk_rows", "chunk-rows", "Rows of a chunk of the result; 0: chosen"}.In(
            0, 1099511627776.0),
        options.chunk_rows...);
}

/// How the result is stored, and which processes and devices compute it.
template <typename Visit, typename... Options>
void EachInferJobField(Visit&& visit, Options&... options) {
  visit(Option{"out", "out", "Name of the array for the result"}, options.out...);
  visit(Option{"new_version", "new-version",
               "If the array exists, store the result as its next version"},
        options.new_version...);
  visit(Option{"live", "live", "Make NAME@live name the new version"}, options.live...);
  visit(Option{"keep", "keep",
               "Afterwards, drop all versions except the newest N and those with an alias; 0: keep "
               "all"},
        options.keep...);
  visit(Option{"wait_seconds", "wait",
               "Maximum time to wait at the end while another process has the store open for "
               "writing; default: fail at the start"}
            .As("S"),
        options.wait_seconds...);
  visit(
      Option{"incremental", "incremental",
             "Compute only rows that can have changed since the newest version, and store the next "
             "version"},
      options.incremental...);
  visit(
      Option{"resume", "resume",
             "Continue the work of an interrupted run of this job; do nothing if it was complete"},
      options.resume...);
  visit(Option{"device", "device",
               "Device for matrix products; cuda: the first CUDA device, in layerwise mode without "
               "`workers`"},
        options.device...);
  visit(Option{"device_memory_bytes", "device-memory",
               "With `device=cuda`: device memory for weights and rows; default: half of the free "
               "memory"}
            .As(kSize),
        options.device_memory_bytes...);
  visit(
      Option{"workers.count", "workers",
             "Number of worker processes. They compute ranges of each layer, and share memory and "
             "threads; the range of a worker that dies or is silent for 30 s is computed by "
             "others. 0: none"}
          .In(0, 1024),
      options.workers.count...);
  visit(Option{"workers.costs", "costs",
               "With `workers`: file with costs learned from earlier jobs, which determine the "
               "ranges; this job adds its own"}
            .As("F.json"),
        options.workers.costs...);
  visit(Option{"workers.ranges", "ranges",
               "With `workers`: cut ranges by learned costs, if the predicted gain exceeds the "
               "model's error, or into equal numbers of edges"},
        options.workers.ranges...);
}

}  // namespace internal
}  // namespace rhizome
