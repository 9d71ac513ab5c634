#include "cuda/long_lists.h"
#include "gnn/ops/aggregate_ops.h"

namespace rhizome {
inline namespace internal {

const TransposedCsr& AggregateLists::turned() const {
  if (!is_turned_) turned_ = Turn(csr_, static_cast<std::size_t>(sources_));
  is_turned_ = true;
  return turned_;
}

std::span<const float> AggregateLists::turned_weights() const {
  if (turned_weights_.size() == weights_.size()) return turned_weights_;
  const std::vector<std::uint32_t>& edges = turned().edges;
  turned_weights_.resize(weights_.size());
  for (std::size_t e = 0; e < edges.size(); ++e) turned_weights_[e] = weights_[edges[e]];
  return turned_weights_;
}

void AggregateLists::PlaceOn(DeviceUploads& uploads, const CsrView& csr,
                             std::span<const float> weights, const PlacedLongLists& long_lists) {
  uploads_ = &uploads;
  placed_ = {.csr = csr, .weights = weights, .long_lists = long_lists};
}

AggregateLists::Turned AggregateLists::placed_transpose() const {
  const Turned here{
      .csr = turned().lists.view(), .edges = turned().edges, .weights = turned_weights()};
  if (uploads_ == nullptr) return here;
  if (placed_.memory.defined()) return placed_.turned;
  PackedArrays packed;
  packed.Add(here.csr.offsets);
  packed.Add(here.csr.neighbors);
  packed.Add(here.edges);
  packed.Add(here.weights);
  const LongLists found = FindLongLists(here.csr.offsets);
  const std::span<const cuda::ListPiece> pieces(found.pieces);
  packed.Add(pieces);
  packed.Send(*uploads_);
  placed_.memory = packed.memory();
  placed_.turned = {
      .csr = {.offsets = packed.Of(here.csr.offsets), .neighbors = packed.Of(here.csr.neighbors)},
      .edges = packed.Of(here.edges),
      .weights = packed.Of(here.weights),
      .long_lists = {packed.Of(pieces), found.longest, found.partial_count}};
  return placed_.turned;
}

}  // namespace internal
}  // namespace rhizome
