#include "rhizome/gnn/inference_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rhizome/cache/block_stager.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/cache/minibatch_sampler.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

/// Chunk size of the arrays between layers: small, so that a block reads little that it does not
/// need, but not tiny, because each chunk is synced when it is written.
constexpr std::uint64_t kIntermediateChunkBytes = std::uint64_t{4} << 20;

/// Chunk size of the result: several chunks are filled, wait and are encoded at once, in memory
/// that sums could use.
constexpr std::uint64_t kOutputChunkBytes = std::uint64_t{8} << 20;

/// Memory of a block's lists, for each edge, each row that it reads and each target, and the number
/// of blocks that have lists: one is computed, one is planned ahead.
constexpr std::uint64_t kBytesOfListedEdge = 4;
constexpr std::uint64_t kBytesOfListedRow = 12;
constexpr std::uint64_t kBytesOfListedTarget = 32;
constexpr std::uint64_t kPlannedBlocks = BlockStager::kBlocks;

/// Bytes for each vertex: the rows that a block reads with their rank, and the degree.
constexpr std::uint64_t kBytesOfVertex = 5;

/// Maximum ratio of a block's edges to the average for as many vertices.
constexpr double kBlockEdgeRatio = 1.5;

/// Several reading threads for each thread, because they mostly wait for the disk.
constexpr std::uint32_t kReadersOfThread = 2;

/// Returns the rows of as many whole tiles as fit, at least one tile.
std::uint64_t TilesWithin(std::uint64_t bytes, std::uint64_t row_bytes) {
  return std::max(bytes / std::max<std::uint64_t>(row_bytes, 1) / kTileRows, std::uint64_t{1}) *
         kTileRows;
}

std::uint64_t IntermediateChunkRows(const ArrayEntry& entry, std::uint64_t wanted_rows) {
  if (wanted_rows != 0) return RoundUpToTiles(wanted_rows);
  return std::min(TilesWithin(kIntermediateChunkBytes, entry.row_bytes()),
                  RoundUpToTiles(entry.rows));
}

/// Returns the chunk rows of the last layer, if its chunks are not shards.
std::uint64_t OutputChunkRows(const ArrayEntry& entry) {
  if (entry.chunk_rows != 0) return RoundUpToTiles(entry.chunk_rows);
  return std::min(RoundUpToTiles(entry.rows), TilesWithin(kOutputChunkBytes, entry.row_bytes()));
}

ArrayEntry IntermediateEntry(const GraphSnapshot& graph, const Model& model, std::uint32_t layer,
                             const LayerwiseOptions& options) {
  ArrayEntry entry{.name = fmt::format("hidden-{}", layer + 1),
                   .rows = graph.vertex_count(),
                   .dim = static_cast<std::uint64_t>(model.shape().spec.hidden),
                   .dtype = DataType::kFloat32,
                   .layout = ArrayLayout::kChunk,
                   // Written once and read often. Rectified floats lose their zeros, which is as
                   // fast as copying; other codecs cost more time than the reading that they save.
                   .codec = {.kind = CodecKind::kNonzero, .level = 0},
                   .chunk_rows = 0,
                   .array_id = std::uint64_t{layer} + 1,
                   .attributes = {}};
  entry.chunk_rows = IntermediateChunkRows(entry, options.chunk_rows);
  return entry;
}

/// Returns the largest number of edges that a layer takes of all vertices.
std::uint64_t EdgesOfLayer(const GraphSnapshot& graph, const Model& model, std::uint32_t layer,
                           const LayerwiseOptions& options) {
  if (model.shape().spec.no_edges) return 0;
  const std::int64_t fanout =
      options.fanouts.empty() ? kAllNeighbors : options.fanouts[options.fanouts.size() - 1 - layer];
  if (fanout == kAllNeighbors) return graph.generation_edge_count();
  return std::min(graph.generation_edge_count(),
                  graph.vertex_count() * static_cast<std::uint64_t>(fanout));
}

std::uint64_t StageRows(const ArrayEntry& source, const LayerwiseOptions& options) {
  return std::max<std::uint64_t>(options.stage_bytes / (source.dim * sizeof(float)), 1);
}

ChunkReaderOptions ReaderOf(const ArrayEntry& source, const LayerwiseOptions& options) {
  return {.policy = options.policy,
          .cached_first = options.cached_first,
          .cache_bytes = options.cache_bytes,
          .threads = kReadersOfThread * options.threads,
          .direct = options.direct,
          .ahead = ChunkReader::AheadFor(source, options.threads, options.ahead_bytes)};
}

}  // namespace

