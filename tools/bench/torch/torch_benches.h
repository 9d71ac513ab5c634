#pragma once

#include "gnn_bench.h"
#include "rhizome/cache/work_clock.h"

namespace rhizome {

/// See GnnBench::Aggregate.
Result<AggregateBenchReport> BenchAggregateKernels(const AggregateBenchOptions& options,
                                                   const JobControl& control);

/// See GnnBench::Step.
Result<StepBenchReport> BenchTrainingStep(const GraphSnapshot& graph,
                                          const StepBenchOptions& options,
                                          const JobControl& control);

/// See GnnBench::Products.
Result<double> BenchProducts(const ProductBenchOptions& options, const JobControl& control);

double MedianOf(std::vector<double> values);

}  // namespace rhizome
