#include "gnn/infer/layerwise_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "cache/blocks/chunk_reader.h"
#include "cache/blocks/pass_order.h"
#include "cache/layout/pass_cost.h"
#include "gnn/infer/inference_workers.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/input_pass.h"
#include "gnn/infer/layer_pass.h"
#include "gnn/infer/layer_plan.h"
#include "rhizome/chunk_array.h"
#include "storage/array/array_versions.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
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

/// The run of one job. It runs the input pass, if there is one, unless an earlier run has completed
/// it. For each layer it (1) finds or chooses the order of the rows that the layer
/// writes; (2) runs the pass, here or in child processes, and adopts chunks of an earlier run; (3)
/// logs the metadata of the finished array, which is the next layer's source; (4) removes the array
/// that the layer has read. A resumed run begins at the first layer that is not complete.
class LayerwiseRun {
 public:
  /// `features`: the entry of the array that the first layer reads.
  LayerwiseRun(const LayerwiseInput& input, const ArrayEntry& features,
               const LayerwiseOptions& options)
      : input_(input), options_(options), layers_(input.graph, input.model, features, options) {}

  Result<LayerwiseResult> Run(const JobControl& control) {
    result_.layers.resize(layers_.count());
    RHIZOME_RETURN_IF_ERROR(layers_.CountEdges());
    if (options_.targets) RHIZOME_RETURN_IF_ERROR(layers_.FindTargets(control));
    const std::uint32_t first = FirstUnfinishedLayer();
    if (first > 0) {
      RHIZOME_RETURN_IF_ERROR(FindOrder(first - 1, control));
      result_.resumed_chunks += input_.log->Finished(first - 1).size();
    }
    RHIZOME_RETURN_IF_ERROR(RunInputs(first, control));
    RHIZOME_ASSIGN_OR_RETURN(Source source, OpenSource(first));
    for (std::uint32_t layer = first; layer < layers_.count(); ++layer) {
      RHIZOME_RETURN_IF_ERROR(FindOrder(layer, control));
      RHIZOME_RETURN_IF_ERROR(RunLayer(layer, source, control));
      if (!IsLast(layer)) {
        RHIZOME_ASSIGN_OR_RETURN(source, OpenWritten(fs(), result_.output));
      }
      // The array of the previous layer is no longer needed, but its disk space may be. A run that
      // is killed between the last layer and publishing resumes at the last layer, so the source of
      // that layer is kept.
      if (layer > 0 && !IsLast(layer)) RHIZOME_RETURN_IF_ERROR(RemoveTree(fs(), Folder(layer - 1)));
      if (layer == 0 && !IsLast(layer) && has_inputs())
        RHIZOME_RETURN_IF_ERROR(RemoveTree(fs(), FirstFolder()));
    }
    return std::move(result_);
  }