Status Layers::CountEdges() {
  if (model_.shape().spec.no_edges) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(degrees_, InDegrees(graph_));
  return Status::Ok();
}

Status Layers::FindTargets(const JobControl& control) {
  std::vector<std::uint32_t> rows = *options_.targets;
  for (std::uint32_t layer = count(); layer-- > 0;) {
    orders_[layer] = RowOrder(rows, graph_.vertex_count());
    if (layer == 0) break;
    const std::vector<Row> targets(rows.begin(), rows.end());
    RHIZOME_ASSIGN_OR_RETURN(const PassLists lists,
                             DrawPassLists(graph_, targets, Draw(layer), control));
    rows.assign(lists.rows.begin(), lists.rows.end());
  }
  return Status::Ok();
}

Result<OrderChoice> Layers::Choose(std::uint32_t layer, const JobControl& control) const {
  OrderChoice choice;
  if (options_.targets || layer + 1 == count()) return choice;
  RHIZOME_ASSIGN_OR_RETURN(choice, ChooseOrder(graph_,
                                               {.maker = Reads(layer),
                                                .reader = Reads(layer + 1),
                                                .rule = options_.layout,
                                                .memory_bytes = options_.layout_bytes},
                                               control));
  return choice;
}

void Layers::SetChoice(std::uint32_t layer, OrderChoice choice) {
  SetOrder(layer, std::move(choice.order));
  // Earlier counts for these layers were for another order.
  reads_[layer] = std::move(choice.maker);
  if (layer + 1 < count()) reads_[layer + 1] = std::move(choice.reader);
}

ArrayEntry Layers::Entry(std::uint32_t layer) const {
  ArrayEntry entry = LayerEntry(graph_, model_, layer, options_);
  if (options_.targets) entry.rows = orders_[layer].row_at().size();
  return entry;
}

ArrayEntry Layers::SourceOf(std::uint32_t layer) const {
  return layer == 0 ? features_ : Entry(layer - 1);
}

BlockPlannerOptions Layers::Planner(std::uint32_t layer) const {
  const ArrayEntry source = SourceOf(layer);
  const PassDrawOptions draw = Draw(layer);
  return {.fanout = draw.fanout,
          .no_edges = draw.no_edges,
          .seed = draw.seed,
          .layer = layer,
          .threads = draw.threads,
          .source_chunk_rows = source.chunk_rows,
          .stage_rows = StageRows(source, options_),
          .source_order = layer == 0 ? nullptr : &orders_[layer - 1],
          .target_order = &orders_[layer],
          .degrees = degrees_,
          .neighbors = options_.neighbors};
}

std::uint64_t Layers::RowsOfBlock(std::uint32_t layer) const {
  return BlockRows(graph_, model_, SourceOf(layer), layer, options_);
}

std::uint64_t Layers::EdgesOfBlock(std::uint32_t layer) const {
  return BlockEdgeLimit(graph_, model_, SourceOf(layer), layer, options_);
}

ChunkReaderOptions Layers::Reader(std::uint32_t layer) const {
  return ReaderOf(SourceOf(layer), options_);
}

PassDrawOptions Layers::Draw(std::uint32_t layer) const {
  // Fanouts are given from the seeds outwards, as samplers take them; the first layer computed is
  // the outermost hop.
  const std::size_t hop = count() - 1 - layer;
  return {.fanout = options_.fanouts.empty() ? kAllNeighbors : options_.fanouts[hop],
          .no_edges = model_.shape().spec.no_edges,
          .seed = options_.seed,
          .layer = layer,
          .threads = options_.threads,
          .neighbors = options_.neighbors};
}

PassReads Layers::Reads(std::uint32_t layer) const {
  const ArrayEntry source = SourceOf(layer);
  return {.draw = Draw(layer),
          .source_chunk_rows = source.chunk_rows,
          .source_chunk_bytes = ChunkReader::DecodedBytes(source),
          .output_chunk_rows = Entry(layer).chunk_rows,
          .block_rows = RowsOfBlock(layer),
          .block_edges = EdgesOfBlock(layer),
          .stage_rows = StageRows(source, options_),
          .cache_chunks = CacheChunks(layer),
          .policy = options_.policy,
          .cached_first = options_.cached_first,
          .source_order = layer == 0 ? nullptr : &orders_[layer - 1],
          .degrees = degrees_};
}

std::uint64_t Layers::CacheChunks(std::uint32_t layer) const {
  return options_.cache_bytes / ChunkReader::DecodedBytes(SourceOf(layer));
}

