#include "rhizome/gnn/entry.h"

#include <torch/torch.h>

#include <new>
#include <string>
#include <utility>

#include "rhizome/gnn/bench_aggregate.h"
#include "rhizome/gnn/infer.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/safetensors.h"
#include "rhizome/gnn/score_pairs.h"
#include "rhizome/gnn/train.h"
#include "rhizome/storage/exceptions.h"

namespace rhizome {
namespace {

/// Runs a verb; what libtorch throws ends here, so that no exception leaves the library.
template <typename Run>
auto GuardedVerb(const Run& run) -> decltype(run()) {
  return Guarded([&]() -> decltype(run()) {
    try {
      return run();
    } catch (const std::bad_alloc&) {
      return Fail(Status::OutOfMemory("out of memory; make batch, fanout or cache smaller"));
    } catch (const c10::Error& error) {
      std::string text = std::string("libtorch: ") + error.what_without_backtrace();
      if (text.find("allocate memory") != text.npos || text.find("not enough memory") != text.npos)
        return Fail(Status::OutOfMemory(std::move(text)));
      return Fail(Status::IoError(std::move(text)));
    }
  });
}

class Entry final : public GnnEntry {
 public:
  Result<TrainReport> Train(const TrainOptions& options, const JobControl& control) const override {
    return GuardedVerb([&] { return TrainModel(options, control); });
  }
  Result<InferReport> Infer(const InferOptions& options, const JobControl& control) const override {
    return GuardedVerb([&] { return InferArray(options, control); });
  }
  Result<InferPlan> PlanInfer(const InferOptions& options,
                              const JobControl& control) const override {
    return GuardedVerb([&] { return PlanInference(options, control); });
  }
};

class Bench final : public GnnBench {
 public:
  Result<AggregateBenchReport> Aggregate(const AggregateBenchOptions& options,
                                         const JobControl& control) const override {
    return GuardedVerb([&] { return BenchAggregateKernels(options, control); });
  }
  Result<StepBenchReport> Step(const Graph& graph, const StepBenchOptions& options,
                               const JobControl& control) const override {
    return GuardedVerb([&] { return BenchTrainingStep(graph, options, control); });
  }
  Result<double> Products(const ProductBenchOptions& options,
                          const JobControl& control) const override {
    return GuardedVerb([&] { return BenchProducts(options, control); });
  }
  Status SaveModel(const ModelSpec& spec, std::int64_t inputs, std::uint64_t seed,
                   const Path& path) const override {
    const auto saved = GuardedVerb([&]() -> Result<bool> {
      RHIZOME_ASSIGN_OR_RETURN(const Model model,
                               Model::Create({.spec = spec, .inputs = inputs, .classes = 2}, seed));
      RHIZOME_RETURN_IF_ERROR(SaveSafetensors(path, model.ToFile()));
      return true;
    });
    return saved ? Status::Ok() : saved.error();
  }
};

class Scores final : public LinkScores {
 public:
  Result<LinkScoreReport> Score(const Graph& graph, const LinkScoreOptions& options,
                                const PairSource& source, const ScoreSink& sink,
                                const JobControl& control) const override {
    return GuardedVerb([&] { return ScorePairs(graph, options, source, sink, control); });
  }
};

}  // namespace
}  // namespace rhizome

extern "C" const rhizome::GnnEntry* rhizome_gnn_entry_v1() {
  static const rhizome::Entry entry;
  return &entry;
}

extern "C" const rhizome::GnnBench* rhizome_gnn_bench_v1();
extern "C" const rhizome::GnnBench* rhizome_gnn_bench_v1() {
  static const rhizome::Bench bench;
  return &bench;
}

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1() {
  static const rhizome::Scores scores;
  return &scores;
}
