#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/job/safetensors.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The rows of a pair, and its type.
struct PairRows {
  const float* src = nullptr;  ///< [dim]
  const float* dst = nullptr;
  TypeId type = 0;
};

/// Computes the scores of pairs whose rows are in memory.
/// Threads: const; Score works on the calling thread.
class LinkScorer {
 public:
  /// `dim` is the width of rows; `decoder` has the weights of kDistMult and kMlp. Errors:
  /// kInvalidArgument, naming the tensor that is missing, superfluous or of a wrong shape.
  static Result<LinkScorer> Create(LinkScorerKind kind, std::uint64_t dim,
                                   const TensorFile& decoder);

  /// Returns the number of types that pairs may have, or nullopt if they may have any.
  std::optional<std::uint64_t> types() const;

  void Score(std::span<const PairRows> pairs, std::span<float> scores) const;

 private:
  LinkScorer() = default;
  Status TakeRelations(const TensorFile& decoder);
  Status TakeLayers(const TensorFile& decoder);
  void ScoreByLayers(std::span<const PairRows> pairs, std::span<float> scores) const;

  struct Layer {
    PackedWeight weight;
    torch::Tensor bias;  // [out]
  };
  LinkScorerKind kind_ = LinkScorerKind::kDot;
  std::size_t dim_ = 0;
  std::vector<float> relations_;  // [types, dim]
  std::vector<Layer> layers_;
};

}  // namespace internal
}  // namespace rhizome
