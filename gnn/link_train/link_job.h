#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gnn/ops/torch.h"
#include "gnn/tables/link_decoding.h"
#include "gnn/tables/negative_filter.h"
#include "gnn/tables/valid_links.h"
#include "rhizome/graph.h"
#include "rhizome/loader.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The part of a training of an encoder on links that does not depend on its weights. One thread
/// at a time uses the batches.
struct LinkJob : TrainingBatches {
  std::shared_ptr<const GraphSnapshot> graph;
  LinkDecoding decoding;

  ValidLinks valid;
  std::optional<NegativeFilter> filter;  ///< only with LinkTrainOptions::filter_negatives

  std::int64_t dim = 0;   ///< columns of the encoder's rows
  bool leave_out = true;  ///< the edges of a minibatch are not used for message passing
  bool shared() const { return decoding.decoder != nullptr; }  ///< negatives share a query
};

/// Opens what link training needs of a graph. Errors: kInvalidArgument, naming a field; errors of
/// reading the file of validation edges; errors of LinkBatches::Of.
Result<std::unique_ptr<LinkJob>> OpenLinkJob(const TrainOptions& options,
                                             std::shared_ptr<const GraphSnapshot> graph);

/// Returns an upper bound on the seeds of a minibatch.
std::uint64_t MaxSeeds(const LinkJob& job);

/// Returns the vertex type of a seed.
TypeId TypeOfSeed(const Minibatch& minibatch, std::size_t local);

/// Returns the first weights of the decoder, by their names in its file.
std::map<std::string, torch::Tensor> FirstDecoderWeights(const LinkJob& job, std::uint64_t seed);

/// Describes everything that the objective depends on, besides the store's state.
std::string DescribeLinkJob(const LinkJob& job, const LinkTrainOptions& options);

}  // namespace internal
}  // namespace rhizome
