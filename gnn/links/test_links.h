#pragma once

#include <cstdint>
#include <vector>

#include "gnn/links/link_table.h"
#include "rhizome/job_control.h"
#include "rhizome/link_scores.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// Checks the options of a test at the end of a training (LinkTrainOptions::test_edges). Errors:
/// kInvalidArgument, an option that it needs is not given, or that has no effect without it.
Status CheckTestOptions(const TrainOptions& options);

/// The test edges of a training on links. They are read and checked before the training, so that a
/// long training does not end with an error about its files, and ranked after it, by the code of
/// LinkScores::Evaluate.
/// Memory: 24 bytes for each edge of the files, which are held until the end.
class TestLinks {
 public:
  /// Reads the files `test_edges` and `valid`; without test edges, none. Errors: kInvalidArgument,
  /// there are no edges, or the graph has some of them (LinkTrainOptions::allow_leaked); errors of
  /// LinkFiles::Open.
  static Result<TestLinks> Read(const GraphSnapshot& graph, const LinkTrainOptions& link);

  bool empty() const { return test_.empty(); }

  /// Ranks the test edges by the published array `out_array` and the decoder of the file `out`,
  /// with the edges of `valid` as known edges. `held_bytes`: the part of
  /// ResourceOptions::memory_bytes that the training has not freed.
  /// Errors: as LinkScores::Evaluate.
  Result<LinkEvaluation> Rank(const TrainOptions& options, std::uint64_t held_bytes,
                              const JobControl& control) const;

  /// As Rank, by rows that are not an array of the store.
  Result<LinkEvaluation> RankBy(const LinkTable& table, const TrainOptions& options,
                                std::uint64_t held_bytes, const JobControl& control) const;

 private:
  Status CheckLeaks(const GraphSnapshot& graph) const;
  LinkEvaluationEdges Edges() const;

  std::vector<VertexPair> test_;
  std::vector<VertexPair> valid_;
};

}  // namespace internal
}  // namespace rhizome
