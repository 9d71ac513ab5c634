#include "rhizome/gnn/layerwise_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_cost.h"
#include "rhizome/cache/pass_order.h"
#include "rhizome/gnn/inference_layers.h"
#include "rhizome/gnn/inference_workers.h"
#include "rhizome/gnn/layer_pass.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/hash.h"

namespace rhizome {
namespace {

/// The source of the next layer: an array and how to read it.
struct Source {
  std::unique_ptr<ChunkArray> array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;  // changes of the features, if there are any
};

Result<Source> OpenWritten(FileSystem& fs, const WrittenArray& written) {
  RHIZOME_ASSIGN_OR_RETURN(
      std::unique_ptr<ChunkArray> array,
      ChunkArray::Open(fs, written.root, written.arrays.front(), written.files));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(array->entry(), /*normalize=*/false));
  return Source{.array = std::move(array), .decoder = decoder, .delta = nullptr};
}

/// The run of one job. For each layer it (1) finds or chooses the order of the rows that it writes;
/// (2) runs the pass, here or in child processes, and adopts chunks of an earlier run; (3) logs the
/// metadata of the finished array, which is the next layer's source; (4) removes the array before
/// it. A resumed run begins at the first layer that is not complete.
class LayerwiseRun {
 public:
  LayerwiseRun(const GraphSnapshot& graph, const Model& model, const ClassLabels* labels,
               const ArrayEntry& features, const Path& scratch, InferenceLog* log,
               const LayerwiseOptions& options)
      : graph_(graph),
        model_(model),
        labels_(labels),
        scratch_(scratch),
        log_(log),
        options_(options),
        layers_(graph, model, features, options) {}

  Result<LayerwiseResult> Run(const JobControl& control) {
    result_.layers.resize(layers_.count());
    RHIZOME_RETURN_IF_ERROR(layers_.CountEdges());
    if (options_.targets) RHIZOME_RETURN_IF_ERROR(layers_.FindTargets(control));
    const std::uint32_t first = FirstUnfinishedLayer();
    if (first > 0) {
      RHIZOME_RETURN_IF_ERROR(FindOrder(first - 1, control));
      result_.resumed_chunks += log_->Finished(first - 1).size();
    }
    RHIZOME_ASSIGN_OR_RETURN(Source source, OpenSource(first));
    for (std::uint32_t layer = first; layer < layers_.count(); ++layer) {
      RHIZOME_RETURN_IF_ERROR(FindOrder(layer, control));
      RHIZOME_RETURN_IF_ERROR(RunLayer(layer, source, control));
      if (!IsLast(layer)) {
        RHIZOME_ASSIGN_OR_RETURN(source, OpenWritten(fs(), result_.output));
      }
      // The layer before is not needed any more, but its space may be. A run that is killed between
      // the last layer and publishing resumes at the last layer, so that one's source is kept.
      if (layer > 0 && !IsLast(layer)) RHIZOME_RETURN_IF_ERROR(RemoveTree(fs(), Folder(layer - 1)));
    }
    return std::move(result_);
  }

  /// Computes chunks [begin, end) of a layer, for a job that another process runs.
  Result<InferLayerReport> RunPart(std::uint32_t layer, std::uint64_t begin, std::uint64_t end,
                                   ChunkProgress progress, const JobControl& control) {
    result_.layers.resize(layers_.count());
    if (layer >= layers_.count() || end > layers_.Entry(layer).chunk_count()) {
      return Fail(Status::InvalidArgument("a worker was given a task of another job"));
    }
    RHIZOME_RETURN_IF_ERROR(layers_.CountEdges());
    for (std::uint32_t known = layer == 0 ? 0 : layer - 1; known <= layer; ++known) {
      if (!IsLast(known) && log_->Order(known) == nullptr) {
        return Fail(Status::Corruption("inference log: a layer is begun, but not its order"));
      }
      RHIZOME_RETURN_IF_ERROR(FindOrder(known, control));
    }
    RHIZOME_ASSIGN_OR_RETURN(const Source source, OpenSource(layer));
    RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<LayerOutput> output,
                             LayerOutput::Create(fs(), Folder(layer), layers_.Entry(layer),
                                                 std::move(progress), options_.writers));
    output->LeaveOthers(begin, end);
    RHIZOME_ASSIGN_OR_RETURN(InferLayerReport report, RunPass(layer, source, *output, control));
    RHIZOME_RETURN_IF_ERROR(output->Complete());
    report.write_seconds = output->write_seconds();
    report.bytes_written = output->bytes_written();
    return report;
  }

 private:
  FileSystem& fs() const { return graph_.store().fs(); }
  Path Folder(std::uint32_t layer) const { return scratch_ / fmt::format("layer-{}", layer + 1); }
  Path OrderFile(std::uint32_t layer) const {
    return scratch_ / fmt::format("order-{}", layer + 1);
  }
  bool IsLast(std::uint32_t layer) const { return layer + 1 == layers_.count(); }