std::uint64_t BlockRows(const GraphSnapshot& graph, const Model& model, const ArrayEntry& source,
                        std::uint32_t layer, const LayerwiseOptions& options) {
  if (options.block_rows != 0) return options.block_rows;
  const std::uint64_t vertices = std::max<std::uint64_t>(graph.vertex_count(), 1);
  const std::uint64_t edges = EdgesOfLayer(graph, model, layer, options);
  const std::uint64_t each =
      source.dim * sizeof(float) +
      kPlannedBlocks *
          (kBytesOfListedTarget +
           static_cast<std::uint64_t>(kBlockEdgeRatio * static_cast<double>(edges) /
                                      static_cast<double>(vertices) * kBytesOfListedEdge));
  return std::clamp(options.block_bytes / each, kTileRows, RoundUpToTiles(vertices));
}

std::uint64_t BlockEdgeLimit(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& source, std::uint32_t layer,
                             const LayerwiseOptions& options) {
  const std::uint64_t rows = BlockRows(graph, model, source, layer, options);
  const std::uint64_t edges = EdgesOfLayer(graph, model, layer, options);
  const double share = static_cast<double>(rows) /
                       static_cast<double>(std::max<std::uint64_t>(graph.vertex_count(), 1));
  const double limit = kBlockEdgeRatio * share * static_cast<double>(edges);
  return std::max(kSampledEdges, static_cast<std::uint64_t>(limit));
}

std::uint64_t WorkingBytes(const GraphSnapshot& graph, const Model& model,
                           const ArrayEntry& features, const LayerwiseOptions& options) {
  const std::uint64_t vertices = graph.vertex_count();
  std::uint64_t widest = 0;
  ArrayEntry source = features;
  for (std::uint32_t layer = 0; layer < model.shape().spec.layers; ++layer) {
    const ArrayEntry output = LayerEntry(graph, model, layer, options);
    const std::uint64_t row_bytes = source.dim * sizeof(float);
    // Blocks have about the same size.
    const std::uint64_t most = BlockRows(graph, model, source, layer, options);
    const std::uint64_t blocks = (vertices + most - 1) / std::max<std::uint64_t>(most, 1);
    const std::uint64_t targets = RoundUpToTiles(vertices / std::max<std::uint64_t>(blocks, 1) + 1);
    // High-degree vertices may be adjacent: in PDS order they are.
    const std::uint64_t edges = std::min(BlockEdgeLimit(graph, model, source, layer, options),
                                         EdgesOfLayer(graph, model, layer, options));
    const std::uint64_t lists = edges * kBytesOfListedEdge +
                                std::min(edges + targets, vertices) * kBytesOfListedRow +
                                targets * kBytesOfListedTarget;
    const std::uint64_t bytes =
        BlockStager::kStages * std::min(options.stage_bytes, vertices * row_bytes) +
        ChunkReader::WorkingBytes(source, ReaderOf(source, options)) + targets * row_bytes +
        kPlannedBlocks * lists + vertices * kBytesOfVertex + 2 * RowOrder::Bytes(vertices) +
        LayerOutput::Bytes(output, options.writers);
    widest = std::max(widest, bytes);
    source = output;
  }
  return widest;
}

std::uint64_t CacheableBytes(const GraphSnapshot& graph, const Model& model,
                             const ArrayEntry& features, const LayerwiseOptions& options) {
  std::uint64_t most = features.chunk_count() * ChunkReader::DecodedBytes(features);
  for (std::uint32_t layer = 0; layer + 1 < model.shape().spec.layers; ++layer) {
    const ArrayEntry hidden = LayerEntry(graph, model, layer, options);
    most = std::max(most, hidden.chunk_count() * ChunkReader::DecodedBytes(hidden));
  }
  return most;
}

Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
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
  // Chunk rows are chosen as for an array of the generation, because rows of new vertices are
  // published separately.
  const std::uint64_t rows = std::exchange(entry.rows, graph.info().vertices);
  entry.chunk_rows = options.chunk_rows;
  if (entry.inner_rows == 0) entry.chunk_rows = OutputChunkRows(entry);
  RHIZOME_RETURN_IF_ERROR(ChooseChunkRows(entry));
  entry.rows = rows;
  return entry;
}

ArrayEntry LayerEntry(const GraphSnapshot& graph, const Model& model, std::uint32_t layer,
                      const LayerwiseOptions& options) {
  return layer + 1 == model.shape().spec.layers ? options.output
                                                : IntermediateEntry(graph, model, layer, options);
}

}  // namespace rhizome