  /// Computes chunks [begin, end) of a layer, for a job that another process runs.
  Result<InferLayerReport> RunPart(const LayerPart& part, ChunkProgress progress,
                                   const JobControl& control) {
    result_.layers.resize(layers_.count());
    const std::uint32_t layer = part.layer;
    if (layer >= layers_.count() || part.end > layers_.Written(layer).chunk_count()) {
      return Fail(Status::InvalidArgument("a worker received a task of another job"));
    }
    RHIZOME_RETURN_IF_ERROR(layers_.CountEdges());
    if (layer == 0 && has_inputs() && input_.log->Metadata(FirstInLog()) == nullptr) {
      return Fail(Status::Corruption(
          "inference log: the first layer has begun, but the rows that it reads are missing"));
    }
    for (std::uint32_t known = layer == 0 ? 0 : layer - 1; known <= layer; ++known) {
      if (!IsLast(known) && input_.log->Order(known) == nullptr) {
        return Fail(
            Status::Corruption("inference log: a layer has begun, but its order is missing"));
      }
      RHIZOME_RETURN_IF_ERROR(FindOrder(known, control));
    }
    RHIZOME_ASSIGN_OR_RETURN(const Source source, OpenSource(layer));
    RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<LayerOutput> output,
                             LayerOutput::Create(fs(), Folder(layer), layers_.Written(layer),
                                                 std::move(progress), options_.memory.writers));
    output->LeaveOthers(part.begin, part.end);
    RHIZOME_ASSIGN_OR_RETURN(InferLayerReport report, RunPass(layer, source, *output, control));
    RHIZOME_RETURN_IF_ERROR(output->Complete());
    report.write_seconds = output->write_seconds();
    report.bytes_written = output->bytes_written();
    return report;
  }

 private:
  FileSystem& fs() const { return input_.graph.store().fs(); }
  Path Folder(std::uint32_t layer) const {
    return input_.scratch / fmt::format("layer-{}", layer + 1);
  }
  Path FirstFolder() const { return input_.scratch / "layer-0"; }

  /// Returns whether an input pass writes the array that the first layer reads, and the number
  /// under which the log lists its chunks; the number after the last layer is the merged array's.
  bool has_inputs() const { return input_.model.inputs() != nullptr; }
  std::uint32_t FirstInLog() const { return layers_.count() + 1; }
  Path OrderFile(std::uint32_t layer) const {
    return input_.scratch / fmt::format("order-{}", layer + 1);
  }
  bool IsLast(std::uint32_t layer) const { return layer + 1 == layers_.count(); }

  /// Returns the first layer to run. The last layer is run even if it is complete: its chunks are
  /// adopted and nothing is computed.
  std::uint32_t FirstUnfinishedLayer() const {
    std::uint32_t first = 0;
    for (std::uint32_t layer = 0; input_.log != nullptr && !IsLast(layer); ++layer) {
      if (input_.log->Metadata(layer) != nullptr) first = layer + 1;
    }
    return first;
  }

  /// Uses the order that an earlier run logged, even if another one would be chosen now. Otherwise
  /// chooses an order and logs it.
  Status FindOrder(std::uint32_t layer, const JobControl& control) {
    if (input_.log == nullptr || IsLast(layer) || options_.targets) return Status::Ok();
    if (const LoggedOrder* const logged = input_.log->Order(layer)) {
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
      // A run that was killed before it could log the order may have left the file.
      const Status removed = fs().RemoveFile(OrderFile(layer));
      if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
      RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs(), OrderFile(layer), bytes));
      RHIZOME_RETURN_IF_ERROR(fs().SyncDirectory(input_.scratch));
      logged.xxh3 = Xxh3(bytes);
    }
    RHIZOME_RETURN_IF_ERROR(input_.log->AppendOrder(layer, logged));
    result_.layers[layer].layout = logged.rule;
    for (const OrderCost& cost : choice.costs) {
      result_.layers[layer].layouts.push_back({RowRuleName(cost.rule), cost.bytes});
    }
    layers_.SetChoice(layer, std::move(choice));
    return Status::Ok();
  }

  Result<RowOrder> ReadOrder(const Path& path, const Hash128& hash) const {
    const std::uint64_t rows = input_.graph.vertex_count();
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                             ReadWholeFile(fs(), path, rows * sizeof(std::uint32_t)));
    if (bytes.size() != rows * sizeof(std::uint32_t) || Xxh3(bytes) != hash) {
      return Fail(Status::Corruption(fmt::format(
          "{} is not the file that the job wrote; run without `resume`", path.string())));
    }
    std::vector<std::uint32_t> row_at(rows);
    std::memcpy(row_at.data(), bytes.data(), bytes.size());
    return RowOrder(std::move(row_at), rows);
  }

  /// Runs the input pass, if there is one and `first`, the first layer that is run, reads its
  /// array. Adopts chunks of an earlier run.
  Status RunInputs(std::uint32_t first, const JobControl& control) {
    if (!has_inputs() || first > 0) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<LayerOutput> output,
        LayerOutput::Create(fs(), FirstFolder(), layers_.FirstRows(),
                            ChunkProgress::Of(input_.log, FirstInLog()),
                            input_.workers == nullptr ? options_.memory.writers : 1));
    result_.resumed_chunks += output->adopted_chunks();
    const InputPass pass(input_.graph, input_.model, options_, layers_.first_order());
    RHIZOME_ASSIGN_OR_RETURN(result_.inputs, pass.Run(*output, control));
    RHIZOME_ASSIGN_OR_RETURN(first_rows_, output->Finish());
    result_.inputs.write_seconds = output->write_seconds();
    result_.inputs.bytes_written = output->bytes_written();
    return LogMetadata(FirstInLog(), *first_rows_);
  }

  Result<Source> OpenSource(std::uint32_t first) {
    if (first == 0 && first_rows_) return OpenWritten(fs(), *first_rows_);
    if (first == 0 && has_inputs())
      return OpenWritten(fs(), WrittenBefore(FirstInLog(), FirstFolder(), layers_.FirstRows()));
    if (first == 0) {
      RHIZOME_ASSIGN_OR_RETURN(auto array, input_.graph.store().OpenArray(options_.features));
      RHIZOME_ASSIGN_OR_RETURN(
          const FeatureDecoder decoder,
          FeatureDecoder::Create(array->entry(), input_.model.shape().spec.normalize_features));
      auto delta = DeltaRows::Of(input_.graph.Snapshot(), array->entry());
      return Source{.array = std::move(array), .decoder = decoder, .delta = std::move(delta)};
    }
    return OpenWritten(fs(),
                       WrittenBefore(first - 1, Folder(first - 1), layers_.Written(first - 1)));
  }

  /// Returns a complete array that another run or process wrote, by its number in the log.
  WrittenArray WrittenBefore(std::uint32_t number, const Path& folder,
                             const ArrayEntry& entry) const {
    WrittenArray written{
        .root = folder, .arrays = {entry}, .files = {*input_.log->Metadata(number)}};
    for (const auto& [chunk, finished] : input_.log->Finished(number)) {
      written.files.push_back(finished.file);
    }
    std::sort(written.files.begin(), written.files.end(),
              [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
    return written;
  }

  Status RunLayer(std::uint32_t layer, const Source& source, const JobControl& control) {
    const bool written = !IsLast(layer) || options_.write_output;
    std::map<std::uint64_t, FinishedChunk> own;  // chunks of this process, if others share
    ChunkProgress progress = ChunkProgress::Of(input_.log, layer);
    if (input_.sharing != nullptr) {
      progress.tell = [&own](std::uint64_t chunk, const FinishedChunk& finished) {
        own.emplace(chunk, finished);
        return Status::Ok();
      };
    }
    RHIZOME_ASSIGN_OR_RETURN(
        const std::unique_ptr<LayerOutput> output,
        LayerOutput::Create(fs(), written ? Folder(layer) : Path(), layers_.Written(layer),
                            std::move(progress), options_.memory.writers));
    if (input_.sharing != nullptr) {
      const LayerSharing::Chunks mine = input_.sharing->Own(output->done().size());
      output->LeaveOthers(mine.begin, mine.end);
    }
    result_.resumed_chunks += output->adopted_chunks();
    RHIZOME_ASSIGN_OR_RETURN(
        InferLayerReport report,
        input_.workers == nullptr
            ? RunPass(layer, source, *output, control)
            : input_.workers->RunLayer(ToCut(layer), *output, *input_.log, control));
    if (input_.sharing != nullptr && written)
      RHIZOME_RETURN_IF_ERROR(ShareChunks(layer, *output, own));
    if (IsLast(layer)) result_.accuracy = output->accuracy();
    RHIZOME_ASSIGN_OR_RETURN(result_.output, output->Finish());
    result_.non_finite_rows = output->non_finite_rows();
    if (!IsLast(layer)) RHIZOME_RETURN_IF_ERROR(LogMetadata(layer, result_.output));
    if (input_.workers == nullptr) {
      report.write_seconds = output->write_seconds();
      report.bytes_written = output->bytes_written();
    }
    report.kind = input_.model.shape().spec.kind;
    report.passes = 1;
    report.layout = std::move(result_.layers[layer].layout);
    report.layouts = std::move(result_.layers[layer].layouts);
    result_.layers[layer] = std::move(report);
    return Status::Ok();
  }

  /// Completes a layer's array with the chunks that other processes have computed.
  Status ShareChunks(std::uint32_t layer, LayerOutput& output,
                     const std::map<std::uint64_t, FinishedChunk>& own) {
    RHIZOME_RETURN_IF_ERROR(output.Complete());
    return input_.sharing->Exchange(fs(), Folder(layer), output.done().size(), own,
                                    [&](std::uint64_t chunk, const FinishedChunk& finished) {
                                      return output.Adopt(chunk, finished);
                                    });
  }

  LayerToCut ToCut(std::uint32_t layer) const {
    LayerToCut to_cut{.graph = input_.graph,
                      .layer = layer,
                      .kind = input_.model.shape().spec.kind,
                      .columns_read = layers_.SourceOf(layer).dim,
                      .columns_written = layers_.Written(layer).dim,
                      .rows = layers_.Written(layer).rows,
                      .pass = layers_.Pass(layer)};
    for (std::uint32_t later = layer + 1; later < layers_.count(); ++later) {
      to_cut.alike += layers_.SourceOf(later).dim == to_cut.columns_read &&
                              layers_.Written(later).dim == to_cut.columns_written
                          ? 1
                          : 0;
    }
    return to_cut;
  }

  Result<InferLayerReport> RunPass(std::uint32_t layer, const Source& source, LayerOutput& output,
                                   const JobControl& control) {
    const bool last = IsLast(layer);
    LayerPass pass({.graph = input_.graph,
                    .model = input_.model,
                    .labels = last ? input_.labels : nullptr,
                    .sink = last ? input_.sink : nullptr,
                    .source = *source.array,
                    .decoder = source.decoder,
                    .delta = source.delta,
                    .layer = layer,
                    .last = last,
                    .scores = options_.scores,
                    .weighted_degrees = layers_.weighted_degrees(),
                    .pass = layers_.Pass(layer),
                    .reads = layers_.TakeReads(layer),
                    .device = input_.device},
                   output);
    return pass.Run(control);
  }

  /// Logs that an array is complete. The last layer's is not: its chunks are adopted instead.
  Status LogMetadata(std::uint32_t layer, const WrittenArray& written) {
    if (input_.log == nullptr) return Status::Ok();
    const auto found =
        std::find_if(written.files.begin(), written.files.end(),
                     [](const FileEntry& file) { return file.path.ends_with("/zarr.json"); });
    RHIZOME_CHECK(found != written.files.end());
    return input_.log->AppendMetadata(layer, *found);
  }

  const LayerwiseInput& input_;
  const LayerwiseOptions& options_;
  LayerPlan layers_;
  LayerwiseResult result_;
  std::optional<WrittenArray> first_rows_;  // of the input pass of this run
};

}  // namespace