  /// Returns the first layer to run. The last layer is run even if it is complete: its chunks are
  /// adopted and nothing is computed.
  std::uint32_t FirstUnfinishedLayer() const {
    std::uint32_t first = 0;
    for (std::uint32_t layer = 0; log_ != nullptr && !IsLast(layer); ++layer) {
      if (log_->Metadata(layer) != nullptr) first = layer + 1;
    }
    return first;
  }

  /// Uses the order that an earlier run logged, whatever would be chosen now; otherwise chooses an
  /// order and logs it.
  Status FindOrder(std::uint32_t layer, const JobControl& control) {
    if (log_ == nullptr || IsLast(layer) || options_.targets) return Status::Ok();
    if (const LoggedOrder* const logged = log_->Order(layer)) {
      result_.layers[layer].layout = logged->rule;
      if (logged->rule == RowRuleName(RowRule::kStored)) return Status::Ok();
      RHIZOME_ASSIGN_OR_RETURN(RowOrder order, ReadOrder(OrderFile(layer), logged->xxh3));
      layers_.SetOrder(layer, std::move(order));
      return Status::Ok();
    }
    RHIZOME_ASSIGN_OR_RETURN(OrderChoice choice, layers_.Choose(layer, control));
    LoggedOrder logged{.rule = RowRuleName(choice.rule), .xxh3 = {}};
    if (choice.rule != RowRule::kStored) {
      const std::span<const std::byte> bytes = std::as_bytes(choice.order.row_at());
      // The file may be left by a run that was killed before it could log it.
      const Status removed = fs().RemoveFile(OrderFile(layer));
      if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
      RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs(), OrderFile(layer), bytes));
      RHIZOME_RETURN_IF_ERROR(fs().SyncDirectory(scratch_));
      logged.xxh3 = Xxh3(bytes);
    }
    RHIZOME_RETURN_IF_ERROR(log_->AppendOrder(layer, logged));
    result_.layers[layer].layout = logged.rule;
    for (const OrderCost& cost : choice.costs) {
      result_.layers[layer].layouts.push_back({RowRuleName(cost.rule), cost.bytes});
    }
    layers_.SetChoice(layer, std::move(choice));
    return Status::Ok();
  }

  Result<RowOrder> ReadOrder(const Path& path, const Hash128& hash) const {
    const std::uint64_t rows = graph_.vertex_count();
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                             ReadWholeFile(fs(), path, rows * sizeof(std::uint32_t)));
    if (bytes.size() != rows * sizeof(std::uint32_t) || Xxh3(bytes) != hash) {
      return Fail(Status::Corruption(
          fmt::format("{} is not what the job wrote; run without --resume", path.string())));
    }
    std::vector<std::uint32_t> row_at(rows);
    std::memcpy(row_at.data(), bytes.data(), bytes.size());
    return RowOrder(std::move(row_at), rows);
  }

  Result<Source> OpenSource(std::uint32_t first) {
    if (first == 0) {
      RHIZOME_ASSIGN_OR_RETURN(auto array, graph_.store().OpenArray(options_.features));
      RHIZOME_ASSIGN_OR_RETURN(
          const FeatureDecoder decoder,
          FeatureDecoder::Create(array->entry(), model_.shape().spec.normalize_features));
      auto delta = DeltaRows::Of(graph_.Snapshot(), array->entry());
      return Source{.array = std::move(array), .decoder = decoder, .delta = std::move(delta)};
    }
    return OpenWritten(fs(), WrittenBefore(first - 1));
  }

  /// Returns the complete array of a layer, from the log.
  WrittenArray WrittenBefore(std::uint32_t layer) const {
    WrittenArray written{
        .root = Folder(layer), .arrays = {layers_.Entry(layer)}, .files = {*log_->Metadata(layer)}};
    for (const auto& [chunk, finished] : log_->Finished(layer)) {
      written.files.push_back(finished.file);
    }
    std::sort(written.files.begin(), written.files.end(),
              [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
    return written;
  }

  Status RunLayer(std::uint32_t layer, const Source& source, const JobControl& control) {
    const bool written = !IsLast(layer) || options_.write_output;
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<LayerOutput> output,
        LayerOutput::Create(fs(), written ? Folder(layer) : Path(), layers_.Entry(layer),
                            ChunkProgress::Of(log_, layer), options_.writers));
    result_.resumed_chunks += output->adopted_chunks();
    RHIZOME_ASSIGN_OR_RETURN(
        InferLayerReport report,
        options_.workers == nullptr
            ? RunPass(layer, source, *output, control)
            : options_.workers->RunLayer(graph_, layer, *output, *log_, control));
    if (IsLast(layer)) result_.accuracy = output->accuracy();
    RHIZOME_ASSIGN_OR_RETURN(result_.output, output->Finish());
    RHIZOME_RETURN_IF_ERROR(LogMetadata(layer, result_.output));
    if (options_.workers == nullptr) {
      report.write_seconds = output->write_seconds();
      report.bytes_written = output->bytes_written();
    }
    report.layout = std::move(result_.layers[layer].layout);
    report.layouts = std::move(result_.layers[layer].layouts);
    result_.layers[layer] = std::move(report);
    return Status::Ok();
  }

  Result<InferLayerReport> RunPass(std::uint32_t layer, const Source& source, LayerOutput& output,
                                   const JobControl& control) {
    const bool last = IsLast(layer);
    LayerPass pass({.graph = graph_,
                    .model = model_,
                    .labels = last ? labels_ : nullptr,
                    .source = *source.array,
                    .decoder = source.decoder,
                    .delta = source.delta,
                    .layer = layer,
                    .last = last,
                    .scores = options_.scores,
                    .planner = layers_.Planner(layer),
                    .reader = layers_.Reader(layer),
                    .block_rows = layers_.RowsOfBlock(layer),
                    .block_edges = layers_.EdgesOfBlock(layer),
                    .reads = layers_.TakeReads(layer)},
                   output);
    return pass.Run(control);
  }

  Status LogMetadata(std::uint32_t layer, const WrittenArray& written) {
    if (log_ == nullptr || IsLast(layer)) return Status::Ok();
    const auto found =
        std::find_if(written.files.begin(), written.files.end(),
                     [](const FileEntry& file) { return file.path.ends_with("/zarr.json"); });
    RHIZOME_CHECK(found != written.files.end());
    return log_->AppendMetadata(layer, *found);
  }

  const GraphSnapshot& graph_;
  const Model& model_;
  const ClassLabels* const labels_;
  const Path scratch_;
  InferenceLog* const log_;
  const LayerwiseOptions& options_;
  Layers layers_;
  LayerwiseResult result_;
};

