#include "gnn/link_train/link_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "gnn/link_train/pair_scores.h"
#include "index/base/counter_random.h"
#include "index/links/link_file.h"
#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxCandidates = 512;  // of a vertex type
constexpr std::uint32_t kCandidateStream = 104;

/// Reads the edges of a file. Errors: as LinkFiles::Open.
Result<std::vector<VertexPair>> ReadLinks(const GraphSnapshot& graph, const Path& path) {
  const LinkFiles files(graph, {});
  RHIZOME_ASSIGN_OR_RETURN(const PairSource source, files.Open(path.string()));
  std::vector<VertexPair> edges;
  std::vector<VertexPair> block(4096);
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(block));
    edges.insert(edges.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(count));
    if (count < block.size()) return edges;
  }
}

/// Draws a fixed sample of the vertices of each type that an end of the validation edges has.
Status DrawCandidates(std::uint64_t seed, LinkJob& job) {
  std::set<TypeId> types;
  for (const VertexPair& edge : job.valid) {
    for (const VertexId end : {edge.src, edge.dst}) {
      RHIZOME_ASSIGN_OR_RETURN(const TypeId type, job.graph->TypeOf(end));
      types.insert(type);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(NegativeVertices vertices, NegativeVertices::Of(job.graph));
  for (const TypeId type : types) {
    std::vector<VertexId> drawn;
    CounterRandom random({.seed = seed, .stream = kCandidateStream, .subgraph = type});
    RHIZOME_RETURN_IF_ERROR(vertices.Draw({.source = NegativeSource::kUniform}, 0, type,
                                          kMaxCandidates, random, drawn));
    std::sort(drawn.begin(), drawn.end());
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    job.candidates.push_back({.type = type, .vertices = std::move(drawn)});
  }
  return Status::Ok();
}

Status ReadValid(const TrainOptions& options, LinkJob& job) {
  if (options.link.valid.empty()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(job.valid, ReadLinks(*job.graph, options.link.valid));
  if (job.valid.empty())
    return Status::InvalidArgument(
        fmt::format("`valid`: {} has no edges", options.link.valid.string()));
  std::vector<VertexId> numbers;
  for (const VertexPair& edge : job.valid)
    numbers.insert(numbers.end(), {edge.src, edge.dst, VertexId{edge.type}});
  job.valid_hash = ToHex(Xxh3(std::as_bytes(std::span(numbers))));
  return DrawCandidates(options.learning.seed, job);
}

Status CheckPairDecoder(const LinkTrainOptions& link) {
  if (link.n3 == 0) return Status::Ok();
  return Status::InvalidArgument(
      "`n3` penalises the rows of an edge and its relation, but decoder mlp has no relations; omit "
      "it");
}

}  // namespace

Result<std::unique_ptr<LinkJob>> OpenLinkJob(const TrainOptions& options,
                                             std::shared_ptr<const GraphSnapshot> graph) {
  const LinkTrainOptions& link = options.link;
  auto job = std::make_unique<LinkJob>();
  job->graph = std::move(graph);
  const bool one_type = job->graph->edge_types().size() <= 1;
  RHIZOME_ASSIGN_OR_RETURN(job->decoding,
                           MakeLinkDecoding(link, one_type ? "dot" : "distmult", *job->graph));
  if (!job->shared()) RHIZOME_RETURN_IF_ERROR(CheckPairDecoder(link));
  job->dim = static_cast<std::int64_t>(link.dim);
  job->leave_out = !link.keep_seed_edges;
  RHIZOME_ASSIGN_OR_RETURN(static_cast<TrainingBatches&>(*job),
                           OpenTrainingBatches(options, job->decoding, job->graph));
  RHIZOME_RETURN_IF_ERROR(ReadValid(options, *job));
  return job;
}

std::uint64_t MaxSeeds(const LinkJob& job) {
  std::uint64_t valid = 2 * job.batching.batch_size;
  for (const ValidCandidates& of_type : job.candidates) valid += of_type.vertices.size();
  return std::max(job.batches->max_rows(), job.valid.empty() ? 1 : valid);
}

TypeId TypeOfSeed(const Minibatch& minibatch, std::size_t local) {
  return minibatch.vertex_types.empty() ? TypeId{0} : minibatch.vertex_types[local];
}

std::map<std::string, torch::Tensor> FirstDecoderWeights(const LinkJob& job, std::uint64_t seed) {
  if (!job.shared()) return FirstPairWeights(job.dim, seed);
  const std::size_t width = job.decoding.step.relation_width;
  if (width == 0) return {};
  const std::size_t rows = job.decoding.relation_rows();
  torch::Tensor relations =
      torch::empty({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(width)});
  for (std::size_t r = 0; r < rows; ++r)
    SetFirstRelationRow(job.decoding, seed, r, {relations.data_ptr<float>() + r * width, width});
  return {{"relations", relations}};
}

std::string DescribeLinkJob(const LinkJob& job, const LinkTrainOptions& options) {
  return nlohmann::json{{"decoder", job.decoding.kind->name},
                        {"dim", options.dim},
                        {"reciprocal", options.reciprocal},
                        {"loss", static_cast<int>(options.loss)},
                        {"margin", options.margin},
                        {"n3", options.n3},
                        {"negatives", job.batching.negatives},
                        {"negative_sources", options.negative_sources},
                        {"keep_seed_edges", options.keep_seed_edges},
                        {"valid", job.valid_hash}}
      .dump();
}

}  // namespace internal
}  // namespace rhizome
