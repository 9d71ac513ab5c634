#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/feed/minibatch_sampler.h"
#include "cache/feed/task_labels.h"
#include "cache/job/safetensors.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/store.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Open resources and inputs of a training job.
struct TrainJob {
  std::unique_ptr<Store> store;
  std::unique_ptr<GraphSnapshot> graph;
  Labels labels;
  std::vector<float> class_weights;      ///< empty: all 1
  std::vector<std::string> class_names;  ///< by class; empty: they have no names
  std::vector<VertexId> train;
  std::vector<VertexId> valid;
  ArrayEntry features;               ///< with inputs by type: unused
  std::vector<FeatureInput> inputs;  ///< by vertex type of the graph; empty: one array
  std::vector<std::string> notes;    ///< sentences about types without an array
  Metric monitor = Metric::kAccuracy;
  std::optional<LoadedTensorFile> init;
  std::optional<Model> model;        ///< model of the current training run
  MinibatchSamplerOptions sampling;  ///< resolved against the graph

  // Fields of a training with an Objective; otherwise empty.
  std::function<void(Model& model, std::uint64_t seed)> add_decoder = {};
  bool decoder_by_relation = false;                  ///< the decoder has weights for each edge type
  std::map<std::string, std::string> metadata = {};  ///< further metadata of the model file
  std::uint64_t max_seeds = 0;                       ///< upper bound on the seeds of a minibatch
  std::string objective = {};  ///< description of everything that the objective depends on
};

/// Completes a job without labels: the number of scores (Labels::columns) and the fields of an
/// objective. It is called when store, graph and features are open.
using PrepareJob = std::function<Status(const TrainOptions& options, TrainJob& job)>;

/// Checks the options, and opens store, graph, labels and features, and the model file `init`.
/// Creates the model of the first seed. Errors: of opening each of them; kInvalidArgument, options
/// are out of range, or contradict each other or the labels.
///
/// With `prepare`, labels and split are not read, and the task is Task::kLink.
Result<TrainJob> OpenTrainJob(const TrainOptions& options, const PrepareJob& prepare = {});

/// Creates the model in its state before training with options.seed. Errors: kInvalidArgument, the
/// model file `init` has another shape; the message names the tensor.
Status MakeModel(const TrainOptions& options, TrainJob& job);

/// Returns warnings about likely mistakes in the job: classes without training vertex, no model
/// file.
std::vector<std::string> WarningsOf(const TrainJob& job, const TrainOptions& options);

/// Returns the hashes of the store's state that the job trains on.
StateId StateOfJob(const TrainJob& job, const TrainOptions& options);

/// Describes everything that the weights depend on. A checkpoint can be resumed only with an equal
/// description. The number of epochs is included only if the weights depend on it, so that a
/// resumed run may have more epochs.
std::string DescribeJob(const TrainJob& job, const TrainOptions& options);

}  // namespace internal
}  // namespace rhizome
