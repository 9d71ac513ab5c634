#include <cmath>

#include "gnn/links/complex_decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The score is -sum of |a_i e^(i r_i) - b_i|. As a query for b, it is a turned by r; as a query
/// for a, it is b turned by -r, because turning changes no modulus.
struct RotatERelation {
  static ComplexNumber Factor(const float* relation, std::size_t /*half*/, std::size_t d) {
    return {std::cos(relation[d]), std::sin(relation[d])};
  }
  static void AddGradient(const ComplexNumber& given, const ComplexNumber& gradient, float sign,
                          const ComplexNumber& factor, std::size_t /*half*/, std::size_t d,
                          float* out) {
    const ComplexNumber turned = given * factor;
    out[d] += sign * (gradient.im * turned.re - gradient.re * turned.im);
  }
};

}  // namespace

/// RotatE: -sum of |a_i e^(i r_i) - b_i| over complex numbers; r_i are angles in radians.
const DecoderKind& RotatEDecoderKind() {
  static const DecoderKind kind{
      .name = "rotate",
      .title = "negative sum of |a_i e^(i r_i) - b_i| over complex numbers; r_i are angles",
      .source =
          "Sun et al., RotatE: Knowledge Graph Embedding by Relational Rotation in Complex "
          "Space (ICLR 2019)",
      .relation_width = [](std::size_t dim) { return dim / 2; },
      .complex_rows = true,
      .make = [](const DecoderInput& input) -> Result<std::unique_ptr<PairDecoder>> {
        return std::make_unique<ComplexDecoder<RotatERelation>>(Combination::kModulus, input.dim);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
