#include "gnn/models/linear_conv.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

/// GCN: out = (sum over neighbours and itself of c_i c_j x_j) W^T + bias, c = 1/sqrt(degree + 1).
const ConvKind& GcnKind() {
  static const ConvKind kind{
      .info = {.name = "gcn",
               .title = "normalised sum over neighbours and the vertex itself",
               .source = "Kipf and Welling, Semi-Supervised Classification with Graph "
                         "Convolutional Networks (ICLR 2017)",
               .options = {}},
      .make = [](const ConvShape& shape, const ModelOptions&) -> Result<std::shared_ptr<Conv>> {
        return std::make_shared<LinearConv>(
            shape,
            ReducePiece{.by = Reduction::kSum,
                        .own_joins = !RHIZOME_MUTANT("gcn leaves the vertex out"),
                        .symmetric = true},
            LinearConv::OwnWeight::kNo);
      }};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
