#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/planned_spill.h"
#include "gnn/full_graph/full_network.h"
#include "gnn/passes/graph_pass.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// The plan of a training or evaluation step. Arrays in `sequence` have the ids of the scratch
/// arrays.
struct FullStepPlan {
  PassSequence sequence;
  FullGraphPlan plan;
  std::unique_ptr<PlannedSpill> spill;     // borrows `sequence`
  std::vector<std::uint64_t> block_bytes;  // [passes] memory for a block's sums and lists
  std::uint64_t writer_bytes = 0;          // chunks that wait to be written, in any pass
};

/// Counts the chunks that the aggregations of a job read, once for each aggregation and number of
/// blocks. Aggregations over the same lists from arrays of equal shape share a number.
class GatherCounts {
 public:
  /// `memory_bytes`: for the marks of counting.
  GatherCounts(const PassContext& ground, std::uint64_t memory_bytes, const JobControl& control)
      : ground_(ground), memory_bytes_(memory_bytes), control_(control) {}

  /// Returns the number of an aggregation, over an array or over the features. `apart`: the name of
  /// a pass with several aggregations, which has its own numbers of blocks and so its own counts;
  /// else empty.
  std::int32_t NumberOf(const PassGather& gather, const std::string& apart);

  /// Sets the memory for a block with which an aggregation has `blocks` blocks. Returns the value
  /// that was set first.
  std::uint64_t BytesFor(std::int32_t gather, std::uint32_t blocks, std::uint64_t block_bytes);

  /// Announces a call of Count. All announced calls are counted together.
  void Want(std::int32_t gather, std::uint32_t blocks);

  /// Returns the chunks that an aggregation reads in `blocks` blocks. Errors: errors of
  /// CountGathers.
  Result<GatherReads> Count(std::uint32_t gather, std::uint32_t blocks);

  /// How a pass reads the features.
  struct FeatureReads {
    std::uint32_t in_order = 0;              ///< number of reads in order
    std::vector<std::int32_t> gathers = {};  ///< numbers of the aggregations
  };

  /// Returns the bytes of the features' files that a pass of `blocks` blocks reads. Errors: errors
  /// of Count.
  Result<std::uint64_t> BytesOfFeatures(const FeatureReads& reads, std::uint32_t blocks);

 private:
  struct Lists {
    PassGather gather;
    std::uint64_t dim = 0;
    std::string apart;
    std::map<std::uint32_t, std::uint64_t> block_bytes;           // by number of blocks
    std::map<std::uint32_t, std::optional<GatherReads>> counted;  // nullopt: announced
  };
  Status CountWanted();

  const PassContext& ground_;
  const std::uint64_t memory_bytes_;
  const JobControl& control_;
  std::vector<Lists> lists_;
};

/// A function that calls `use` for each pass of a step.
using ForStep = std::function<Status(const PassUser& use)>;

struct StepPlannerOptions {
  std::uint64_t capacity_bytes = 0;  ///< for passes, and chunks that stay in memory
  std::uint32_t threads = 1;
  SpillKind spill = SpillKind::kAuto;
  SumsRule sums = SumsRule::kAuto;
  std::optional<std::uint64_t> stored_sums = {};  ///< as in FullGraphPlanOptions
};

/// Plans a step: Record the passes and the ways to cut them into blocks, Choose the cuts to plan
/// with, then Plan.
/// Ownership: borrows all arguments.
class StepPlanner {
 public:
  StepPlanner(const PassContext& ground, const FullArrays& arrays,
              std::shared_ptr<GatherCounts> counts, const StepPlannerOptions& options);

  /// Records the passes of the step with stored sums and, if `recomputing` is not null, of the step
  /// with recomputed sums. Errors: errors of `storing` and `recomputing`.
  Status Record(const ForStep& storing, const ForStep& recomputing);

  /// The pass that needs the most memory when all passes are cut into the maximum number of blocks.
  /// With kDpTensor this includes the pass's arrays, which are then whole in memory.
  struct Least {
    std::string pass;
    std::uint64_t bytes = 0;
  };
  Least least() const;

  /// Returns the memory with which no chunk has to be moved.
  std::uint64_t BytesForAll() const;

  /// Chooses the cuts that Plan considers, and announces them to GatherCounts. Call it before Plan.
  void Choose();

  /// Plans the step. Errors: errors of PlanFullGraph and of GatherCounts::Count.
  Result<std::unique_ptr<FullStepPlan>> Plan();

 private:
  /// A way to cut a pass into blocks.
  struct Cut {
    std::uint64_t block_bytes = 0;
    BlockChoice blocks;
  };
  struct Recorded {
    std::string name;
    std::vector<PassRead> reads;
    GatherCounts::FeatureReads features;
    std::vector<ArrayId> writes;
    std::vector<Cut> cuts;  // fewer blocks first
    std::function<Cut(std::uint64_t block_bytes)> cut_with = {};
  };
  Recorded RecordPass(const GraphPass& pass);
  Cut CutWith(const GraphPass& pass, std::int32_t gather, std::uint64_t block_bytes);
  std::vector<Cut> CutsOf(const Recorded& pass, bool gathers) const;
  void SayBytes(const Recorded& pass, const Cut& cut) const;
  std::uint64_t WholeBytes(const Recorded& pass) const;
  void AddFewestBlocks(Recorded& pass) const;
  void ChooseCuts(Recorded& pass, bool all_fits) const;
  void Want(const Recorded& pass) const;
  bool Fits(const Cut& cut) const { return cut.blocks.memory_bytes <= options_.capacity_bytes; }
  std::optional<ArrayId> SumsOf(std::size_t pass) const;
  Result<PassMethod> WayOf(const Recorded& pass) const;

  const PassContext& ground_;
  std::vector<const ScratchArray*> arrays_;  // by id
  std::shared_ptr<GatherCounts> counts_;
  StepPlannerOptions options_;
  std::uint64_t writer_bytes_ = 0;
  std::vector<Recorded> storing_, recomputing_;
};

}  // namespace internal
}  // namespace rhizome