Status CheckFeatures(const ArrayEntry& array, const Model& model, const GraphSnapshot& graph) {
  if (array.dim != static_cast<std::uint64_t>(model.shape().inputs)) {
    return Status::InvalidArgument(fmt::format(
        "array {} has {} columns, but the model needs {}; give the array that it was trained on",
        ShownName(array.name), array.dim, model.shape().inputs));
  }
  if (array.rows != graph.info().vertices) {
    return Status::InvalidArgument(fmt::format("array {} has {} rows, but there are {} vertices",
                                               ShownName(array.name), array.rows,
                                               graph.info().vertices));
  }
  return Status::Ok();
}

Result<LayerwiseResult> RunLayerwise(const LayerwiseInput& input, const LayerwiseOptions& options,
                                     const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry first, FirstSource(input.graph, input.model, options));
  if (input.model.inputs() == nullptr)
    RHIZOME_RETURN_IF_ERROR(CheckFeatures(first, input.model, input.graph));
  RHIZOME_CHECK(input.sharing == nullptr ||
                (input.log == nullptr && input.workers == nullptr && !options.targets &&
                 !options.write_output && options.chunk_rows != 0));
  return LayerwiseRun(input, first, options).Run(control);
}

Result<InferLayerReport> RunLayerPart(const LayerwiseInput& input, const LayerwiseOptions& options,
                                      const LayerPart& part, ChunkProgress progress,
                                      const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry first, FirstSource(input.graph, input.model, options));
  return LayerwiseRun(input, first, options).RunPart(part, std::move(progress), control);
}

