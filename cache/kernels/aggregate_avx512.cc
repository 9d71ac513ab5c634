// Compiled with -mavx512f -mavx512bw -mavx512vl -ffp-contract=off; see aggregate_kernels.h.
#if defined(__x86_64__)

#include <immintrin.h>

#include "cache/kernels/kernel_set_inl.h"

namespace rhizome {
inline namespace internal {
namespace {

struct Avx512 {
  using Reg = __m512;
  using Int = __m512i;
  using Mask = __mmask16;
  static constexpr std::size_t kWidth = 16;
  static constexpr int kTile = 16;  // registers of sums: 256 columns at once
  static constexpr int kRows = 8;   // rows per product block, with two panels: 16 registers of sums
  static constexpr int kPanels = 2;

  static Mask First(std::size_t n) { return static_cast<Mask>((1U << n) - 1); }
  static Reg Zero() { return _mm512_setzero_ps(); }
  static Reg Set(float f) { return _mm512_set1_ps(f); }
  static Reg Add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg Sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg Mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg MulAdd(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg Sqrt(Reg x) { return _mm512_sqrt_ps(x); }
  static Reg Max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static void Store(float* p, Reg r) { _mm512_storeu_ps(p, r); }
  static void StoreTail(float* p, Reg r, std::size_t n) { _mm512_mask_storeu_ps(p, First(n), r); }

  static Reg Widened(__m256i half) { return _mm512_cvtph_ps(half); }
  static Reg WidenedB(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Reg Load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg LoadTail(const float* p, std::size_t n) { return _mm512_maskz_loadu_ps(First(n), p); }
  static Reg Load(const Half* p) {
    return Widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Reg LoadTail(const Half* p, std::size_t n) {
    return Widened(_mm256_maskz_loadu_epi16(First(n), p));
  }
  static Reg Load(const Bfloat* p) {
    return WidenedB(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Reg LoadTail(const Bfloat* p, std::size_t n) {
    return WidenedB(_mm256_maskz_loadu_epi16(First(n), p));
  }

  static Int IntSet(std::uint32_t u) { return _mm512_set1_epi32(static_cast<int>(u)); }
  static Int IntLoad(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
  static Int IntLoadTail(const std::uint32_t* p, std::size_t n) {
    return _mm512_maskz_loadu_epi32(First(n), p);
  }
  static void IntStore(std::uint32_t* p, Int r) { _mm512_storeu_si512(p, r); }
  static void IntStoreTail(std::uint32_t* p, Int r, std::size_t n) {
    _mm512_mask_storeu_epi32(p, First(n), r);
  }

  static Mask Larger(Reg x, Reg best) {
    return static_cast<Mask>(_mm512_cmp_ps_mask(x, best, _CMP_NLE_UQ) &
                             _mm512_cmp_ps_mask(best, best, _CMP_ORD_Q));
  }
  static Reg Pick(Mask m, Reg a, Reg b) { return _mm512_mask_blend_ps(m, b, a); }
  static Int IntPick(Mask m, Int a, Int b) { return _mm512_mask_blend_epi32(m, b, a); }
  static Mask Equal(Int a, Int b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static Reg AddWhere(Mask m, Reg acc, Reg x) { return _mm512_mask_add_ps(acc, m, acc, x); }

  static Reg Relu(Reg x) { return _mm512_max_ps(Zero(), x); }  // this operand order propagates NaNs
  static Mask Positive(Reg x) { return _mm512_cmp_ps_mask(x, Zero(), _CMP_GT_OQ); }
  static Mask AtLeast(Int a, Int b) { return _mm512_cmpge_epu32_mask(a, b); }
  static Reg Keep(Mask m, Reg x) { return _mm512_maskz_mov_ps(m, x); }
  static Int Columns(std::uint32_t first) {
    return IntAdd(IntSet(first),
                  _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  }
  static Int IntMul(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
  static Int IntAdd(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Int IntXor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  template <int kBits>
  static Int IntShift(Int a) {
    return _mm512_srli_epi32(a, kBits);
  }
  template <int kBits>
  static Int IntShiftLeft(Int a) {
    return _mm512_slli_epi32(a, kBits);
  }
  static Int Bits(Reg x) { return _mm512_castps_si512(x); }
  static Reg OfBits(Int x) { return _mm512_castsi512_ps(x); }
  static bool Any(Mask m) { return m != 0; }
  static Reg Permute(Reg x, Int from) { return _mm512_maskz_permutexvar_ps(0xFFFF, from, x); }

  static float Fold(const Reg* parts) {
    // Uses the masked form with all lanes enabled, because GCC 12 warns about its unmasked form.
    const __m512d all = _mm512_castps_pd(parts[0]);
    const __m256d low = _mm512_maskz_extractf64x4_pd(0xFF, all, 0);
    const __m256d high = _mm512_maskz_extractf64x4_pd(0xFF, all, 1);
    const __m256 eight = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  template <int kLanes>
  static Reg Lanes(Reg a, Reg b) {
    return _mm512_maskz_shuffle_f32x4(0xFFFF, a, b, kLanes);
  }
  static void FoldFour(const Reg* parts, float* out) {
    const Reg ab = Add(Lanes<0x44>(parts[0], parts[1]), Lanes<0xEE>(parts[0], parts[1]));
    const Reg cd = Add(Lanes<0x44>(parts[2], parts[3]), Lanes<0xEE>(parts[2], parts[3]));
    const Reg four = Add(Lanes<0x88>(ab, cd), Lanes<0xDD>(ab, cd));
    const Reg two = Add(four, _mm512_maskz_shuffle_ps(0xFFFF, four, four, 0xEE));
    const Reg one = Add(two, _mm512_maskz_movehdup_ps(0xFFFF, two));
    const Int firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm_storeu_ps(out, _mm512_castps512_ps128(Permute(one, firsts)));
  }
};

}  // namespace

const AggregateKernels kAvx512Kernels = MakeKernels<Avx512>();
const GatherKernels kAvx512Gathers = MakeGathers<Avx512>();
const ProductKernels kAvx512Products = MakeProducts<Avx512>();
const DistanceKernels kAvx512Distances = MakeDistances<Avx512>();

}  // namespace internal
}  // namespace rhizome

#endif
