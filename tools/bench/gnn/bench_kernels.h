#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/gnn/model_spec.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

// Measurements of the networks. This header needs no libtorch; what implements it does.

namespace rhizome {

struct AggregateBenchOptions {
  std::vector<std::uint32_t> widths = {32, 64, 128, 256, 512};
  std::vector<std::string> dtypes = {"float32", "float16"};  ///< also bfloat16

  /// Sizes of the table whose rows are read: one in memory, and one that fits a cache.
  std::vector<std::uint64_t> table_bytes = {std::uint64_t{256} << 20, std::uint64_t{4} << 20};
  std::uint32_t degree = 10;  ///< neighbours of a target
  std::uint32_t rounds = 5;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
};

/// One operation on one table. Bytes are those of the rows read, the indices, and the results
/// written, each once. Rates are medians over the rounds; a ratio is the median of the rounds'
/// ratios, in which all contestants take turns; above 1: ours is faster.
struct AggregateFigure {
  std::string op;  ///< "sum", "mean", "weighted", "max", "sum gradient"
  std::string dtype;
  std::uint32_t width = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t edges = 0;
  double gb_per_second = 0;
  double sequential_gb_per_second = 0;  ///< the table read from front to back
  double random_gb_per_second = 0;      ///< the same rows read in the same order, not summed
  double share_of_sequential = 0;
  double share_of_random = 0;

  /// Against libtorch's index_add (the sums) or scatter_reduce (the maxima), with the index_select
  /// that both need, and its product with a sparse matrix (CSR). 0: it has no such operation.
  double ratio_to_scatter = 0;
  double ratio_to_sparse = 0;

  /// The same by processor time, which means something on a busy machine too.
  double cpu_ratio_to_scatter = 0;
  double cpu_ratio_to_sparse = 0;
};

/// A pass of attention of 4 heads of 64 columns, float32, against a sum of the same rows with one
/// weight an edge, which takes turns with it. A row is in four lists, as in a minibatch's first
/// layer; the backward pass makes the gradients of rows, scores and vectors.
struct AttentionFigure {
  std::string op;  ///< "gat forward", "gat backward", "gatv2 forward", "gatv2 backward"
  std::uint32_t heads = 0;
  std::uint32_t width = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t edges = 0;
  double nanoseconds_per_edge = 0;
  double ratio_to_weighted_sum = 0;  ///< of its time
  double cpu_ratio_to_weighted_sum = 0;
};

/// Rows at random places of a table, float32, times weights, or the gradient of those weights,
/// against libtorch, which copies the rows first (index_select, then mm).
struct ProjectionFigure {
  std::string op;  ///< "product", "product gradient"
  std::uint32_t width = 0;
  std::uint32_t outputs = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t rows = 0;
  double nanoseconds_per_row = 0;
  double ratio_to_libtorch = 0;  ///< above 1: ours is faster
  double cpu_ratio_to_libtorch = 0;
};

struct AggregateBenchReport {
  std::string simd;  ///< the set of kernels that was measured
  std::vector<AggregateFigure> figures;
};

/// The aggregation kernels, against the memory's bandwidth and what libtorch has for the same.
/// Errors: kInvalidArgument, an unknown dtype or empty list; kOutOfMemory; kInterrupted.
Result<AggregateBenchReport> MeasureAggregation(const AggregateBenchOptions& options,
                                                const JobControl& control);

/// The kernels of attention on the same tables, whose dtypes and widths it does not ask for.
/// Errors: kOutOfMemory; kInterrupted.
Result<std::vector<AttentionFigure>> MeasureAttention(const AggregateBenchOptions& options,
                                                      const JobControl& control);

/// The products of layers that multiply rows before they are aggregated, for the widths of the
/// options and a few numbers of outputs. Errors: kOutOfMemory; kInterrupted.
Result<std::vector<ProjectionFigure>> MeasureProjection(const AggregateBenchOptions& options,
                                                        const JobControl& control);

struct StepBenchOptions {
  std::vector<std::vector<VertexId>> seeds;  ///< of each minibatch, distinct
  std::vector<std::int64_t> fanouts = {10, 10, 10};
  ModelSpec model = {.hidden = 256, .dropout = 0};  ///< with a layer for each of `fanouts`
  std::int64_t dim = 128;
  std::int64_t classes = 16;
  std::uint32_t rounds = 3;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
};

/// Forward, backward and optimiser of a network on minibatches in memory.
struct StepBenchReport {
  std::string simd;
  double step_seconds = 0;        ///< median
  double step_cpu_seconds = 0;    ///< of all threads, median
  std::uint64_t peak_memory = 0;  ///< of the process, in bytes
  std::uint64_t step_memory = 0;  ///< its peak during the steps less what it had before, in bytes
  double rows = 0;                ///< of a minibatch, mean
  double edges = 0;               ///< over all layers, mean
  double last_loss = 0;
};

/// Gathering is excluded. Errors: those of sampling; kInvalidArgument, a model or option that there
/// is not; kOutOfMemory; kInterrupted.
Result<StepBenchReport> MeasureStep(const GraphSnapshot& graph, const StepBenchOptions& options,
                                    const JobControl& control);

/// One linear layer on tiles of rows that caches hold: no product of inference can be faster.
struct ProductBenchOptions {
  std::int64_t inputs = 256;
  std::int64_t outputs = 256;
  double seconds = 0.5;  ///< to go on for
  std::uint32_t threads = 1;
};

/// Operations a second, a product and its addition counted as two.
/// Errors: kInvalidArgument, a width below 1; kOutOfMemory; kInterrupted.
Result<double> MeasureProducts(const ProductBenchOptions& options, const JobControl& control);

/// Writes a network that was never trained, of two classes: what it computes costs as much as that
/// of any. Errors: kInvalidArgument, a spec out of range; those of writing a file.
Status SaveUntrainedModel(const ModelSpec& spec, std::int64_t inputs, std::uint64_t seed,
                          const Path& path);

}  // namespace rhizome
