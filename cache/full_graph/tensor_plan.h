#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Operators and the tensors that they read and write. Tensors are not divided. At most 64 of each.
struct OpGraph {
  struct Tensor {
    std::string name;
    std::uint64_t bytes = 0;
  };
  struct Op {
    std::string name;
    std::vector<std::uint32_t> inputs;   ///< tensors read
    std::vector<std::uint32_t> outputs;  ///< tensors written, by no other operator
    std::uint64_t memory_bytes = 0;      ///< working memory in addition to its tensors
  };
  std::vector<Tensor>
      tensors;          ///< tensors that no operator writes are in the slow tier at the start
  std::vector<Op> ops;  ///< in an executable order
};

struct TensorPlanOptions {
  std::uint64_t capacity_bytes = 0;
  bool free_order = false;           ///< any order of the operators, else the given one
  bool count_writes = true;          ///< false: as in ROC (7.2), where writes overlap computation
  std::size_t max_states = 200'000;  ///< per step; if exceeded, the best are kept
};

/// One executed operator.
struct TensorStep {
  std::uint32_t op = 0;
  std::vector<std::uint32_t> dropped;   ///< tensors that leave memory before it runs
  std::vector<std::uint32_t> written;   ///< dropped tensors that are written first
  std::vector<std::uint32_t> read;      ///< inputs that are not in memory
  std::vector<std::uint32_t> resident;  ///< all tensors in memory while it runs
};

struct TensorPlan {
  std::vector<TensorStep> steps;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  bool optimal = true;         ///< false: states were cut, and the plan is only an upper bound
  std::size_t max_states = 0;  ///< maximum over steps
  std::uint64_t all_states = 0;
};

/// Finds the plan that moves the fewest bytes between the tiers. An operator runs with its inputs
/// and outputs in memory. A tensor that is needed again is written when it leaves memory for the
/// first time.
///
/// Source: ROC (MLSys 2020), section 5, Algorithm 1, with two corrections. Line 14 of the algorithm
/// removes the inputs whose last use is the operator from the tensors that were in memory before,
/// so that a cached last use is charged as a read; and it does not charge writes. Here states are
/// (S, T, D): executed operators, tensors in memory, and the dirty ones D among them, which are
/// nowhere else:
///
///   Cost(S + o, T2, D2) = min over K in T with size(K + IN(o) + OUT(o)) <= capacity of
///       Cost(S, T, D) + size(IN(o) - T) + size({t in D - K - IN(o): needed after S})
///   T2 = (K + IN(o) + OUT(o)) ∩ A(S + o),  D2 = (D + OUT(o)) ∩ T2
///
/// where A(S) is the set of tensors that operators outside S read. Only maximal sets K are tried: a
/// tensor that is kept too long can leave later at the same cost.
///
/// Errors: kInvalidArgument, there are too many tensors or operators, the order cannot be executed,
/// or a tensor is written twice; kOutOfMemory, the tensors of an operator do not fit: the message
/// names it.
Result<TensorPlan> PlanTensors(const OpGraph& graph, const TensorPlanOptions& options);

/// Returns the bytes read if no tensor remains in memory between operators.
std::uint64_t UncachedReads(const OpGraph& graph);

/// Returns the bytes read if memory keeps the most recently used tensors, in the given order of
/// operators; each operator uses its inputs and then its outputs. `live`: tensors that are no
/// longer needed leave first. The tensors of every operator must fit.
std::uint64_t LruReads(const OpGraph& graph, std::uint64_t capacity_bytes, bool live);

}  // namespace internal
}  // namespace rhizome
