#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/job/safetensors.h"
#include "cache/tables/link_batches.h"
#include "cache/tables/row_optimizer.h"
#include "gnn/tables/link_decoding.h"
#include "gnn/tables/negative_filter.h"
#include "gnn/tables/valid_links.h"
#include "rhizome/graph.h"
#include "rhizome/store.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Open resources of a training of a table.
struct TableJob : LinkDecoding, TrainingBatches {
  std::unique_ptr<Store> store;
  std::shared_ptr<const GraphSnapshot> graph;
  RowOptimizerOptions optimizer;
  ValidLinks valid;
  std::optional<NegativeFilter> filter;  ///< only with LinkTrainOptions::filter_negatives
  std::string description;               ///< of everything that the rows depend on

  std::size_t dim() const { return decoder->dim(); }
};

/// Checks the options, and opens the store, its graph, the batches and the decoder. Errors:
/// kInvalidArgument, an option is out of range or is not for tables, or there are no edges; errors
/// of opening the store.
Result<TableJob> OpenTableJob(const TrainOptions& options);

/// Returns the first rows of the relations, with the states of their optimiser:
/// [relation_rows, step.relation_stride].
std::vector<float> FirstRelations(const TableJob& job, std::uint64_t seed);

/// Returns the decoder as a file. `relations` as FirstRelations.
TensorFile DecoderFile(const TableJob& job, std::span<const float> relations);

}  // namespace internal
}  // namespace rhizome