Result<std::vector<LayerReads>> PlanLayerwise(const GraphSnapshot& graph, const Model& model,
                                              const LayerwiseOptions& options,
                                              const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry first, FirstSource(graph, model, options));
  LayerPlan layers(graph, model, first, options);
  RHIZOME_RETURN_IF_ERROR(layers.CountEdges());
  std::vector<LayerReads> plans;
  for (std::uint32_t layer = 0; layer < layers.count(); ++layer) {
    RHIZOME_ASSIGN_OR_RETURN(OrderChoice choice, layers.Choose(layer, control));
    LayerReads plan{.source = layers.SourceOf(layer), .layout = choice.rule};
    layers.SetChoice(layer, std::move(choice));
    const PassReads pass = layers.Pass(layer);
    plan.chunks = ChunksOf(graph.vertex_count(), plan.source.chunk_rows);
    plan.cache_chunks = std::min(pass.cache_chunks(), plan.chunks);
    std::optional<BlockReads> reads = layers.TakeReads(layer);
    if (!reads) {
      RHIZOME_ASSIGN_OR_RETURN(reads,
                               PlanPassReads(graph, pass, layers.Written(layer).rows, control));
    }
    plan.requests = reads->trace.keys.size();
    RHIZOME_ASSIGN_OR_RETURN(plan.reads,
                             CountPassReads(pass, std::move(reads->trace), plan.chunks));
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace internal
}  // namespace rhizome
