#include "gnn/links/complex_decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The score is Re(sum of a_i r_i conj(b_i)). As a query for b, it is a r; as a query for a, it is
/// b conj(r): the product with the conjugate of the relation.
struct ComplExRelation {
  static ComplexNumber Factor(const float* relation, std::size_t half, std::size_t d) {
    return {relation[d], relation[half + d]};
  }
  static void AddGradient(const ComplexNumber& given, const ComplexNumber& gradient, float sign,
                          const ComplexNumber& /*factor*/, std::size_t half, std::size_t d,
                          float* out) {
    out[d] += gradient.re * given.re + gradient.im * given.im;
    out[half + d] += sign * (gradient.im * given.re - gradient.re * given.im);
  }
};

}  // namespace

/// ComplEx: Re(sum of a_i r_i conj(b_i)) over complex numbers.
const DecoderKind& ComplExDecoderKind() {
  static const DecoderKind kind{
      .name = "complex",
      .title = "real part of the sum of a_i r_i conj(b_i) over complex numbers",
      .source = "Trouillon et al., Complex Embeddings for Simple Link Prediction (ICML 2016)",
      .relation_width = [](std::size_t dim) { return dim; },
      .complex_rows = true,
      .make = [](const DecoderInput& input) -> Result<std::unique_ptr<PairDecoder>> {
        return std::make_unique<ComplexDecoder<ComplExRelation>>(Combination::kDot, input.dim);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
