#pragma once

#include <utility>
#include <vector>

#include "cache/job/safetensors.h"
#include "gnn/infer/layer_sizes.h"
#include "gnn/infer/layerwise_run.h"
#include "gnn/ops/torch_threads.h"
#include "rhizome/graph.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// An open store and a model, for which tests compute embeddings with any division into blocks and
/// windows.
class LayerwiseRuns {
 public:
  static Result<LayerwiseRuns> Open(const Path& store, const Path& model) {
    LayerwiseRuns runs;
    RHIZOME_ASSIGN_OR_RETURN(runs.store_,
                             Store::Open(FileSystem::Posix(), store, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(runs.graph_, Graph::Open(std::as_const(*runs.store_)));
    RHIZOME_ASSIGN_OR_RETURN(const LoadedTensorFile file,
                             LoadSafetensors(FileSystem::Posix(), model));
    RHIZOME_ASSIGN_OR_RETURN(runs.model_, Model::FromFile(file.file));
    RHIZOME_RETURN_IF_ERROR(
        runs.model_->FitRelations(runs.graph_->edge_types(), runs.model_->shape().by_side));
    return runs;
  }

  const Model& model() const { return *model_; }

  /// Returns all rows of the array, computed with `options.threads` threads. Creates the folder
  /// `scratch`. `device`: does the matrix products; null for the CPU.
  Result<std::vector<float>> Run(LayerwiseOptions options, const Path& scratch,
                                 DeviceTiles* device = nullptr) const {
    RHIZOME_ASSIGN_OR_RETURN(options.output, MakeOutputEntry(*graph_, *model_, options));
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(FileSystem::Posix(), scratch));
    SetTorchThreads(options.threads);
    const JobControl control;
    const Result<LayerwiseResult> result =
        RunLayerwise({.graph = *graph_, .model = *model_, .scratch = scratch, .device = device},
                     options, control);
    SetTorchThreads(1);
    if (!result) return Fail(result.error());
    for (const InferLayerReport& layer : result->layers)
      EXPECT_EQ(layer.vertices, graph_->vertex_count());
    const WrittenArray& written = result->output;
    RHIZOME_ASSIGN_OR_RETURN(
        const auto array,
        ChunkArray::Open(FileSystem::Posix(), written.root, written.arrays.front(), written.files));
    std::vector<float> values(array->entry().rows * array->entry().dim);
    RHIZOME_RETURN_IF_ERROR(
        array->ReadRows(0, array->entry().rows, std::as_writable_bytes(std::span(values))));
    return values;
  }

 private:
  LayerwiseRuns() = default;

  std::unique_ptr<Store> store_;
  std::unique_ptr<GraphSnapshot> graph_;
  std::optional<Model> model_;
};

}  // namespace rhizome::testing
