#pragma once

#include "cache/kernels/aggregate.h"
#include "gnn/ops/block_products.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// Multiplies the row of each group by the matrix of its relation and adds the products to the
/// group's target, in ascending order of relations: rows [groups, in] -> [targets, out]. Has
/// gradients with respect to rows and weight [relations, blocks, out / blocks, in / blocks]. Each
/// relation is one product of all its rows; the bits of a target depend only on its groups.
/// `groups` must outlive the backward pass. Uses the compute threads.
torch::Tensor RelationProducts(const torch::Tensor& rows, const GroupedLists& groups,
                               const torch::Tensor& weight);

/// Adds the same products to out [targets, out] on the calling thread, without gradients.
void AddRelationProducts(const torch::Tensor& rows, const GroupedLists& lists,
                         const PackedClasses& weight, torch::Tensor& out);

}  // namespace internal
}  // namespace rhizome
