#include "gnn/tables/link_decoding.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "gnn/links/decoder_registry.h"
#include "index/base/counter_random.h"

namespace rhizome {
inline namespace internal {
namespace {

// Streams of random numbers; LinkBatches uses others.
constexpr std::uint32_t kRowStream = 101;
constexpr std::uint32_t kRelationStream = 102;

/// Fills a row with uniform numbers in (-limit, limit).
void FillUniform(const RandomKey& key, float limit, std::span<float> row) {
  CounterRandom random(key);
  for (float& x : row) x = static_cast<float>(2 * random.Unit() - 1) * limit;
}

/// Half the width of the range of first numbers. For distances as in TransE's paper (Bordes et
/// al., NeurIPS 2013, algorithm 1); products have a standard deviation of .1.
float Limit(const QueryDecoder& decoder) {
  const bool product = decoder.combination() == Combination::kDot;
  return product ? 0.1F * std::numbers::sqrt3_v<float>
                 : 6 / std::sqrt(static_cast<float>(decoder.dim()));
}

/// Returns the vertex types of the ends of edges, by the ends that the graph knows for its edge
/// types; all types if it does not know them.
std::vector<bool> TypesOfEnds(const GraphSnapshot& graph) {
  const std::size_t types = std::max<std::size_t>(graph.vertex_types().size(), 1);
  std::vector<bool> ends(types, false);
  const std::vector<EdgeEnds> known = graph.edge_ends();
  for (const EdgeEnds& of_edge : known) {
    for (const TypeId end : {of_edge.source, of_edge.destination}) {
      if (end >= types) return std::vector<bool>(types, true);
      ends[end] = true;
    }
  }
  return known.empty() ? std::vector<bool>(types, true) : ends;
}

/// Refuses negatives of a type with one vertex, and warns of types with fewer vertices than a batch
/// has negatives.
Status CheckNegativeTypes(const LinkTrainOptions& link, const GraphSnapshot& graph,
                          TrainingBatches& opened) {
  const std::vector<bool> ends = TypesOfEnds(graph);
  const std::vector<std::string> names = graph.vertex_types();
  for (TypeId type = 0; type < ends.size(); ++type) {
    const std::uint64_t vertices = opened.batches->vertices_of(type);
    if (!ends[type] || vertices == 0) continue;
    if (vertices == 1)
      return Status::InvalidArgument(fmt::format(
          "`negatives`: {} has one vertex, so that no other vertex can replace it as an end of an "
          "edge; leave edges with this end out of the store",
          type < names.size() ? fmt::format("the type '{}'", names[type]) : "the graph"));
    if (opened.batching.per_edge || opened.batching.negatives < vertices || link.filter_negatives)
      continue;
    opened.warnings.push_back(fmt::format(
        "`negatives={}` are no fewer than the {} vertices{}: a batch draws most of them, and "
        "true ends among them; `filter_negatives` masks true ends, or give fewer",
        opened.batching.negatives, vertices,
        type < names.size() ? fmt::format(" of the type '{}'", names[type]) : ""));
  }
  return Status::Ok();
}

/// Returns the names of the relations, one for each row.
std::vector<std::string> RelationNames(const GraphSnapshot& graph) {
  std::vector<std::string> names = graph.edge_types();
  if (names.empty()) names.emplace_back("edge");
  return names;
}

}  // namespace

Result<LinkDecoding> MakeLinkDecoding(const LinkTrainOptions& options, const std::string& usual,
                                      const GraphSnapshot& graph) {
  LinkDecoding decoding;
  RHIZOME_ASSIGN_OR_RETURN(decoding.kind,
                           FindDecoderKind(options.decoder.empty() ? usual : options.decoder));
  const DecoderKind& kind = *decoding.kind;
  if (kind.complex_rows && options.dim % 2 != 0)
    return Fail(Status::InvalidArgument(
        fmt::format("`dim` is {}, but rows of decoder {} are complex numbers: give an even number",
                    options.dim, kind.name)));
  decoding.relation_names = RelationNames(graph);
  decoding.step = {.loss = options.loss,
                   .margin = static_cast<float>(options.margin),
                   .n3 = static_cast<float>(options.n3),
                   .reciprocal = options.reciprocal,
                   .complex_rows = kind.complex_rows,
                   .relations = decoding.relation_names.size(),
                   .relation_width = 0,
                   .relation_stride = 0};
  if (kind.relation_width != nullptr) {
    decoding.step.relation_width = kind.relation_width(options.dim);
    decoding.step.relation_stride = decoding.step.relation_width;
  } else if (options.reciprocal) {
    return Fail(Status::InvalidArgument(
        fmt::format("`reciprocal` is for decoders with relations; {} has none", kind.name)));
  }
  // Decoders with weights of their own cannot be made without a file.
  auto made = kind.make({.dim = options.dim, .file = TensorFile()});
  if (made) decoding.made = *std::move(made);
  decoding.decoder = dynamic_cast<const QueryDecoder*>(decoding.made.get());
  return decoding;
}

Result<TrainingBatches> OpenTrainingBatches(const TrainOptions& options,
                                            const LinkDecoding& decoding,
                                            std::shared_ptr<const GraphSnapshot> graph) {
  constexpr std::uint64_t kUsualNegatives = 512;
  const bool per_edge = decoding.decoder == nullptr;
  const std::uint64_t usual = per_edge ? 1 : kUsualNegatives;
  TrainingBatches opened;
  LinkBatchOptions& batching = opened.batching;
  batching.batch_size = options.minibatch()->batch_size;
  batching.seed = options.learning.seed;
  batching.per_edge = per_edge;
  batching.negatives = options.link.negatives > 0 ? options.link.negatives : usual;
  auto mixture = ParseNegativeMixture(options.link.negative_sources);
  if (!mixture) return Fail(mixture.error().WithContext("`negative_sources`"));
  batching.mixture = *std::move(mixture);
  const std::shared_ptr<const GraphSnapshot> fixed = graph;
  RHIZOME_ASSIGN_OR_RETURN(opened.batches, LinkBatches::Of(std::move(graph), batching));
  if (opened.batches->batches() == 0)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has no edges to train on", options.store.string())));
  RHIZOME_RETURN_IF_ERROR(CheckNegativeTypes(options.link, *fixed, opened));
  return opened;
}

std::map<std::string, std::string> DecoderMetadata(const LinkDecoding& decoding) {
  std::map<std::string, std::string> metadata = {{"decoder", decoding.kind->name}};
  if (decoding.step.relation_width == 0) return metadata;
  metadata["relation_names"] = nlohmann::json(decoding.relation_names).dump();
  metadata["reciprocal"] = decoding.step.reciprocal ? "true" : "false";
  return metadata;
}

void SetFirstVertexRow(const LinkDecoding& decoding, std::uint64_t seed, std::uint64_t vertex,
                       std::span<float> row) {
  FillUniform({.seed = seed, .vertex = vertex, .stream = kRowStream}, Limit(*decoding.decoder),
              row);
}

void SetFirstRelationRow(const LinkDecoding& decoding, std::uint64_t seed, std::uint64_t relation,
                         std::span<float> row) {
  // Rows that are narrower than a vertex's row are angles.
  const float limit =
      row.size() < decoding.decoder->dim() ? std::numbers::pi_v<float> : Limit(*decoding.decoder);
  FillUniform({.seed = seed, .vertex = relation, .stream = kRelationStream}, limit, row);
}

}  // namespace internal
}  // namespace rhizome
