#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/feed/lists_on_disk.h"
#include "cache/job/safetensors.h"
#include "gnn/infer/device_tiles.h"
#include "gnn/infer/incremental.h"
#include "gnn/infer/layerwise_run.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"
#include "rhizome/infer_options.h"
#include "rhizome/task_metrics.h"

namespace rhizome {
inline namespace internal {

/// The purpose for which a process opens a job: to produce its array, to compute chunks for the
/// process that produces it, or to count its reads.
enum class InferRole : std::uint8_t { kMaker, kWorker, kPlan };

/// An open inference job: its inputs and its division of memory. The verb `infer`, its plan and its
/// workers share this class. Threads: one at a time.
class InferenceJob {
 public:
  /// Opens store, graph, model and labels. Errors: any error of opening them; kInvalidArgument,
  /// arrays do not fit the model; kAlreadyExists, for a maker, the store has an array of that name.
  static Result<std::unique_ptr<InferenceJob>> Open(const InferOptions& options, InferRole role);

  const InferOptions& options() const { return options_; }
  const Store& store() const { return *store_; }
  const GraphSnapshot& graph() const { return *graph_; }
  const Model& model() const { return *model_; }

  /// Returns the array of each vertex type of the graph, for a model with inputs by type; otherwise
  /// nothing.
  const std::vector<FeatureInput>& inputs() const { return inputs_; }

  /// Returns the task that the model was trained for.
  Task task() const;

  /// Returns the names of the model's classes; empty if they have none.
  std::vector<std::string> class_names() const;

  /// Returns the array's name as users write it (emb, or emb@3) if options.resume is set and an
  /// earlier run has already published the array that this job would produce. For a maker.
  const std::optional<std::string>& published() const { return published_; }

  /// Returns the name of the job's scratch folder.
  std::string ScratchName() const { return "infer-" + options_.out; }

  /// Divides options.memory_bytes beyond `base_bytes`, and opens lists that are on disk. Must be
  /// called before FindBase, Run and RunPart. Errors: kOutOfMemory, with the amount that is needed;
  /// any error of ListsOnDisk::Open.
  Status Prepare(std::uint64_t base_bytes, const JobControl& control);

  /// Computes the products of layerwise runs on a device, which must outlive the job. Must be
  /// called before Prepare. Errors: see DeviceTiles::Open.
  Status UseDevice(const ComputeDevice& device);
  const DeviceTiles* device() const { return device_.get(); }  ///< null: the CPU

  const LayerwiseOptions& layerwise() const { return layerwise_; }

  /// Returns whether layers use the weights of edges.
  bool edge_weights() const { return sampling_.edge_weights; }

  /// Returns the base of an incremental run, if it is one and has a base.
  Result<IncrementalPlan> FindBase() const;

  /// Computes the whole array below `scratch`. With `base`, only rows that may have changed are
  /// recomputed; null: all rows. `workers`: child processes that compute the chunks, or null.
  /// Errors: see RunLayerwise, RunSamplewise and MergeIncremental.
  Result<LayerwiseResult> Run(const Path& scratch, const IncrementalBase* base,
                              InferenceWorkers* workers, const JobControl& control) const;

  /// Computes a part of the job while its maker runs. For a worker. Errors: see RunLayerPart;
  /// kBusy, the store has changed since the maker opened it.
  Result<InferLayerReport> RunPart(const LayerPart& part, ChunkProgress progress,
                                   const JobControl& control) const;

  /// Returns how lists on disk were read; nullopt if lists are in memory.
  std::optional<ListReadsReport> list_reads() const;

 private:
  /// Returns the manifest of the last commit at the start of the job. It may be newer than the
  /// state that the job reads (InferOptions::at). Names and ids of arrays are checked against it.
  const Manifest& latest() const { return latest_ ? *latest_ : store_->manifest(); }

  InferenceJob(const InferOptions& options, InferRole role) : options_(options), role_(role) {}
  Status ResolveTyped();
  Status ResolveDraws();
  Status ResolveFeatures();
  Result<bool> HasClassesOfStore(bool measures) const;
  std::vector<std::pair<std::string, std::string>> Attributes() const;
  std::optional<std::string> FindPublished() const;
  StateId State() const;
  std::string Describe(const IncrementalBase* base) const;
  LayerwiseInput Input(const Path& scratch, InferenceLog* log) const;
  Result<LayerwiseResult> RunIncremental(const IncrementalBase& base, const LayerwiseInput& input,
                                         const JobControl& control) const;

  InferOptions options_;
  const InferRole role_;
  std::unique_ptr<Store> store_;
  std::optional<Manifest> latest_;  // unset: the manifest of store_
  std::unique_ptr<GraphSnapshot> graph_;
  LoadedTensorFile model_file_;
  std::optional<Model> model_;
  std::vector<FeatureInput> inputs_;  // by vertex type of the graph; empty: one array
  MinibatchSamplerOptions sampling_;  // resolved for the graph, with a fanout for each layer
  std::optional<ClassLabels> labels_;
  std::optional<std::string> published_;
  std::unique_ptr<ListsOnDisk> lists_;  // null: lists in memory
  LayerwiseOptions layerwise_;
  std::unique_ptr<DeviceTiles> device_;
};

}  // namespace internal
}  // namespace rhizome
