#include <algorithm>

#include "gnn/links/decoder.h"

namespace rhizome {
inline namespace internal {
namespace {

class DotDecoder final : public QueryDecoder {
 public:
  explicit DotDecoder(std::size_t dim) : QueryDecoder(Combination::kDot, dim) {}

  void Query(const QueryRows& rows, float* query) const override {
    std::copy_n(rows.given, dim(), query);
  }
  void AddQueryGradient(const QueryRows&, const float* query_gradient, float* given_gradient,
                        float*) const override {
    if (given_gradient == nullptr) return;
    for (std::size_t d = 0; d < dim(); ++d) given_gradient[d] += query_gradient[d];
  }
};

}  // namespace

/// Dot product: sum of a_i b_i.
const DecoderKind& DotDecoderKind() {
  static const DecoderKind kind{
      .name = "dot",
      .title = "dot product of the rows; relations have no effect",
      .source = "",
      .make = [](const DecoderInput& input) -> Result<std::unique_ptr<PairDecoder>> {
        return std::make_unique<DotDecoder>(input.dim);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
