#pragma once

#include "rhizome/gnn/bench_entry.h"

namespace rhizome {

/// See GnnBench::Aggregate.
Result<AggregateBenchReport> BenchAggregateKernels(const AggregateBenchOptions& options,
                                                   const JobControl& control);

/// See GnnBench::Step.
Result<StepBenchReport> BenchTrainingStep(const Graph& graph, const StepBenchOptions& options,
                                          const JobControl& control);

/// Wall clock and processor time since it was made.
class BenchClock {
 public:
  BenchClock();
  double seconds() const;
  double cpu_seconds() const;  ///< of all threads of the process

 private:
  double start_;
  double cpu_start_;
};

double MedianOf(std::vector<double> values);

}  // namespace rhizome
