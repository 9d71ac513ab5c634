#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

// Measurements of models and their kernels. This header does not require libtorch; its
// implementation does.

namespace rhizome {

struct AggregateBenchOptions {
  std::vector<std::uint32_t> widths = {32, 64, 128, 256, 512};
  std::vector<std::string> dtypes = {"float32", "float16"};  ///< also bfloat16

  /// Sizes of the table of rows: one that is only in memory, and one that fits into a cache.
  std::vector<std::uint64_t> table_bytes = {std::uint64_t{256} << 20, std::uint64_t{4} << 20};
  std::uint32_t degree = 10;  ///< neighbours per target
  std::uint32_t rounds = 5;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
};

/// Result of one operation on one table. Bytes include the rows read, the indices, and the results
/// written, each counted once. Rates are medians over the rounds. A ratio is the median of the
/// ratios by round, in which all contestants alternate; above 1: Rhizome is faster.
struct AggregateFigure {
  std::string op;  ///< "sum", "mean", "weighted", "max", "sum gradient"
  std::string dtype;
  std::uint32_t width = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t edges = 0;
  double gb_per_second = 0;
  double sequential_gb_per_second = 0;  ///< the table read sequentially
  double random_gb_per_second = 0;      ///< the same rows read in the same order, without summing
  double share_of_sequential = 0;
  double share_of_random = 0;

  /// Relative to libtorch's index_add (for sums) or scatter_reduce (for maxima), including the
  /// index_select that both require, and to its product with a sparse matrix (CSR). 0: libtorch has
  /// no such operation.
  double ratio_to_scatter = 0;
  double ratio_to_sparse = 0;

  /// The same ratios of processor time, which are meaningful on a busy machine, too.
  double cpu_ratio_to_scatter = 0;
  double cpu_ratio_to_sparse = 0;
};

/// Result of a pass of attention of 4 heads of 64 columns, float32, compared with a sum of the same
/// rows with one weight per edge. Both alternate. Each row is in four lists, as in the first layer
/// of a minibatch. The backward pass computes the gradients of rows, scores and vectors.
struct AttentionFigure {
  std::string op;  ///< "gat forward", "gat backward", "gatv2 forward", "gatv2 backward"
  std::uint32_t heads = 0;
  std::uint32_t width = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t edges = 0;
  double nanoseconds_per_edge = 0;
  double ratio_to_weighted_sum = 0;  ///< ratio of times
  double cpu_ratio_to_weighted_sum = 0;
};

/// Result of multiplying random rows of a table, float32, by weights, or of computing the gradient
/// of those weights, compared with libtorch, which copies the rows first (index_select, then mm).
struct ProjectionFigure {
  std::string op;  ///< "product", "product gradient"
  std::uint32_t width = 0;
  std::uint32_t outputs = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t rows = 0;
  double nanoseconds_per_row = 0;
  double ratio_to_libtorch = 0;  ///< above 1: Rhizome is faster
  double cpu_ratio_to_libtorch = 0;
};

struct AggregateBenchReport {
  std::string simd;  ///< SIMD variant of the kernels
  std::vector<AggregateFigure> figures;
};

/// Measures the aggregation kernels, compared with memory bandwidth and with libtorch. Errors:
/// kInvalidArgument, an unknown dtype or an empty list; kOutOfMemory; kInterrupted.
Result<AggregateBenchReport> MeasureAggregation(const AggregateBenchOptions& options,
                                                const JobControl& control);

/// Measures the attention kernels on tables of the same sizes; ignores the dtypes and widths of the
/// options. Errors: kOutOfMemory; kInterrupted.
Result<std::vector<AttentionFigure>> MeasureAttention(const AggregateBenchOptions& options,
                                                      const JobControl& control);

/// Measures the products of layers that multiply rows before aggregating them, for the widths of
/// the options and a few numbers of outputs. Errors: kOutOfMemory; kInterrupted.
Result<std::vector<ProjectionFigure>> MeasureProjection(const AggregateBenchOptions& options,
                                                        const JobControl& control);

struct StepBenchOptions {
  std::vector<std::vector<VertexId>> seeds;  ///< distinct seeds, by minibatch
  std::vector<std::int64_t> fanouts = {10, 10, 10};
  ModelSpec model = {.hidden = 256, .dropout = 0};  ///< with one layer per fanout
  std::int64_t dim = 128;
  std::int64_t classes = 16;
  std::uint32_t relations = 10;  ///< of edges at random, for models with weights by edge type
  std::uint32_t rounds = 3;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
};

/// Result of training steps (forward, backward, optimiser) on minibatches in memory.
struct StepBenchReport {
  std::string simd;
  double step_seconds = 0;        ///< median
  double step_cpu_seconds = 0;    ///< over all threads, median
  std::uint64_t peak_memory = 0;  ///< peak of the process, in bytes
  std::uint64_t step_memory = 0;  ///< peak during the steps minus the memory before them, in bytes
  double rows = 0;                ///< per minibatch, mean
  double edges = 0;               ///< over all layers of a minibatch, mean
  double last_loss = 0;
};

/// Measures training steps. Reading features is not included.
/// Errors: as sampling; kInvalidArgument, an unknown model or option; kOutOfMemory; kInterrupted.
Result<StepBenchReport> MeasureStep(const GraphSnapshot& graph, const StepBenchOptions& options,
                                    const JobControl& control);

/// Options of a linear layer on tiles of rows that fit into caches: an upper bound of the speed of
/// products in inference.
struct ProductBenchOptions {
  std::int64_t inputs = 256;
  std::int64_t outputs = 256;
  double seconds = 0.5;  ///< duration
  std::uint32_t threads = 1;
};

/// Returns operations per second; a product and its addition count as two. Errors:
/// kInvalidArgument, a width below 1; kOutOfMemory; kInterrupted.
Result<double> MeasureProducts(const ProductBenchOptions& options, const JobControl& control);

/// The rows and types of the graph of an untrained model.
struct UntrainedInputs {
  std::int64_t columns = 0;               ///< of the features
  std::vector<std::string> vertex_types;  ///< for kinds with weights by type, as `edge_types`
  std::vector<std::string> edge_types;
};

/// Writes an untrained model with two classes; its inference costs as much as with a trained model.
/// Errors: as writing a file; kInvalidArgument, an unknown kind or a spec out of range.
Status SaveUntrainedModel(const ModelSpec& spec, const UntrainedInputs& inputs, std::uint64_t seed,
                          const Path& path);

}  // namespace rhizome
