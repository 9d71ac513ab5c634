#include <fmt/format.h>

#include "gnn/links/decoder.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The score is -|a + r - b|. As a query for b, it is a + r; as a query for a, it is b - r.
class TransEDecoder final : public QueryDecoder {
 public:
  using QueryDecoder::QueryDecoder;

  void Query(const QueryRows& rows, float* query) const override {
    const float sign = SignOf(rows);
    for (std::size_t d = 0; d < dim(); ++d) query[d] = rows.given[d] + sign * rows.relation[d];
  }
  void AddQueryGradient(const QueryRows& rows, const float* query_gradient, float* given_gradient,
                        float* relation_gradient) const override {
    const float sign = SignOf(rows);
    for (std::size_t d = 0; d < dim(); ++d) {
      if (given_gradient != nullptr) given_gradient[d] += query_gradient[d];
      if (relation_gradient != nullptr) relation_gradient[d] += sign * query_gradient[d];
    }
  }

 private:
  static float SignOf(const QueryRows& rows) { return rows.open == EdgeEnd::kDst ? 1.0F : -1.0F; }
};

Result<Combination> NormOf(const TensorFile& file) {
  const auto found = file.metadata.find("norm");
  if (found == file.metadata.end() || found->second == "1") return Combination::kL1;
  if (found->second == "2")
    return RHIZOME_MUTANT("TransE takes L1 for L2") ? Combination::kL1 : Combination::kL2;
  return Fail(Status::InvalidArgument(
      fmt::format("the metadata field norm is '{}', but must be 1 or 2", found->second)));
}

}  // namespace

/// TransE: -|a + r - b|, in the L1 or L2 norm.
const DecoderKind& TransEDecoderKind() {
  static const DecoderKind kind{
      .name = "transe",
      .title = "negative L1 or L2 norm of a + r - b",
      .source =
          "Bordes et al., Translating Embeddings for Modeling Multi-relational Data "
          "(NeurIPS 2013)",
      .relation_width = [](std::size_t dim) { return dim; },
      .make = [](const DecoderInput& input) -> Result<std::unique_ptr<PairDecoder>> {
        RHIZOME_ASSIGN_OR_RETURN(const Combination norm, NormOf(input.file));
        return std::make_unique<TransEDecoder>(norm, input.dim);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
