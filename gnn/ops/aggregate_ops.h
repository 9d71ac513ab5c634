#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cache/kernels/aggregate.h"
#include "cuda/kernel_args.h"
#include "gnn/ops/device_uploads.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// Aggregation as libtorch operations with gradients, on the compute threads. Results are
// bit-identical for any number of threads and for every SimdPath. Rows may be float32, float16 or
// bfloat16; sums, results and gradients are float32 (libtorch then converts a gradient to the type
// of its row). Lists that are placed on a device are aggregated there, with rows that are also
// there.
//
// Ownership: the lists and factors are borrowed and must outlive the backward pass.

/// The long lists of a CSR, in pieces (cuda/long_lists.h). The pieces are in device memory.
struct PlacedLongLists {
  std::span<const cuda::ListPiece> pieces;
  std::uint32_t longest = 0;
  std::uint32_t partial_count = 0;
};

/// CSR lists. Their transpose is built when a gradient first needs it.
/// Threads: one at a time.
class AggregateLists {
 public:
  AggregateLists() = default;
  AggregateLists(const CsrView& csr, std::int64_t sources, std::span<const float> weights = {})
      : csr_(csr), sources_(sources), weights_(weights) {}
  const CsrView& csr() const { return csr_; }
  std::int64_t sources() const { return sources_; }
  std::int64_t targets() const { return static_cast<std::int64_t>(csr_.targets()); }

  /// The factor of each edge in sums, [edges]; empty means ones.
  std::span<const float> weights() const { return weights_; }

  /// Return the transpose, which is built at the first call, and the weights in its order.
  const TransposedCsr& turned() const;
  std::span<const float> turned_weights() const;

  /// Makes the operations run on a device; the arguments are device copies of these lists and
  /// weights. The transpose is uploaded when a gradient needs it; it is built while the device runs
  /// the forward pass. `uploads` must outlive this object.
  void PlaceOn(DeviceUploads& uploads, const CsrView& csr, std::span<const float> weights,
               const PlacedLongLists& long_lists);
  DeviceUploads* uploads() const { return uploads_; }  ///< null: on the CPU

  // The lists in the memory where operations read them: on the device if they were placed there.
  const CsrView& placed_csr() const { return uploads_ == nullptr ? csr_ : placed_.csr; }
  std::span<const float> placed_weights() const {
    return uploads_ == nullptr ? weights_ : placed_.weights;
  }
  const PlacedLongLists& placed_long_lists() const { return placed_.long_lists; }
  struct Turned {
    CsrView csr;
    std::span<const std::uint32_t> edges;
    std::span<const float> weights;
    PlacedLongLists long_lists = {};
  };
  Turned placed_transpose() const;

 private:
  struct Placed {
    CsrView csr;
    std::span<const float> weights;
    PlacedLongLists long_lists;
    Turned turned = {};
    torch::Tensor memory = {};  // owns the device copies in `turned`
  };

  CsrView csr_;
  std::int64_t sources_ = 0;
  std::span<const float> weights_;
  mutable std::vector<float> turned_weights_;
  mutable TransposedCsr turned_;
  mutable bool is_turned_ = false;
  DeviceUploads* uploads_ = nullptr;
  mutable Placed placed_;
};

/// Factors of AggregateSum, which computes out[t] = self[t] * x[t] + target[t] * sum of source[j] *
/// weight[e] * x[j] over the edges e from j to t, from x [sources, dim] to [targets, dim]. An empty
/// `self` omits its term; otherwise it is [targets].
struct SumFactors {
  std::span<const float> target;  ///< [targets], or empty: ones
  std::span<const float> source;  ///< [sources], or empty: ones
  std::span<const float> self;
};
torch::Tensor AggregateSum(const torch::Tensor& x, const AggregateLists& lists,
                           const SumFactors& factors);

/// Computes out[t] = sum of weights[e] * x[j] over the edges e of t. `weights` is [edges], float32.
/// Has gradients with respect to x and weights.
torch::Tensor AggregateWeighted(const torch::Tensor& x, const torch::Tensor& weights,
                                const AggregateLists& lists);

/// Computes out[t] = the maximum of x[j] in each column; zeros without neighbours. The gradient is
/// passed to the first neighbour in the list that attains the maximum.
torch::Tensor AggregateMax(const torch::Tensor& x, const AggregateLists& lists);

/// Returns x in the form that the kernels read. x has one of the three types, and dense rows.
RowsView RowsOf(const torch::Tensor& x);

/// Runs `args` over all targets of `csr`. `csr` and `long_lists` must be where `lists` are placed.
void RunSum(const AggregateLists& lists, const SumArgs& args, const CsrView& csr,
            const PlacedLongLists& long_lists);

/// Calls body(begin, end) for runs of targets with about the same number of edges each, on the
/// compute threads.
void ForTargets(const CsrView& csr, const std::function<void(std::size_t, std::size_t)>& body);

/// Runs `args` over all targets of `csr` on the compute threads.
void SumOnThreads(const SumArgs& args, const CsrView& csr);

}  // namespace internal
}  // namespace rhizome
