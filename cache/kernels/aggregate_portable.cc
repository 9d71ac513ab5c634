// Compiled for the baseline of the architecture, with -ffp-contract=off; see aggregate_kernels.h.
#include "cache/kernels/kernel_set_inl.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Four lanes as a compiler vector type, which the compiler can implement on every target.
struct Portable {
  using Reg = float __attribute__((vector_size(16)));
  using Int = std::uint32_t __attribute__((vector_size(16)));
  using Mask = std::int32_t __attribute__((vector_size(16)));  // all ones where true
  static constexpr std::size_t kWidth = 4;
  static constexpr int kTile = 8;  // registers of sums: 32 columns at once
  static constexpr int kRows = 2;  // rows per product block, with one panel: 8 registers of sums
  static constexpr int kPanels = 1;

  static Reg Zero() { return Reg{}; }
  static Reg Set(float f) { return Reg{f, f, f, f}; }
  static Reg Add(Reg a, Reg b) { return a + b; }
  static Reg Sub(Reg a, Reg b) { return a - b; }
  static Reg Mul(Reg a, Reg b) { return a * b; }
  /// One instruction on architectures that have it, else a call of the C library.
  static Reg MulAdd(Reg a, Reg b, Reg c) {
    for (std::size_t i = 0; i < kWidth; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }
  static Reg Sqrt(Reg x) {
    for (std::size_t i = 0; i < kWidth; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
  }
  static Reg Max(Reg a, Reg b) { return Pick(a > b, a, b); }

  /// Converts float16 exactly, subnormals included. NaNs become quiet, as with the hardware
  /// instructions.
  static Reg Widened(Int half) {
    const Int magnitude = (half & 0x7FFFU) << 13;
    const Reg finite = reinterpret_cast<Reg>(magnitude) * 0x1p112F;
    const Int special =
        magnitude | 0x7F800000U | ((half & 0x3FFU) != 0 ? Int{} + 0x400000U : Int{});
    const Mask is_special = (half & 0x7C00U) == 0x7C00U;
    const Int bits = IntPick(is_special, special, reinterpret_cast<Int>(finite));
    return reinterpret_cast<Reg>(bits | (half & 0x8000U) << 16);
  }
  static Reg Number(Int bits, const Half*) { return Widened(bits); }
  static Reg Number(Int bits, const Bfloat*) { return reinterpret_cast<Reg>(bits << 16); }

  static Reg Load(const float* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof(r));
    return r;
  }
  template <typename T>
  static Reg Load(const T* p) {
    return Number(Int{p[0].bits, p[1].bits, p[2].bits, p[3].bits}, p);
  }
  static Reg LoadTail(const float* p, std::size_t n) {
    Reg r{};
    for (std::size_t i = 0; i < n; ++i) r[i] = p[i];
    return r;
  }
  template <typename T>
  static Reg LoadTail(const T* p, std::size_t n) {
    Int r{};
    for (std::size_t i = 0; i < n; ++i) r[i] = p[i].bits;
    return Number(r, p);
  }
  static void Store(float* p, Reg r) { __builtin_memcpy(p, &r, sizeof(r)); }
  static void StoreTail(float* p, Reg r, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i];
  }

  static Int IntSet(std::uint32_t u) { return Int{u, u, u, u}; }
  static Int IntLoad(const std::uint32_t* p) {
    Int r;
    __builtin_memcpy(&r, p, sizeof(r));
    return r;
  }
  static Int IntLoadTail(const std::uint32_t* p, std::size_t n) {
    Int r{};
    for (std::size_t i = 0; i < n; ++i) r[i] = p[i];
    return r;
  }
  static void IntStore(std::uint32_t* p, Int r) { __builtin_memcpy(p, &r, sizeof(r)); }
  static void IntStoreTail(std::uint32_t* p, Int r, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] = r[i];
  }

  static Mask Larger(Reg x, Reg best) { return ~(x <= best) & (best == best); }
  static Reg Pick(Mask m, Reg a, Reg b) {
    return reinterpret_cast<Reg>((m & reinterpret_cast<Mask>(a)) |
                                 (~m & reinterpret_cast<Mask>(b)));
  }
  static Int IntPick(Mask m, Int a, Int b) {
    return (reinterpret_cast<Int>(m) & a) | (~reinterpret_cast<Int>(m) & b);
  }
  static Mask Equal(Int a, Int b) { return reinterpret_cast<Mask>(a == b); }
  static Reg AddWhere(Mask m, Reg acc, Reg x) { return Pick(m, acc + x, acc); }

  static Reg Relu(Reg x) { return Pick(Zero() > x, Zero(), x); }
  static Mask Positive(Reg x) { return x > Zero(); }
  static Mask AtLeast(Int a, Int b) { return a >= b; }
  static Reg Keep(Mask m, Reg x) { return reinterpret_cast<Reg>(m & reinterpret_cast<Mask>(x)); }
  static Int Columns(std::uint32_t first) { return Int{first, first + 1, first + 2, first + 3}; }
  static Int IntMul(Int a, Int b) { return a * b; }
  static Int IntAdd(Int a, Int b) { return a + b; }
  static Int IntXor(Int a, Int b) { return a ^ b; }
  template <int kBits>
  static Int IntShift(Int a) {
    return a >> kBits;
  }
  template <int kBits>
  static Int IntShiftLeft(Int a) {
    return a << kBits;
  }
  static Int Bits(Reg x) { return reinterpret_cast<Int>(x); }
  static Reg OfBits(Int x) { return reinterpret_cast<Reg>(x); }
  static Reg Permute(Reg x, Int from) {
    return Reg{x[from[0]], x[from[1]], x[from[2]], x[from[3]]};
  }
  static bool Any(Mask m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }

  static float Fold(const Reg* parts) {
    const Reg four = (parts[0] + parts[2]) + (parts[1] + parts[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
  static void FoldFour(const Reg* parts, float* out) {
    for (int i = 0; i < 4; ++i) out[i] = Fold(parts + 4 * i);
  }
};

}  // namespace

const AggregateKernels kPortableKernels = MakeKernels<Portable>();
const GatherKernels kPortableGathers = MakeGathers<Portable>();
const ProductKernels kPortableProducts = MakeProducts<Portable>();
const DistanceKernels kPortableDistances = MakeDistances<Portable>();

}  // namespace internal
}  // namespace rhizome
