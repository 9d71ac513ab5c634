#pragma once

#include <cstddef>

#include "gnn/links/decoder.h"

namespace rhizome {
inline namespace internal {

/// A complex number.
struct ComplexNumber {
  float re = 0;
  float im = 0;
};

inline ComplexNumber operator*(const ComplexNumber& a, const ComplexNumber& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/// A decoder of complex rows whose query is the given row times a factor of the relation; with an
/// open source, times the factor's conjugate. `Relation` has two static functions: Factor(relation,
/// half, d) returns factor d of a relation's row, and AddGradient(given, gradient, sign, factor,
/// half, d, out) adds the gradient of the relation at d; `sign` is -1 for the conjugate, which
/// `factor` then is.
template <typename Relation>
class ComplexDecoder final : public QueryDecoder {
 public:
  using QueryDecoder::QueryDecoder;

  void Query(const QueryRows& rows, float* query) const override {
    const std::size_t half = dim() / 2;
    for (std::size_t d = 0; d < half; ++d) {
      const ComplexNumber product = At(rows.given, d) * FactorOf(rows, d);
      query[d] = product.re;
      query[half + d] = product.im;
    }
  }

  void AddQueryGradient(const QueryRows& rows, const float* query_gradient, float* given_gradient,
                        float* relation_gradient) const override {
    const std::size_t half = dim() / 2;
    for (std::size_t d = 0; d < half; ++d) {
      const ComplexNumber gradient = At(query_gradient, d);
      const ComplexNumber factor = FactorOf(rows, d);
      if (given_gradient != nullptr) {
        given_gradient[d] += gradient.re * factor.re + gradient.im * factor.im;
        given_gradient[half + d] += gradient.im * factor.re - gradient.re * factor.im;
      }
      if (relation_gradient != nullptr)
        Relation::AddGradient(At(rows.given, d), gradient, SignOf(rows), factor, half, d,
                              relation_gradient);
    }
  }

 private:
  ComplexNumber At(const float* row, std::size_t d) const { return {row[d], row[dim() / 2 + d]}; }
  ComplexNumber FactorOf(const QueryRows& rows, std::size_t d) const {
    ComplexNumber factor = Relation::Factor(rows.relation, dim() / 2, d);
    factor.im *= SignOf(rows);
    return factor;
  }
  static float SignOf(const QueryRows& rows) { return rows.open == EdgeEnd::kDst ? 1.0F : -1.0F; }
};

}  // namespace internal
}  // namespace rhizome