Result<LayerwiseOptions> Complete(const GraphSnapshot& graph, const Model& model,
                                  const LayerwiseOptions& options) {
  LayerwiseOptions complete = options;
  RHIZOME_ASSIGN_OR_RETURN(complete.output, MakeOutputEntry(graph, model, options));
  return complete;
}

}  // namespace

Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph) {
  if (array.dim != static_cast<std::uint64_t>(model.shape().inputs)) {
    return Status::InvalidArgument(
        fmt::format("array {} has {} columns, the model reads {}; give the array that it was "
                    "trained on",
                    array.name, array.dim, model.shape().inputs));
  }
  if (array.rows != graph.info().vertices) {
    return Status::InvalidArgument(fmt::format("array {} has {} rows for {} vertices", array.name,
                                               array.rows, graph.info().vertices));
  }
  return Status::Ok();
}

Result<LayerwiseResult> RunLayerwise(const GraphSnapshot& graph, const Model& model,
                                     const ClassLabels* labels, const Path& scratch,
                                     InferenceLog* log, const LayerwiseOptions& options,
                                     const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseOptions complete, Complete(graph, model, options));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, graph.store().OpenArray(options.features));
  RHIZOME_RETURN_IF_ERROR(CheckFeatures(features->entry(), model, graph));
  LayerwiseRun run(graph, model, labels, features->entry(), scratch, log, complete);
  return run.Run(control);
}

Result<InferLayerReport> RunLayerPart(const GraphSnapshot& graph, const Model& model,
                                      const ClassLabels* labels, const Path& scratch,
                                      InferenceLog& log, const LayerwiseOptions& options,
                                      const LayerPart& part, ChunkProgress progress,
                                      const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseOptions complete, Complete(graph, model, options));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, graph.store().OpenArray(options.features));
  LayerwiseRun run(graph, model, labels, features->entry(), scratch, &log, complete);
  return run.RunPart(part.layer, part.begin, part.end, std::move(progress), control);
}

Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const ArrayEntry& features,
                                              const LayerwiseOptions& options,
                                              const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const LayerwiseOptions complete, Complete(graph, model, options));
  Layers layers(graph, model, features, complete);
  RHIZOME_RETURN_IF_ERROR(layers.CountEdges());
  std::vector<LayerReads> plans;
  for (std::uint32_t layer = 0; layer < layers.count(); ++layer) {
    RHIZOME_ASSIGN_OR_RETURN(OrderChoice choice, layers.Choose(layer, control));
    const RowRule layout = choice.rule;
    layers.SetChoice(layer, std::move(choice));
    const ArrayEntry output = layers.Entry(layer);
    LayerReads plan{.source = layers.SourceOf(layer), .layout = layout};
    const std::uint64_t chunk_rows = plan.source.chunk_rows;
    plan.chunks = (graph.vertex_count() + chunk_rows - 1) / chunk_rows;
    plan.cache_chunks = std::min(layers.CacheChunks(layer), plan.chunks);
    std::optional<BlockReads> reads = layers.TakeReads(layer);
    if (!reads) {
      const std::vector<bool> none_done(output.chunk_count(), false);
      const std::vector<Block> blocks =
          BlocksOfLayer(output, layers.Planner(layer), layers.RowsOfBlock(layer),
                        layers.EdgesOfBlock(layer), none_done);
      RHIZOME_ASSIGN_OR_RETURN(reads, PlanReads(graph, layers.Planner(layer), blocks, control));
    }
    plan.requests = reads->trace.keys.size();
    plan.reads = CountReads(ChunkReader::PolicySteps(std::move(reads->trace), layers.Reader(layer)),
                            plan.chunks, complete.policy, plan.cache_chunks);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace rhizome
