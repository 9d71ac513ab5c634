#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/cache/lists_on_disk.h"
#include "rhizome/cache/safetensors.h"
#include "rhizome/cache/task_metrics.h"
#include "rhizome/gnn/device_tiles.h"
#include "rhizome/gnn/incremental.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/layerwise_run.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// The purpose for which a process opens a job: to make its array, to compute chunks for the
/// process that does, or to count its reads.
enum class InferRole : std::uint8_t { kMaker, kWorker, kPlan };

/// An inference job: what it works on, open, and how it uses memory; what the verb `infer`, its
/// plan and its workers have in common. Threads: one at a time.
class InferenceJob {
 public:
  /// Opens store, graph, model and labels. Errors: those of each; kInvalidArgument, arrays that do
  /// not fit the model; of a maker kAlreadyExists, the store has an array of that name.
  static Result<std::unique_ptr<InferenceJob>> Open(const InferOptions& options, InferRole role);

  const InferOptions& options() const { return options_; }
  const Store& store() const { return *store_; }
  const GraphSnapshot& graph() const { return *graph_; }
  const Model& model() const { return *model_; }

  /// Returns the task that the model was trained for.
  Task task() const;

  /// Returns the array as users write it (emb, or emb@3) if options.resume found that an earlier
  /// run has published just what this one would make. For a maker.
  const std::optional<std::string>& published() const { return published_; }

  /// Returns the name of the job's scratch folder.
  std::string ScratchName() const { return "infer-" + options_.out; }

  /// Divides options.memory_bytes beyond `base_bytes`, and opens lists that are on disk. Before
  /// what follows. Errors: kOutOfMemory, saying how much is needed; those of ListsOnDisk::Open.
  Status Prepare(std::uint64_t base_bytes, const JobControl& control);

  /// Lets a device, which must outlive the job, compute the products of layerwise runs. Before
  /// Prepare. Errors: those of DeviceTiles::Open.
  Status UseDevice(const ComputeDevice& device);
  const DeviceTiles* device() const { return device_.get(); }  ///< null: the processor

  const LayerwiseOptions& layerwise() const { return layerwise_; }

  /// Returns whether layers use the weights of edges.
  bool edge_weights() const { return sampling_.edge_weights; }

  /// Returns the base of an incremental run, if it is one and has a base.
  Result<IncrementalPlan> FindBase() const;

  /// Computes the array below `scratch`: what differs from `base`, or, without one, all of it.
  /// `workers`: null, or those that compute the chunks. Errors: those of RunLayerwise,
  /// RunSamplewise and MergeIncremental.
  Result<LayerwiseResult> Run(const Path& scratch, const IncrementalBase* base,
                              InferenceWorkers* workers, const JobControl& control) const;

  /// Computes a part of the job while its maker runs. For a worker. Errors: those of RunLayerPart;
  /// kBusy, the store is another than the maker's by now.
  Result<InferLayerReport> RunPart(const LayerPart& part, ChunkProgress progress,
                                   const JobControl& control) const;

  /// How lists on disk were read; nothing where they are in memory.
  std::optional<ListReadsReport> list_reads() const;

 private:
  /// The manifest of the last commit when the job began, which another may have computed at the
  /// same point before: what is there by now, and what ids arrays have.
  const Manifest& latest() const { return latest_ ? *latest_ : store_->manifest(); }

  InferenceJob(const InferOptions& options, InferRole role) : options_(options), role_(role) {}
  Status ResolveDraws();
  std::vector<std::pair<std::string, std::string>> Attributes() const;
  std::optional<std::string> FindPublished() const;
  StateId State() const;
  std::string Describe(const IncrementalBase* base) const;
  LayerwiseInput Input(const Path& scratch, InferenceLog* log) const;
  Result<LayerwiseResult> RunIncremental(const IncrementalBase& base, const LayerwiseInput& input,
                                         const JobControl& control) const;

  const InferOptions options_;
  const InferRole role_;
  std::unique_ptr<Store> store_;
  std::optional<Manifest> latest_;  // unset: the store's
  std::unique_ptr<GraphSnapshot> graph_;
  LoadedTensorFile model_file_;
  std::optional<Model> model_;
  MinibatchSamplerOptions sampling_;  // as the graph has it; with a fanout for each layer
  std::optional<ClassLabels> labels_;
  std::optional<std::string> published_;
  std::unique_ptr<ListsOnDisk> lists_;  // null: in memory
  LayerwiseOptions layerwise_;
  std::unique_ptr<DeviceTiles> device_;
};

}  // namespace rhizome::inline internal
