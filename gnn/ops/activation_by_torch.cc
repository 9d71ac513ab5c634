#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/gnn/activation.h"
#include "rhizome/storage/mix.h"

namespace rhizome::inline internal {
namespace {

// Words of 32 and 64 bits in libtorch's signed integers, whose products wrap around; their shifts
// to the right copy the sign, which is masked away.

std::int64_t Word64(std::uint64_t word) { return static_cast<std::int64_t>(word); }
std::int64_t Word32(std::uint32_t word) { return static_cast<std::int32_t>(word); }

/// x ^= x >> shift, of unsigned words of `bits` bits.
void XorShifted(torch::Tensor& x, int shift, int bits) {
  const std::int64_t mask = Word64((std::uint64_t{1} << (bits - shift)) - 1);
  x.bitwise_xor_(x.bitwise_right_shift(shift).bitwise_and_(mask));
}

/// SplitMix64 of each row's number: [rows], 64 bits each.
torch::Tensor RowKeys(const Activation& activation, std::int64_t rows,
                      const torch::TensorOptions& place) {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;
  torch::Tensor x = at::arange(rows, place.dtype(torch::kInt64));
  x.add_(activation.first_row);
  x.mul_(Word64(kStep)).add_(Word64(activation.seed + kStep));
  XorShifted(x, 30, 64);
  x.mul_(Word64(0xBF58476D1CE4E5B9));
  XorShifted(x, 27, 64);
  x.mul_(Word64(0x94D049BB133111EB));
  XorShifted(x, 31, 64);
  return x;
}

void Mix32(torch::Tensor& x) {
  XorShifted(x, 16, 32);
  x.mul_(Word32(kMixA));
  XorShifted(x, 15, 32);
  x.mul_(Word32(kMixB));
  XorShifted(x, 16, 32);
}

/// Which values dropout makes zero: [rows, dim], as the kernel `activate` does.
torch::Tensor Zeroed(const Activation& activation, const torch::Tensor& like) {
  const torch::TensorOptions place = torch::TensorOptions().device(like.device());
  const torch::Tensor keys = RowKeys(activation, like.size(0), place);
  const torch::Tensor low = keys.to(torch::kInt32).unsqueeze(1);
  const torch::Tensor high = keys.bitwise_right_shift(32).to(torch::kInt32).unsqueeze(1);
  torch::Tensor columns = at::arange(like.size(1), place.dtype(torch::kInt32));
  columns.mul_(Word32(kColumnStep));
  torch::Tensor draws = columns.unsqueeze(0) + low;
  Mix32(draws);
  draws.add_(high);
  Mix32(draws);
  // Unsigned words in order are signed ones in order with the highest bit turned.
  constexpr std::uint32_t kHighest = 0x80000000U;
  draws.bitwise_xor_(Word32(kHighest));
  return draws.lt(Word32(DrawsOf(activation.dropout).dropped ^ kHighest));
}

torch::Tensor DroppedByTorch(const Activation& activation, const torch::Tensor& values) {
  const DropoutDraws draws = DrawsOf(activation.dropout);
  if (draws.dropped == 0) return values;
  return (values * draws.scale).masked_fill_(Zeroed(activation, values), 0);
}

}  // namespace

torch::Tensor ActivateByTorch(const Activation& activation, const torch::Tensor& in) {
  return DroppedByTorch(activation, activation.relu ? at::relu(in) : in);
}

torch::Tensor ActivateGradientByTorch(const Activation& activation, const torch::Tensor& result,
                                      const torch::Tensor& gradient) {
  if (!activation.relu) return DroppedByTorch(activation, gradient);
  const torch::Tensor passed = result.gt(0);
  return (gradient * DrawsOf(activation.dropout).scale).masked_fill_(passed.logical_not(), 0);
}

}  // namespace rhizome::inline internal
