#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Operators and the tensors that they read and write, each tensor whole. At most 64 of either.
struct OpGraph {
  struct Tensor {
    std::string name;
    std::uint64_t bytes = 0;
  };
  struct Op {
    std::string name;
    std::vector<std::uint32_t> inputs;   ///< tensors
    std::vector<std::uint32_t> outputs;  ///< of no other operator
    std::uint64_t memory_bytes = 0;      ///< that it takes beside its tensors
  };
  std::vector<Tensor>
      tensors;          ///< those that no operator writes are in the slow tier from the start
  std::vector<Op> ops;  ///< in an order that can be run
};

struct TensorPlanOptions {
  std::uint64_t capacity_bytes = 0;
  bool free_order = false;            ///< any order of the operators, else the given one
  bool count_writes = true;           ///< false: as ROC (7.2), whose writes overlap computing
  std::size_t most_states = 200'000;  ///< of a step; beyond that, the best are kept
};

/// An operator as it is run.
struct TensorStep {
  std::uint32_t op = 0;
  std::vector<std::uint32_t> dropped;   ///< tensors that leave memory before it
  std::vector<std::uint32_t> written;   ///< those of them that are written first
  std::vector<std::uint32_t> read;      ///< inputs that are not in memory
  std::vector<std::uint32_t> resident;  ///< all that is in memory while it runs
};

struct TensorPlan {
  std::vector<TensorStep> steps;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  bool optimal = true;          ///< false: states were cut, and the plan is a bound from above
  std::size_t most_states = 0;  ///< of a step
  std::uint64_t all_states = 0;
};

/// Finds the plan that moves the fewest bytes between the tiers. An operator runs with its inputs
/// and outputs in memory; a tensor that is needed again and leaves memory for the first time is
/// written.
///
/// Source: ROC (MLSys 2020), section 5, Algorithm 1, with two corrections. Line 14 there drops the
/// inputs whose last use is the operator from what was in memory before, so that a cached last use
/// is charged as a read; and it charges no writes. Here states are (S, T, D): operators that ran,
/// tensors in memory, and those of them, D, that are nowhere else:
///
///   Cost(S + o, T2, D2) = min over K in T with size(K + IN(o) + OUT(o)) <= capacity of
///       Cost(S, T, D) + size(IN(o) - T) + size({t in D - K - IN(o): needed after S})
///   T2 = (K + IN(o) + OUT(o)) ∩ A(S + o),  D2 = (D + OUT(o)) ∩ T2
///
/// where A(S) is what operators outside S read. Of the sets K only those are tried to which no
/// tensor can be added: what is kept too long can leave later at the same cost.
///
/// Errors: kInvalidArgument, too many tensors or operators, an order that cannot be run, or a
/// tensor that is written twice; kOutOfMemory, the tensors of an operator do not fit: the message
/// names it.
Result<TensorPlan> PlanTensors(const OpGraph& graph, const TensorPlanOptions& options);

/// Bytes that are read where nothing stays in memory between operators.
std::uint64_t UncachedReads(const OpGraph& graph);

/// Bytes that are read where memory keeps the tensors that were used last, in the given order of
/// operators, each of which uses its inputs and then its outputs. `live`: tensors that are not
/// needed any more leave first. The tensors of every operator must fit.
std::uint64_t LruReads(const OpGraph& graph, std::uint64_t capacity_bytes, bool live);

}  // namespace rhizome::inline internal
