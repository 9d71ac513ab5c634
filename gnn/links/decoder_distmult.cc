#include "gnn/links/decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

class DistMultDecoder final : public QueryDecoder {
 public:
  explicit DistMultDecoder(std::size_t dim) : QueryDecoder(Combination::kDot, dim) {}

  void Query(const QueryRows& rows, float* query) const override {
    for (std::size_t d = 0; d < dim(); ++d) query[d] = rows.given[d] * rows.relation[d];
  }
  void AddQueryGradient(const QueryRows& rows, const float* query_gradient, float* given_gradient,
                        float* relation_gradient) const override {
    for (std::size_t d = 0; d < dim(); ++d) {
      if (given_gradient != nullptr) given_gradient[d] += query_gradient[d] * rows.relation[d];
      if (relation_gradient != nullptr) relation_gradient[d] += query_gradient[d] * rows.given[d];
    }
  }
};

}  // namespace

/// DistMult: sum of a_i r_i b_i.
const DecoderKind& DistMultDecoderKind() {
  static const DecoderKind kind{
      .name = "distmult",
      .title = "sum of a_i r_i b_i",
      .source =
          "Yang et al., Embedding Entities and Relations for Learning and Inference in "
          "Knowledge Bases (ICLR 2015)",
      .relation_width = [](std::size_t dim) { return dim; },
      .make = [](const DecoderInput& input) -> Result<std::unique_ptr<PairDecoder>> {
        return std::make_unique<DistMultDecoder>(input.dim);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
