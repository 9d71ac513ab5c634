#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/tables/link_batches.h"
#include "gnn/links/decoder.h"
#include "gnn/tables/link_step.h"
#include "rhizome/graph.h"
#include "rhizome/link_training.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The decoder of a training on links.
struct LinkDecoding {
  const DecoderKind* kind = nullptr;
  std::unique_ptr<PairDecoder> made;      ///< null for a decoder with weights of its own (mlp)
  const QueryDecoder* decoder = nullptr;  ///< `made`
  LinkStep::Options step;                 ///< relation_stride is relation_width
  std::vector<std::string> relation_names;

  std::size_t relation_rows() const { return step.relations * (step.reciprocal ? 2 : 1); }
};

/// Chooses the decoder by `options`; `usual`: the name if they name none. Errors: kInvalidArgument,
/// an unknown decoder, or options that do not fit it, naming the field.
Result<LinkDecoding> MakeLinkDecoding(const LinkTrainOptions& options, const std::string& usual,
                                      const GraphSnapshot& graph);

/// The batches of a training on links.
struct TrainingBatches {
  LinkBatchOptions batching;
  std::unique_ptr<LinkBatches> batches;
  std::vector<std::string> warnings;  ///< of options that are probably wrong
};

/// Opens the batches of a graph, with negatives for the decoder: 512 for each batch and side by
/// default, which a query shares, or 1 for each edge. Errors: kInvalidArgument, naming a field, or
/// the graph has no edges; errors of LinkBatches::Of.
Result<TrainingBatches> OpenTrainingBatches(const TrainOptions& options,
                                            const LinkDecoding& decoding,
                                            std::shared_ptr<const GraphSnapshot> graph);

/// Returns the metadata of the decoder's file (docs/LINKS.md, "Decoders").
std::map<std::string, std::string> DecoderMetadata(const LinkDecoding& decoding);

/// Sets the first values of a vertex's row, and of the row of a relation. They depend only on the
/// seed and the number of the vertex or relation.
void SetFirstVertexRow(const LinkDecoding& decoding, std::uint64_t seed, std::uint64_t vertex,
                       std::span<float> row);
void SetFirstRelationRow(const LinkDecoding& decoding, std::uint64_t seed, std::uint64_t relation,
                         std::span<float> row);

}  // namespace internal
}  // namespace rhizome
