#include "rhizome/gnn/layerwise_inference.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/gnn/layer_pass.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

/// Chunks of the arrays between layers: small, so that a block reads little that it does not need.
constexpr std::uint64_t kIntermediateChunkBytes = std::uint64_t{1} << 20;

std::uint64_t IntermediateChunkRows(const ArrayEntry& entry, std::uint64_t wanted_rows) {
  if (wanted_rows != 0) return RoundUpToTiles(wanted_rows);
  const std::uint64_t rows = std::max(kIntermediateChunkBytes / entry.row_bytes(), kTileRows);
  return std::min(rows / kTileRows * kTileRows, RoundUpToTiles(entry.rows));
}

ArrayEntry IntermediateEntry(const Graph& graph, const Model& model, std::uint32_t layer,
                             const LayerwiseOptions& options) {
  ArrayEntry entry{.name = fmt::format("hidden-{}", layer + 1),
                   .rows = graph.vertex_count(),
                   .dim = static_cast<std::uint64_t>(model.shape().spec.hidden),
                   .dtype = DataType::kFloat32,
                   .layout = ArrayLayout::kChunk,
                   .codec = options.output.codec,
                   .chunk_rows = 0,
                   .array_id = std::uint64_t{layer} + 1,
                   .attributes = {}};
  entry.chunk_rows = IntermediateChunkRows(entry, options.chunk_rows);
  return entry;
}

/// The source of the next layer: an array and how to read it.
struct Source {
  std::unique_ptr<ChunkArray> array;
  FeatureDecoder decoder;
  std::shared_ptr<const DeltaRows> delta;  // of the features, if there is one
};

Result<Source> OpenWritten(FileSystem& fs, const WrittenArray& written) {
  RHIZOME_ASSIGN_OR_RETURN(
      std::unique_ptr<ChunkArray> array,
      ChunkArray::Open(fs, written.root, written.arrays.front(), written.files));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(array->entry(), /*normalize=*/false));
  return Source{.array = std::move(array), .decoder = decoder, .delta = nullptr};
}

/// The run of one job: which layers there are, and what was done of them before.
class LayerwiseRun {
 public:
  LayerwiseRun(const Graph& graph, const Model& model, const Labels* labels, const Path& scratch,
               InferenceLog* log, const LayerwiseOptions& options)
      : graph_(graph),
        model_(model),
        labels_(labels),
        scratch_(scratch),
        log_(log),
        options_(options),
        layers_(model.shape().spec.layers) {}

  Result<LayerwiseResult> Run(const JobControl& control) {
    result_.layers.resize(layers_);
    RHIZOME_ASSIGN_OR_RETURN(const std::uint32_t first, FirstUnfinishedLayer());
    RHIZOME_ASSIGN_OR_RETURN(Source source, OpenSource(first));
    for (std::uint32_t layer = first; layer < layers_; ++layer) {
      RHIZOME_RETURN_IF_ERROR(RunLayer(layer, source, control));
      if (layer + 1 < layers_) {
        RHIZOME_ASSIGN_OR_RETURN(source, OpenWritten(fs(), result_.output));
      }
      // The layer before is of no use any more and its space may be needed; but a run that is
      // killed between the last layer and publishing comes back to the last layer and its source.
      const bool needed_to_resume = layer + 1 == layers_;
      if (layer > 0 && !needed_to_resume)
        RHIZOME_RETURN_IF_ERROR(RemoveTree(fs(), Folder(layer - 1)));
    }
    return std::move(result_);
  }

 private:
  FileSystem& fs() const { return graph_.store().fs(); }
  Path Folder(std::uint32_t layer) const { return scratch_ / fmt::format("layer-{}", layer + 1); }

  ArrayEntry Entry(std::uint32_t layer) const {
    return LayerEntry(graph_, model_, layer, options_);
  }

  /// The last layer is run even when it is whole: its chunks are adopted, nothing is computed.
  Result<std::uint32_t> FirstUnfinishedLayer() const {
    std::uint32_t first = 0;
    for (std::uint32_t layer = 0; log_ != nullptr && layer + 1 < layers_; ++layer) {
      const bool whole = log_->Finished(layer).size() == Entry(layer).chunk_count();
      if (whole || !log_->Finished(layer + 1).empty()) first = layer + 1;
    }
    return first;
  }

