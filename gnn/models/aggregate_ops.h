#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <span>

#include "rhizome/cache/aggregate.h"

namespace rhizome::inline internal {

// Aggregation as operations of libtorch, with their gradients, on the compute threads; the same
// bits for any number of them and for every SimdPath. Rows may be float32, float16 or bfloat16;
// sums, results and what comes back are float32 (libtorch then converts a gradient to its row's
// type).
//
// Ownership: the lists and factors are borrowed and must outlive the backward pass.

/// Lists, and the same turned around once a gradient needs that. Threads: one at a time.
class AggregateLists {
 public:
  AggregateLists() = default;
  AggregateLists(const CsrView& csr, std::int64_t sources) : csr_(csr), sources_(sources) {}
  const CsrView& csr() const { return csr_; }
  std::int64_t sources() const { return sources_; }
  std::int64_t targets() const { return static_cast<std::int64_t>(csr_.targets()); }

  /// Built at the first call.
  const TurnedCsr& turned() const;

 private:
  CsrView csr_;
  std::int64_t sources_ = 0;
  mutable TurnedCsr turned_;
  mutable bool is_turned_ = false;
};

/// out[t] = self[t] * x[t] + target[t] * sum of source[j] * x[j] over the neighbours j of t.
/// x [sources, dim] -> [targets, dim]. `self` [targets] may be empty: no such term.
struct SumFactors {
  std::span<const float> target;  ///< [targets], or empty: ones
  std::span<const float> source;  ///< [sources], or empty: ones
  std::span<const float> self;
};
torch::Tensor AggregateSum(const torch::Tensor& x, const AggregateLists& lists,
                           const SumFactors& factors);

/// out[t] = sum of weights[e] * x[j] over the edges e of t; weights [edges], float32. Gradients
/// with respect to both.
torch::Tensor AggregateWeighted(const torch::Tensor& x, const torch::Tensor& weights,
                                const AggregateLists& lists);

/// out[t] = the largest x[j], column by column; zeros without neighbours. The gradient goes to the
/// first neighbour of the list that has it.
torch::Tensor AggregateMax(const torch::Tensor& x, const AggregateLists& lists);

/// x as the kernels read it; it must be of one of the three types, with dense rows.
RowsView RowsOf(const torch::Tensor& x);

/// Runs `sum` over all targets of `csr` on the compute threads.
void SumOnThreads(const SumArgs& args, const CsrView& csr);

}  // namespace rhizome::inline internal
