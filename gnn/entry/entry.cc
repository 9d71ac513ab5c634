#include "rhizome/entry.h"

#include "gnn/entry/probe_device.h"
#include "gnn/full_graph/train_full.h"
#include "gnn/infer/infer_array.h"
#include "gnn/infer/infer_worker.h"
#include "gnn/infer/plan_inference.h"
#include "gnn/link_train/train_links.h"
#include "gnn/links/rank_links.h"
#include "gnn/links/score_pairs.h"
#include "gnn/links/top_links.h"
#include "gnn/models/registry.h"
#include "gnn/ops/torch_guard.h"
#include "gnn/options/training_options.h"
#include "gnn/ranks/train_ranks.h"
#include "gnn/tables/plan_table.h"
#include "gnn/tables/train_table.h"
#include "gnn/train/train.h"
#include "gnn/train/typed_options.h"
#include "storage/store/build_id.h"
#include "storage/store/this_build.h"

namespace rhizome {
inline namespace internal {
namespace {

class Entry final : public GnnEntry {
 public:
  Result<TrainReport> Train(const TrainOptions& given, const JobControl& control) const override {
    if (given.model.kind == kTableModel) return TrainTable(given, control);
    return GuardedTorch([&]() -> Result<TrainReport> {
      RHIZOME_ASSIGN_OR_RETURN(const TrainOptions options, WithTypedDefaults(given));
      if (options.learning.task == Task::kLink) return TrainLinks(options, control);
      if (options.full_graph() != nullptr) return TrainFullGraph(options, control);
      return TransportOf(options) != nullptr ? TrainOverRanks(options, control)
                                             : TrainModel(options, control);
    });
  }
  Result<InferReport> Infer(const InferOptions& options, const JobControl& control) const override {
    return GuardedTorch([&] { return InferArray(options, control); });
  }
  Result<FullGraphReport> PlanTrain(const TrainOptions& given,
                                    const JobControl& control) const override {
    if (given.model.kind == kTableModel)
      return Fail(
          Status::Unsupported("`model=table` does not train on the full graph; use PlanTable"));
    return GuardedTorch([&]() -> Result<FullGraphReport> {
      RHIZOME_ASSIGN_OR_RETURN(const TrainOptions options, WithTypedDefaults(given));
      return PlanFullTraining(options, control);
    });
  }
  Result<TablePlan> PlanTable(const TrainOptions& options,
                              const JobControl& control) const override {
    return GuardedTorch([&] { return rhizome::PlanTable(options, control); });
  }
  std::vector<ModelInfo> Models() const override {
    std::vector<ModelInfo> models = DescribeModels();
    models.push_back(DescribeTableModel());
    return models;
  }
  Result<InferPlan> PlanInfer(const InferOptions& options,
                              const JobControl& control) const override {
    return GuardedTorch([&] { return PlanInference(options, control); });
  }
  Status ServeInfer(const InferOptions& options, std::uint64_t memory_bytes,
                    const JobControl& control) const override {
    const Result<bool> served = GuardedTorch([&]() -> Result<bool> {
      RHIZOME_RETURN_IF_ERROR(rhizome::ServeInfer(options, memory_bytes, control));
      return true;
    });
    return served ? Status::Ok() : served.error();
  }
  Result<DeviceProbe> ProbeDevice() const override {
    return GuardedTorch([] { return ProbeCudaDevice(); });
  }
};

class Scores final : public LinkScores {
 public:
  Result<LinkScoreReport> Score(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                const PairSource& source, const ScoreSink& sink,
                                const JobControl& control) const override {
    return GuardedTorch([&] { return ScorePairs(graph, options, source, sink, control); });
  }
  Result<LinkEvaluation> Evaluate(const GraphSnapshot& graph, const LinkEvaluationOptions& options,
                                  const LinkEvaluationEdges& edges,
                                  const JobControl& control) const override {
    return GuardedTorch([&] { return RankLinks(graph, options, edges, control); });
  }
  Result<TopLinksReport> Top(const GraphSnapshot& graph, const TopLinksOptions& options,
                             const VertexSource& source, const ScoreSink& sink,
                             const JobControl& control) const override {
    return GuardedTorch([&] { return FindTopLinks(graph, options, source, sink, control); });
  }
};

}  // namespace
}  // namespace internal
}  // namespace rhizome

// Returns null if librhizome is of another build, because this library shares classes with it.
extern "C" const rhizome::GnnEntry* rhizome_gnn_entry_v1() {
  static const rhizome::Entry entry;
  return rhizome::BuildId() == rhizome::kThisBuild ? &entry : nullptr;
}

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1() {
  static const rhizome::Scores scores;
  return rhizome::BuildId() == rhizome::kThisBuild ? &scores : nullptr;
}

extern "C" const char* rhizome_gnn_build_v1() { return rhizome::kThisBuild; }
