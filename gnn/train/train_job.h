#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/cache/safetensors.h"
#include "rhizome/cache/task_labels.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// The things that a training works on, open.
struct TrainJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
  Labels labels;
  std::vector<float> class_weights;  ///< empty: all 1
  std::vector<VertexId> train;
  std::vector<VertexId> valid;
  ArrayEntry features;
  Metric monitor = Metric::kAccuracy;
  std::optional<LoadedTensorFile> init;
  std::optional<Model> model;        ///< of the training that runs
  MinibatchSamplerOptions sampling;  ///< as the graph has it
};

/// Checks the options, and opens store, graph, labels and features, and the model file of `init`.
/// The model is that of the first seed. Errors: those of each; kInvalidArgument, options out of
/// range or that contradict each other or the labels.
Result<TrainJob> OpenTrainJob(const TrainOptions& options);

/// Makes the model as it is before training with a seed. Errors: kInvalidArgument, a model file
/// (`init`) of another shape: the tensor is named.
Status MakeModel(const TrainOptions& options, TrainJob& job);

/// Tells what is likely a mistake in the job, in words: classes without training vertex, no model
/// file.
std::vector<std::string> WarningsOf(const TrainJob& job, const TrainOptions& options);

/// Returns the hashes of the state that the job trains on.
StateId StateOfJob(const TrainJob& job, const TrainOptions& options);

/// Describes everything that the weights depend on; a checkpoint is resumed only if its description
/// is equal. The number of epochs is left out where nothing depends on it, so that a resumed run
/// may have more.
std::string DescribeJob(const TrainJob& job, const TrainOptions& options);

}  // namespace rhizome::inline internal