  Result<Source> OpenSource(std::uint32_t first) {
    if (first == 0) {
      RHIZOME_ASSIGN_OR_RETURN(auto array, graph_.store().OpenArray(options_.features));
      RHIZOME_RETURN_IF_ERROR(CheckFeatures(array->entry(), model_, graph_));
      RHIZOME_ASSIGN_OR_RETURN(
          const FeatureDecoder decoder,
          FeatureDecoder::Create(array->entry(), model_.shape().spec.normalize_features));
      auto delta = DeltaRows::Of(graph_.Snapshot(), array->entry());
      return Source{.array = std::move(array), .decoder = decoder, .delta = std::move(delta)};
    }
    RHIZOME_ASSIGN_OR_RETURN(
        LayerOutput finished,
        LayerOutput::Create(fs(), Folder(first - 1), Entry(first - 1), first - 1, log_));
    RHIZOME_ASSIGN_OR_RETURN(const WrittenArray written, finished.Finish());
    result_.resumed_chunks += finished.adopted_chunks();
    return OpenWritten(fs(), written);
  }

  Status RunLayer(std::uint32_t layer, const Source& source, const JobControl& control) {
    const bool last = layer + 1 == layers_;
    const bool written = !last || options_.write_output;
    RHIZOME_ASSIGN_OR_RETURN(
        LayerOutput output,
        LayerOutput::Create(fs(), written ? Folder(layer) : Path(), Entry(layer), layer, log_));
    const LayerPassInput input{
        .graph = graph_,
        .model = model_,
        .labels = last ? labels_ : nullptr,
        .source = *source.array,
        .decoder = source.decoder,
        .delta = source.delta,
        .layer = layer,
        .last = last,
        .scores = options_.scores,
        .planner = {.fanout = options_.fanouts.empty() ? kAllNeighbors : FanoutOf(layer),
                    .no_edges = model_.shape().spec.no_edges,
                    .seed = options_.seed,
                    .layer = layer,
                    .threads = options_.threads,
                    .source_chunk_rows = source.array->entry().chunk_rows,
                    .neighbors = options_.neighbors},
        .reader = {.policy = options_.policy, .cache_bytes = options_.cache_bytes},
        .block_rows = options_.block_rows,
        .threads = options_.threads};
    LayerPass pass(input, output);
    RHIZOME_ASSIGN_OR_RETURN(result_.layers[layer], pass.Run(control));
    result_.resumed_chunks += output.adopted_chunks();
    if (last) result_.accuracy = output.accuracy();
    RHIZOME_ASSIGN_OR_RETURN(result_.output, output.Finish());
    return Status::Ok();
  }

  /// Fanouts are given from the seeds outwards, as samplers take them; the first layer computed is
  /// the outermost hop.
  std::int64_t FanoutOf(std::uint32_t layer) const { return options_.fanouts[layers_ - 1 - layer]; }

  const Graph& graph_;
  const Model& model_;
  const Labels* const labels_;
  const Path scratch_;
  InferenceLog* const log_;
  const LayerwiseOptions& options_;
  const std::uint32_t layers_;
  LayerwiseResult result_;
};

}  // namespace

Status CheckFeatures(const ArrayEntry& array, const Model& model, const Graph& graph) {
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

Result<ArrayEntry> MakeOutputEntry(const Graph& graph, const Model& model,
                                   const LayerwiseOptions& options) {
  const std::uint32_t layers = model.shape().spec.layers;
  if (!options.fanouts.empty() && options.fanouts.size() != layers) {
    return Fail(Status::InvalidArgument(
        fmt::format("{} fanouts for a model of {} layers", options.fanouts.size(), layers)));
  }
  ArrayEntry entry = options.output;
  entry.rows = graph.vertex_count();
  entry.dim = static_cast<std::uint64_t>(options.scores ? model.shape().classes
                                                        : model.shape().spec.hidden);
  entry.dtype = DataType::kFloat32;
  entry.layout = ArrayLayout::kChunk;
  entry.codec.element_bytes = sizeof(float);
  // As of an array of the generation: rows of new vertices are published apart.
  RHIZOME_ASSIGN_OR_RETURN(entry.chunk_rows,
                           DefaultChunkRows(graph.info().vertices, entry.row_bytes()));
  if (options.chunk_rows != 0) entry.chunk_rows = RoundUpToTiles(options.chunk_rows);
  return entry;
}

ArrayEntry LayerEntry(const Graph& graph, const Model& model, std::uint32_t layer,
                      const LayerwiseOptions& options) {
  return layer + 1 == model.shape().spec.layers ? options.output
                                                : IntermediateEntry(graph, model, layer, options);
}

Result<LayerwiseResult> RunLayerwise(const Graph& graph, const Model& model, const Labels* labels,
                                     const Path& scratch, InferenceLog* log,
                                     const LayerwiseOptions& options, const JobControl& control) {
  LayerwiseOptions complete = options;
  RHIZOME_ASSIGN_OR_RETURN(complete.output, MakeOutputEntry(graph, model, options));
  LayerwiseRun run(graph, model, labels, scratch, log, complete);
  return run.Run(control);
}

}  // namespace rhizome
