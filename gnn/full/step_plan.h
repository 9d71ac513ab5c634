#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/full_graph_plan.h"
#include "rhizome/cache/planned_spill.h"
#include "rhizome/gnn/full_network.h"
#include "rhizome/gnn/graph_pass.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// The plan of a step, to learn or to measure. The sequence's arrays have the ids of scratch
/// arrays.
struct FullStepPlan {
  PassSequence sequence;
  FullGraphPlan plan;
  std::unique_ptr<PlannedSpill> spill;     // borrows `sequence`
  std::vector<std::uint64_t> block_bytes;  // [passes]
  std::uint64_t writer_bytes = 0;          // of chunks on their way to files, in every pass
};

/// Counts the chunks that gathers ask for, each once for a job. Gatherings of the same lists from
/// arrays of equal shape have one number.
class GatherCounts {
 public:
  /// `memory_bytes`: for what counting marks.
  GatherCounts(const PassGround& ground, std::uint64_t memory_bytes, const JobControl& control)
      : ground_(ground), memory_bytes_(memory_bytes), control_(control) {}

  /// Returns the number of a gathering, of an array or of the features. `apart`: a pass of several
  /// gatherings, whose numbers of blocks are its own; else empty.
  std::int32_t NumberOf(const PassGather& gather, const std::string& apart);

  /// Says which memory for a block leads to so many blocks. Returns what was said first.
  std::uint64_t BytesFor(std::int32_t gather, std::uint32_t blocks, std::uint64_t block_bytes);

  /// Says that Count will be asked for it: all that is wanted is counted together.
  void Want(std::int32_t gather, std::uint32_t blocks);

  /// Errors: those of CountGathers.
  Result<GatherReads> Count(std::uint32_t gather, std::uint32_t blocks);

  /// How a pass reads the features.
  struct FeatureReads {
    std::uint32_t in_order = 0;              ///< so many times
    std::vector<std::int32_t> gathers = {};  ///< by number
  };

  /// Returns the bytes of the features' files that a pass in so many blocks reads. Errors: those of
  /// Count.
  Result<std::uint64_t> BytesOfFeatures(const FeatureReads& reads, std::uint32_t blocks);

 private:
  struct Lists {
    PassGather gather;
    std::uint64_t dim = 0;
    std::string apart;
    std::map<std::uint32_t, std::uint64_t> block_bytes;           // by number of blocks
    std::map<std::uint32_t, std::optional<GatherReads>> counted;  // nothing: wanted
  };
  Status CountWanted();

  const PassGround& ground_;
  const std::uint64_t memory_bytes_;
  const JobControl& control_;
  std::vector<Lists> lists_;
};

/// Calls `use` for each pass of a step.
using ForStep = std::function<Status(const PassUser& use)>;

struct StepPlannerOptions {
  std::uint64_t capacity_bytes = 0;  ///< for passes and chunks that stay
  std::uint32_t threads = 1;
  SpillKind spill = SpillKind::kAuto;
  SumsRule sums = SumsRule::kAuto;
  std::optional<std::uint64_t> stored_sums = {};  ///< as in FullGraphOptions
};

/// Plans a step: records its passes, and how they may be cut; then counts and plans.
/// Ownership: borrows all that it is given.
class StepPlanner {
 public:
  StepPlanner(const PassGround& ground, const FullArrays& arrays,
              std::shared_ptr<GatherCounts> counts, const StepPlannerOptions& options);

  /// Records the passes where sums are stored and, if there is such a way, where they are gathered
  /// again. `recomputing` may be null. Errors: those of `storing`.
  Status Record(const ForStep& storing, const ForStep& recomputing);

  /// The pass that takes the most memory where all are cut into the most blocks; by kDpTensor with
  /// its arrays, which are whole then.
  struct Least {
    std::string pass;
    std::uint64_t bytes = 0;
  };
  Least least() const;

  /// Memory in which nothing has to move.
  std::uint64_t BytesForAll() const;

  /// Chooses the cuts that are planned with, and wants them counted. Before Plan.
  void Choose();

  /// Errors: those of PlanFullGraph.
  Result<std::unique_ptr<FullStepPlan>> Plan();

 private:
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
  Result<PassWay> WayOf(const Recorded& pass) const;

  const PassGround& ground_;
  std::vector<const ScratchArray*> arrays_;  // by id
  std::shared_ptr<GatherCounts> counts_;
  StepPlannerOptions options_;
  std::uint64_t writer_bytes_ = 0;
  std::vector<Recorded> storing_, recomputing_;
};

}  // namespace rhizome::inline internal
