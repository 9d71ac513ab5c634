#include "gnn/link_train/link_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gnn/link_train/pair_scores.h"

namespace rhizome {
inline namespace internal {
namespace {

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
  RHIZOME_ASSIGN_OR_RETURN(job->valid, ReadValidLinks(options, job->graph));
  if (link.filter_negatives) {
    RHIZOME_ASSIGN_OR_RETURN(NegativeFilter filter,
                             NegativeFilter::Of(job->graph, job->valid.edges));
    job->filter.emplace(std::move(filter));
  }
  return job;
}

std::uint64_t MaxSeeds(const LinkJob& job) {
  std::uint64_t valid = 2 * job.batching.batch_size;
  for (const ValidCandidates& of_type : job.valid.candidates) valid += of_type.vertices.size();
  return std::max(job.batches->max_rows(), job.valid.edges.empty() ? 1 : valid);
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
                        {"filter_negatives", options.filter_negatives},
                        {"keep_seed_edges", options.keep_seed_edges},
                        {"valid", job.valid.hash}}
      .dump();
}

}  // namespace internal
}  // namespace rhizome
