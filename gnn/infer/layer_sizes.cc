#include "gnn/infer/layer_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cache/blocks/block_stager.h"
#include "cache/blocks/layer_output.h"
#include "cache/blocks/row_order.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/feed/row_degrees.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/models/related_rows.h"
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
constexpr std::uint64_t kBytesOfRelation = 2;  // of an edge
constexpr std::uint64_t kBytesOfListedGroup = 10;
constexpr std::uint64_t kPlannedBlocks = BlockStager::kBlocks;

/// Bytes per vertex: its degree, and its share of the table that ranks the rows which a block
/// reads.
constexpr std::uint64_t kBytesOfVertex = 5;

/// Max ratio of a block's edges to the average for the same number of vertices.
constexpr double kBlockEdgeRatio = 1.5;

/// Ratio of RowRatio.
constexpr double kBlockRowRatio = 2;

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
  return Hidden(layer + 1, model_.layer(layer).raw_out(), model_.layer(layer).makes_zeros());
}

ArrayEntry LayerSizes::FirstRows() const {
  return Hidden(0, model_.inputs()->width(), model_.inputs()->makes_zeros());
}

/// Returns the entry of array `number` between layers; the first layer reads array 0.
ArrayEntry LayerSizes::Hidden(std::uint32_t number, std::int64_t columns, bool has_zeros) const {
  ArrayEntry entry{
      .name = fmt::format("hidden-{}", number),
      .rows = graph_.vertex_count(),
      .dim = static_cast<std::uint64_t>(columns),
      .dtype = DataType::kFloat32,
      .layout = ArrayLayout::kChunk,
      // Written once and read often. kNonzero drops the zeros of rectified floats and is as fast as
      // copying; other codecs cost more time than the reads that they save.
      .codec = {.kind = has_zeros ? CodecKind::kNonzero : CodecKind::kRaw, .level = 0},
      .chunk_rows = 0,
      .array_id = number == 0 ? std::uint64_t{layers()} + 1 : std::uint64_t{number},
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
  if (model_.typed()) {
    draw.relations = static_cast<std::uint32_t>(model_.shape().relation_count());
    draw.relation_of = model_.relations();
  }
  return draw;
}

std::uint64_t LayerSizes::Edges(std::uint32_t layer) const {
  return MostEdgesOf(Draw(layer), graph_);
}

/// Returns the bytes of state that a target, or a group, keeps from window to window of its block.
std::uint64_t LayerSizes::StateBytes(std::uint32_t layer) const {
  return static_cast<std::uint64_t>(model_.layer(layer).state_columns()) * sizeof(float);
}

double LayerSizes::MeanEdges(std::uint32_t layer) const {
  return static_cast<double>(Edges(layer)) /
         static_cast<double>(std::max<std::uint64_t>(graph_.vertex_count(), 1));
}

/// Returns the max number of groups of a target for which state is kept.
std::uint64_t LayerSizes::GroupsOfTarget(std::uint32_t layer) const {
  if (model_.layer(layer).pieces().relates) return 1;
  return static_cast<std::uint64_t>(model_.shape().relation_count());
}

/// Returns the mean number of groups of a target, or an upper bound.
double LayerSizes::MeanGroups(std::uint32_t layer) const {
  const double vertices = static_cast<double>(std::max<std::uint64_t>(graph_.vertex_count(), 1));
  const double most = options_.groups > 0 ? static_cast<double>(options_.groups) / vertices
                                          : static_cast<double>(GroupsOfTarget(layer));
  return std::min(MeanEdges(layer), most);
}

/// Returns the max rows of a block over the rows whose groups fill it on average. With several
/// groups for a target, a block of rows with few groups then has about as many groups as others.
double LayerSizes::RowRatio(std::uint32_t layer) const {
  return GroupsOfTarget(layer) > 1 ? kBlockRowRatio : 1;
}

/// Returns the bytes of a group in a block: its state, and its lists in two blocks.
std::uint64_t LayerSizes::GroupBytes(std::uint32_t layer) const {
  return StateBytes(layer) + kPlannedBlocks * kBytesOfListedGroup;
}

std::uint64_t LayerSizes::BlockGroups(std::uint32_t layer) const {
  if (!model_.typed()) return ~std::uint64_t{0};
  const std::uint64_t rows = BlockRows(layer);
  if (options_.tuning.block_rows != 0) return rows * GroupsOfTarget(layer);
  const double groups = static_cast<double>(rows) * MeanGroups(layer) / RowRatio(layer);
  return std::max(static_cast<std::uint64_t>(groups), GroupsOfTarget(layer));
}

/// Returns the bytes of the rows of groups in the tiles that threads compute: reduced rows, and
/// the messages that are computed from them.
std::uint64_t LayerSizes::GroupTileBytes(std::uint32_t layer) const {
  if (!model_.typed() || model_.layer(layer).pieces().relates) return 0;
  const double groups = std::clamp(kBlockEdgeRatio * MeanEdges(layer), 1.0,
                                   static_cast<double>(model_.shape().relation_count()));
  const auto width = static_cast<std::uint64_t>(model_.layer(layer).pieces().width);
  return options_.threads * kTileRows * static_cast<std::uint64_t>(std::ceil(groups)) * 2 * width *
         sizeof(float);
}

/// Returns the bytes of a prepared row; 0 if the layer does not prepare rows.
std::uint64_t LayerSizes::PreparedBytes(std::uint32_t layer) const {
  const Layer& computed = model_.layer(layer);
  if (!computed.prepares()) return 0;
  return static_cast<std::uint64_t>(computed.prepared_columns()) * sizeof(float);
}

std::uint64_t LayerSizes::StageRows(const ArrayEntry& source, std::uint32_t layer) const {
  const std::uint64_t row_bytes = std::max(source.dim * sizeof(float), PreparedBytes(layer));
  const std::uint64_t rows = std::max<std::uint64_t>(options_.memory.stage_bytes / row_bytes, 1);
  if (!model_.layer(layer).pieces().relates) return rows;
  const auto relations = static_cast<std::uint64_t>(model_.shape().relation_count());
  return std::min(rows, RelatedRows::kMaxPairs / relations);
}

/// Returns the bytes of the rows that are multiplied by matrices of relations, for a block with
/// `edges` edges.
std::uint64_t LayerSizes::RelatedBytes(std::uint32_t layer, std::uint64_t stage_rows,
                                       std::uint64_t edges) const {
  if (!model_.layer(layer).pieces().relates) return 0;
  return RelatedRows::Bytes(model_.layer(layer), stage_rows,
                            static_cast<std::uint64_t>(model_.shape().relation_count()), edges);
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

ChunkReaderOptions LayerSizes::InputReader(const ArrayEntry& source, std::size_t arrays) const {
  return {.threads = options_.threads,
          .direct = options_.direct,
          .ahead = ChunkReader::AheadFor(source, options_.threads,
                                         options_.memory.ahead_bytes / arrays)};
}

std::uint64_t LayerSizes::InputBytes() const {
  if (model_.inputs() == nullptr) return 0;
  const std::vector<ArrayEntry> arrays =
      EntriesOf(graph_.store(), options_.features, options_.inputs);
  std::uint64_t bytes = LayerOutput::Bytes(FirstRows(), options_.memory.writers);
  std::uint64_t widest = 1;
  for (const ArrayEntry& array : arrays) {
    bytes += ChunkReader::WorkingBytes(array, InputReader(array, arrays.size()));
    widest = std::max(widest, array.dim);
  }
  // Rows of features by type, in vectors that grow; and their numbers.
  return bytes + 2 * kInputRows * (widest + 2) * sizeof(float) +
         FirstRows().chunk_rows * sizeof(std::uint64_t);
}

std::uint64_t LayerSizes::BytesOfEdge() const {
  return kBytesOfListedEdge + (options_.sampling.edge_weights ? kBytesOfEdgeWeight : 0) +
         (model_.typed() ? kBytesOfRelation : 0);
}

/// Returns the bytes of the lists of a target in two blocks, without its groups.
std::uint64_t LayerSizes::ListBytes(std::uint32_t layer) const {
  return kPlannedBlocks *
         (kBytesOfListedTarget + static_cast<std::uint64_t>(kBlockEdgeRatio * MeanEdges(layer) *
                                                            static_cast<double>(BytesOfEdge())));
}

std::uint64_t LayerSizes::BlockRows(std::uint32_t layer) const {
  if (options_.tuning.block_rows != 0) return options_.tuning.block_rows;
  std::uint64_t each = ListBytes(layer);
  if (model_.typed()) {
    each += static_cast<std::uint64_t>(MeanGroups(layer) / RowRatio(layer) *
                                       static_cast<double>(GroupBytes(layer)));
  } else {
    each += StateBytes(layer);
  }
  const std::uint64_t vertices = std::max<std::uint64_t>(graph_.vertex_count(), 1);
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
  std::uint64_t widest = InputBytes();
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
    std::uint64_t state = targets * StateBytes(layer);
    if (model_.typed()) {
      const auto groups =
          static_cast<std::uint64_t>(MeanGroups(layer) * static_cast<double>(vertices));
      state = std::min(BlockGroups(layer), groups + targets) * GroupBytes(layer);
    }
    const std::uint64_t stage_rows = std::min(StageRows(source, layer), vertices);
    const std::uint64_t bytes =
        stage_rows * (BlockStager::kStages * row_bytes + PreparedBytes(layer)) +
        ChunkReader::WorkingBytes(source, Reader(source)) + state + kPlannedBlocks * lists +
        vertices * kBytesOfVertex + GroupTileBytes(layer) + RelatedBytes(layer, stage_rows, edges) +
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

Result<std::uint64_t> MostGroups(const GraphSnapshot& graph, const Model& model,
                                 Direction direction) {
  if (!model.typed() || model.shape().spec.no_edges) return std::uint64_t{0};
  const auto most = static_cast<std::uint32_t>(model.shape().relation_count());
  return SumOfDegrees(graph, direction, model.layer(0).pieces().relates ? 1 : most);
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
