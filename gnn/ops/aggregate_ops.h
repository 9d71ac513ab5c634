#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "rhizome/cache/aggregate.h"
#include "rhizome/cuda/kernel_args.h"
#include "rhizome/gnn/device_uploads.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

// Aggregation as operations of libtorch, with gradients, on the compute threads. The bits are the
// same for any number of threads and for every SimdPath. Rows may be float32, float16 or bfloat16;
// sums, results and gradients are float32 (libtorch then converts a gradient to the type of its
// row). Lists that were placed on a device have their operations there, on rows that are there too.
//
// Ownership: the lists and factors are borrowed and must outlive the backward pass.

/// The long lists of a CSR on a device, in pieces (cuda/long_lists.h), which lie there, too.
struct PlacedLongLists {
  std::span<const cuda::ListPiece> pieces;
  std::uint32_t longest = 0;
  std::uint32_t partial_count = 0;
};

/// CSR lists, and their transpose once a gradient needs it.
/// Threads: one at a time.
class AggregateLists {
 public:
  AggregateLists() = default;
  AggregateLists(const CsrView& csr, std::int64_t sources, std::span<const float> weights = {})
      : csr_(csr), sources_(sources), weights_(weights) {}
  const CsrView& csr() const { return csr_; }
  std::int64_t sources() const { return sources_; }
  std::int64_t targets() const { return static_cast<std::int64_t>(csr_.targets()); }

  /// The factor of each edge in sums, [edges]; empty: ones.
  std::span<const float> weights() const { return weights_; }

  /// Returns the transpose, which is built at the first call, and the weights in its order.
  const TurnedCsr& turned() const;
  std::span<const float> turned_weights() const;

  /// Lets the operations run on a device, where the others lie as copies of these. The
  /// transpose goes up when a gradient needs it: it is built while the device works on the forward
  /// pass. `uploads` must outlive this.
  void PlaceOn(DeviceUploads& uploads, const CsrView& csr, std::span<const float> weights,
               const PlacedLongLists& long_lists);
  DeviceUploads* uploads() const { return uploads_; }  ///< null: on the processor

  // The lists where the operations read them: in memory of the device, if they were placed there.
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
  Turned placed_turned() const;

 private:
  struct Placed {
    CsrView csr;
    std::span<const float> weights;
    PlacedLongLists long_lists;
    Turned turned = {};
    torch::Tensor memory = {};  // of `turned`
  };

  CsrView csr_;
  std::int64_t sources_ = 0;
  std::span<const float> weights_;
  mutable std::vector<float> turned_weights_;
  mutable TurnedCsr turned_;
  mutable bool is_turned_ = false;
  DeviceUploads* uploads_ = nullptr;
  mutable Placed placed_;
};

/// The factors of AggregateSum, which computes out[t] = self[t] * x[t] + target[t] * sum of
/// source[j] * weight[e] * x[j] over the edges e from j to t, from x [sources, dim] to [targets,
/// dim]. `self` [targets] may be empty, which omits its term.
struct SumFactors {
  std::span<const float> target;  ///< [targets], or empty: ones
  std::span<const float> source;  ///< [sources], or empty: ones
  std::span<const float> self;
};
torch::Tensor AggregateSum(const torch::Tensor& x, const AggregateLists& lists,
                           const SumFactors& factors);

/// Computes out[t] = sum of weights[e] * x[j] over the edges e of t; weights are [edges], float32.
/// It has gradients with respect to both.
torch::Tensor AggregateWeighted(const torch::Tensor& x, const torch::Tensor& weights,
                                const AggregateLists& lists);

/// Computes out[t] = the maximum of x[j] in each column; zeros without neighbours. The gradient
/// goes to the first neighbour in the list that attains it.
torch::Tensor AggregateMax(const torch::Tensor& x, const AggregateLists& lists);

/// Returns x as the kernels read it; x has one of the three types, and dense rows.
RowsView RowsOf(const torch::Tensor& x);

/// Runs `sum` over all targets of `csr`, which lie where `lists` are placed, as do its long lists.
void RunSum(const AggregateLists& lists, const SumArgs& args, const CsrView& csr,
            const PlacedLongLists& long_lists);

/// Calls body(begin, end) for runs of targets with about equally many edges, on the compute
/// threads.
void ForTargets(const CsrView& csr, const std::function<void(std::size_t, std::size_t)>& body);

/// The same on the compute threads.
void SumOnThreads(const SumArgs& args, const CsrView& csr);

}  // namespace rhizome::inline internal
