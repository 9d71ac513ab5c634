#include "gnn/infer/layer_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/blocks/block_stager.h"
#include "cache/blocks/layer_output.h"
#include "cache/blocks/row_order.h"
#include "cache/feed/resolve_sampling.h"
#include "rhizome/chunk_array.h"

// Sizes follow from LayerMemory: rows of a stage from stage_bytes, rows of a block from
// block_bytes, and edges of a block from its rows and the average degree. WorkingBytes adds up the
// memory of the widest layer: stages, the chunk reader, the state and lists of blocks, tables by
// vertex, row orders and the output. DivideMemory (inference_memory.h) searches for the largest
// sizes that fit a limit.

namespace rhizome {
inline namespace internal {
namespace {

/// Chunk size of the arrays between layers: small, so that a block reads little that it does not
/// need, but not tiny, because each chunk is synced when it is written.
constexpr std::uint64_t kIntermediateChunkBytes = std::uint64_t{4} << 20;

/// Chunk size of the result. Several chunks are filled, queued and encoded at once, in memory that
/// sums could use otherwise.
constexpr std::uint64_t kOutputChunkBytes = std::uint64_t{8} << 20;

/// Memory of a block's lists per edge, per row that the block reads and per target; and the number
/// of blocks that have lists at a time: one is computed while the next one is planned.
constexpr std::uint64_t kBytesOfListedEdge = 4;
constexpr std::uint64_t kBytesOfEdgeWeight = 4;
constexpr std::uint64_t kBytesOfListedRow = 12;
constexpr std::uint64_t kBytesOfListedTarget = 32;
constexpr std::uint64_t kPlannedBlocks = BlockStager::kBlocks;

/// Bytes per vertex: its degree, and its share of the table that ranks the rows which a block
/// reads.
constexpr std::uint64_t kBytesOfVertex = 5;

/// Max ratio of a block's edges to the average for the same number of vertices.
constexpr double kBlockEdgeRatio = 1.5;

/// Reading threads per compute thread. There are several, because they mostly wait for the disk.
constexpr std::uint32_t kReadersOfThread = 2;

/// Returns the number of rows of all whole tiles that fit into `bytes`, at least one tile.
std::uint64_t TilesWithin(std::uint64_t bytes, std::uint64_t row_bytes) {
  return std::max(bytes / std::max<std::uint64_t>(row_bytes, 1) / kTileRows, std::uint64_t{1}) *
         kTileRows;
}

std::uint64_t IntermediateChunkRows(const ArrayEntry& entry, std::uint64_t wanted_rows) {
  if (wanted_rows != 0) return RoundUpToTiles(wanted_rows);
  return std::min(TilesWithin(kIntermediateChunkBytes, entry.row_bytes()),
                  RoundUpToTiles(entry.rows));
}

/// Returns the chunk rows of the result if its chunks are not shards.
std::uint64_t OutputChunkRows(const ArrayEntry& entry) {
  if (entry.chunk_rows != 0) return RoundUpToTiles(entry.chunk_rows);
  return std::min(RoundUpToTiles(entry.rows), TilesWithin(kOutputChunkBytes, entry.row_bytes()));
}

}  // namespace

ArrayEntry LayerSizes::Written(std::uint32_t layer) const {
  return layer + 1 == layers() ? options_.output : Intermediate(layer);
}

ArrayEntry LayerSizes::Intermediate(std::uint32_t layer) const {
  ArrayEntry entry{
      .name = fmt::format("hidden-{}", layer + 1),
      .rows = graph_.vertex_count(),
      .dim = static_cast<std::uint64_t>(model_.layer(layer).raw_out()),
      .dtype = DataType::kFloat32,
      .layout = ArrayLayout::kChunk,
      // Written once and read often. kNonzero drops the zeros of rectified floats and is as fast as
      // copying; other codecs cost more time than the reads that they save.
      .codec = {.kind = model_.layer(layer).makes_zeros() ? CodecKind::kNonzero : CodecKind::kRaw,
                .level = 0},
      .chunk_rows = 0,
      .array_id = std::uint64_t{layer} + 1,
      .attributes = {}};
  entry.chunk_rows = IntermediateChunkRows(entry, options_.chunk_rows);
  return entry;
}

PassDrawOptions LayerSizes::Draw(std::uint32_t layer) const {
  // Fanouts are listed from the seeds outwards, as for samplers; the layer that is computed first
  // is the outermost hop.
  const std::size_t hop = layers() - 1 - layer;
  PassDrawOptions draw{.fanout = options_.fanouts.empty() ? kAllNeighbors : options_.fanouts[hop],
                       .no_edges = model_.shape().spec.no_edges,
                       .seed = options_.seed,
                       .layer = layer,
                       .threads = options_.threads,
                       .neighbors = options_.neighbors};
  SetPassDraw(options_.sampling, hop, draw);
  return draw;
}

std::uint64_t LayerSizes::Edges(std::uint32_t layer) const {
  return MostEdgesOf(Draw(layer), graph_);
}

/// Returns the bytes of state that a target keeps from window to window of its block.
std::uint64_t LayerSizes::StateBytes(std::uint32_t layer) const {
  return static_cast<std::uint64_t>(model_.layer(layer).state_columns()) * sizeof(float);
}

/// Returns the bytes of a prepared row; 0 if the layer does not prepare rows.
std::uint64_t LayerSizes::PreparedBytes(std::uint32_t layer) const {
  const Layer& computed = model_.layer(layer);
  if (!computed.prepares()) return 0;
  return static_cast<std::uint64_t>(computed.prepared_columns()) * sizeof(float);
}

std::uint64_t LayerSizes::StageRows(const ArrayEntry& source, std::uint32_t layer) const {
  const std::uint64_t row_bytes = std::max(source.dim * sizeof(float), PreparedBytes(layer));
  return std::max<std::uint64_t>(options_.memory.stage_bytes / row_bytes, 1);
}

OwnWindows LayerSizes::Own(std::uint32_t layer) const {
  const Layer& computed = model_.layer(layer);
  return {.before = computed.pieces().attends(), .after = computed.finish_reads_own()};
}

ChunkReaderOptions LayerSizes::Reader(const ArrayEntry& source) const {
  return {.policy = options_.tuning.cache,
          .cached_first = options_.tuning.cached_first,
          .cache_bytes = options_.memory.cache_bytes,
          .threads = kReadersOfThread * options_.threads,
          .direct = options_.direct,
          .ahead = ChunkReader::AheadFor(source, options_.threads, options_.memory.ahead_bytes)};
}

std::uint64_t LayerSizes::BytesOfEdge() const {
  return kBytesOfListedEdge + (options_.sampling.edge_weights ? kBytesOfEdgeWeight : 0);
}

std::uint64_t LayerSizes::BlockRows(std::uint32_t layer) const {
  if (options_.tuning.block_rows != 0) return options_.tuning.block_rows;
  const std::uint64_t vertices = std::max<std::uint64_t>(graph_.vertex_count(), 1);
  const std::uint64_t each =
      StateBytes(layer) +
      kPlannedBlocks * (kBytesOfListedTarget +
                        static_cast<std::uint64_t>(
                            kBlockEdgeRatio * static_cast<double>(Edges(layer)) /
                            static_cast<double>(vertices) * static_cast<double>(BytesOfEdge())));
  return std::clamp(options_.memory.block_bytes / each, kTileRows, RoundUpToTiles(vertices));
}

std::uint64_t LayerSizes::BlockEdges(std::uint32_t layer) const {
  const double share = static_cast<double>(BlockRows(layer)) /
                       static_cast<double>(std::max<std::uint64_t>(graph_.vertex_count(), 1));
  const double limit = kBlockEdgeRatio * share * static_cast<double>(Edges(layer));
  return std::max(kSampledEdges, static_cast<std::uint64_t>(limit));
}

std::uint64_t LayerSizes::WorkingBytes(const ArrayEntry& features) const {
  const std::uint64_t vertices = graph_.vertex_count();
  std::uint64_t widest = 0;
  ArrayEntry source = features;
  for (std::uint32_t layer = 0; layer < layers(); ++layer) {
    const ArrayEntry output = Written(layer);
    const std::uint64_t row_bytes = source.dim * sizeof(float);
    // Blocks have about the same size.
    const std::uint64_t most = BlockRows(layer);
    const std::uint64_t blocks = (vertices + most - 1) / std::max<std::uint64_t>(most, 1);
    const std::uint64_t targets = RoundUpToTiles(vertices / std::max<std::uint64_t>(blocks, 1) + 1);
    // High-degree vertices may be adjacent: in PDS order they are.
    const std::uint64_t edges = std::min(BlockEdges(layer), Edges(layer));
    const std::uint64_t lists = edges * BytesOfEdge() +
                                std::min(edges + targets, vertices) * kBytesOfListedRow +
                                targets * kBytesOfListedTarget;
    const std::uint64_t stage_rows = std::min(StageRows(source, layer), vertices);
    const std::uint64_t bytes =
        stage_rows * (BlockStager::kStages * row_bytes + PreparedBytes(layer)) +
        ChunkReader::WorkingBytes(source, Reader(source)) + targets * StateBytes(layer) +
        kPlannedBlocks * lists + vertices * kBytesOfVertex +
        (options_.sampling.weighted_degrees ? vertices * sizeof(float) : 0) +
        2 * RowOrder::Bytes(vertices) + LayerOutput::Bytes(output, options_.memory.writers);
    widest = std::max(widest, bytes);
    source = output;
  }
  return widest;
}

std::uint64_t LayerSizes::CacheableBytes(const ArrayEntry& features) const {
  std::uint64_t most = features.chunk_count() * ChunkReader::DecodedBytes(features);
  for (std::uint32_t layer = 0; layer + 1 < layers(); ++layer) {
    const ArrayEntry hidden = Written(layer);
    most = std::max(most, hidden.chunk_count() * ChunkReader::DecodedBytes(hidden));
  }
  return most;
}

Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
                                   const LayerwiseOptions& options) {
  const std::uint32_t layers = model.layers();
  if (!options.fanouts.empty() && options.fanouts.size() != layers) {
    return Fail(Status::InvalidArgument(
        fmt::format("{} fanouts for a model of {} layers", options.fanouts.size(), layers)));
  }
  ArrayEntry entry = options.output;
  entry.rows = graph.vertex_count();
  entry.dim =
      static_cast<std::uint64_t>(options.scores ? model.shape().classes : model.embedding_width());
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

}  // namespace internal
}  // namespace rhizome
