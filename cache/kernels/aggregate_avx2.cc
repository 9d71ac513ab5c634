// Compiled with -mavx2 -mf16c -mfma -ffp-contract=off; see aggregate_kernels.h.
#if defined(__x86_64__)

#include <immintrin.h>

#include "cache/kernels/kernel_set_inl.h"

namespace rhizome {
inline namespace internal {
namespace {

struct Avx2 {
  using Reg = __m256;
  using Int = __m256i;
  using Mask = __m256;
  static constexpr std::size_t kWidth = 8;
  static constexpr int kTile = 8;  // registers of sums: 64 columns at once
  static constexpr int kRows = 4;  // rows per product block, with one panel: 8 registers of sums
  static constexpr int kPanels = 1;

  static __m256i First(std::size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Reg Zero() { return _mm256_setzero_ps(); }
  static Reg Set(float f) { return _mm256_set1_ps(f); }
  static Reg Add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg Sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg Mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg MulAdd(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg Sqrt(Reg x) { return _mm256_sqrt_ps(x); }
  static Reg Max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static void Store(float* p, Reg r) { _mm256_storeu_ps(p, r); }
  static void StoreTail(float* p, Reg r, std::size_t n) { _mm256_maskstore_ps(p, First(n), r); }

  static Reg Widened(__m128i half) { return _mm256_cvtph_ps(half); }
  static Reg WidenedB(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  /// Loads the first n of eight 16-bit numbers and fills up with zeros; AVX2 has no masked load for
  /// them.
  template <typename T>
  static __m128i Short(const T* p, std::size_t n) {
    alignas(16) std::uint16_t bits[8] = {};
    for (std::size_t i = 0; i < n; ++i) bits[i] = p[i].bits;
    return _mm_load_si128(reinterpret_cast<const __m128i*>(bits));
  }
  static Reg Load(const float* p) { return _mm256_loadu_ps(p); }
  static Reg LoadTail(const float* p, std::size_t n) { return _mm256_maskload_ps(p, First(n)); }
  static Reg Load(const Half* p) {
    return Widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Reg LoadTail(const Half* p, std::size_t n) { return Widened(Short(p, n)); }
  static Reg Load(const Bfloat* p) {
    return WidenedB(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Reg LoadTail(const Bfloat* p, std::size_t n) { return WidenedB(Short(p, n)); }

  static Int IntSet(std::uint32_t u) { return _mm256_set1_epi32(static_cast<int>(u)); }
  static Int IntLoad(const std::uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Int IntLoadTail(const std::uint32_t* p, std::size_t n) {
    return _mm256_maskload_epi32(reinterpret_cast<const int*>(p), First(n));
  }
  static void IntStore(std::uint32_t* p, Int r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), r);
  }
  static void IntStoreTail(std::uint32_t* p, Int r, std::size_t n) {
    _mm256_maskstore_epi32(reinterpret_cast<int*>(p), First(n), r);
  }

  static Mask Larger(Reg x, Reg best) {
    return _mm256_and_ps(_mm256_cmp_ps(x, best, _CMP_NLE_UQ),
                         _mm256_cmp_ps(best, best, _CMP_ORD_Q));
  }
  static Reg Pick(Mask m, Reg a, Reg b) { return _mm256_blendv_ps(b, a, m); }
  static Int IntPick(Mask m, Int a, Int b) {
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b), _mm256_castsi256_ps(a), m));
  }
  static Mask Equal(Int a, Int b) { return _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)); }
  /// Adds zeros in the other lanes. That could only change a sum of -0, which does not occur
  /// because sums start at +0.
  static Reg AddWhere(Mask m, Reg acc, Reg x) { return _mm256_add_ps(acc, _mm256_and_ps(m, x)); }

  static Reg Relu(Reg x) { return _mm256_max_ps(Zero(), x); }  // this operand order propagates NaNs
  static Mask Positive(Reg x) { return _mm256_cmp_ps(x, Zero(), _CMP_GT_OQ); }
  static Mask AtLeast(Int a, Int b) { return Equal(_mm256_max_epu32(a, b), a); }
  static Reg Keep(Mask m, Reg x) { return _mm256_and_ps(m, x); }
  static Int Columns(std::uint32_t first) {
    return IntAdd(IntSet(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Int IntMul(Int a, Int b) { return _mm256_mullo_epi32(a, b); }
  static Int IntAdd(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static Int IntXor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  template <int kBits>
  static Int IntShift(Int a) {
    return _mm256_srli_epi32(a, kBits);
  }
  template <int kBits>
  static Int IntShiftLeft(Int a) {
    return _mm256_slli_epi32(a, kBits);
  }
  static Int Bits(Reg x) { return _mm256_castps_si256(x); }
  static Reg OfBits(Int x) { return _mm256_castsi256_ps(x); }
  static bool Any(Mask m) { return _mm256_movemask_ps(m) != 0; }
  static Reg Permute(Reg x, Int from) { return _mm256_permutevar8x32_ps(x, from); }

  static float Fold(const Reg* parts) {
    const __m256 eight = _mm256_add_ps(parts[0], parts[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  /// Returns two sums, one in the first element of each half.
  static Reg FoldTwo(Reg a, Reg b) {
    const Reg four = Add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    const Reg two = Add(four, _mm256_shuffle_ps(four, four, 0xEE));
    return Add(two, _mm256_movehdup_ps(two));
  }
  static void FoldFour(const Reg* parts, float* out) {
    const Reg ab = FoldTwo(Add(parts[0], parts[1]), Add(parts[2], parts[3]));
    const Reg cd = FoldTwo(Add(parts[4], parts[5]), Add(parts[6], parts[7]));
    const Reg ac = _mm256_unpacklo_ps(ab, cd);  // a, c, ..., b, d, ...
    _mm_storeu_ps(out, _mm_unpacklo_ps(_mm256_castps256_ps128(ac), _mm256_extractf128_ps(ac, 1)));
  }
};

}  // namespace

const AggregateKernels kAvx2Kernels = MakeKernels<Avx2>();
const GatherKernels kAvx2Gathers = MakeGathers<Avx2>();
const ProductKernels kAvx2Products = MakeProducts<Avx2>();
const DistanceKernels kAvx2Distances = MakeDistances<Avx2>();

}  // namespace internal
}  // namespace rhizome

#endif
