#include "full_graph_report.h"
#include "gnn_flags.h"
#include "gnn_library.h"
#include "train_flags.h"
#include "verb_plan.h"
#include "verbs.h"

namespace rhizome {
namespace {

Result<Answer> RunPlanTrain(const TrainFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(TrainOptions options, CompleteTrainOptions(flags));
  if (!options.full_graph) {
    return Fail(
        Status::InvalidArgument("only training on the full graph is planned: give --full-graph"));
  }
  options.out.clear();
  RHIZOME_ASSIGN_OR_RETURN(const GnnEntry* const gnn, LoadGnnLibrary());
  RHIZOME_ASSIGN_OR_RETURN(const FullGraphReport plan, gnn->PlanTrain(options, session.control));
  Answer answer{Json::object(), DescribeFullGraphPlan, {}};
  AddFullGraphPlan(plan, answer.fields);
  return answer;
}

}  // namespace

void AddPlanTrain(CLI::App& plan, Session& session) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb =
      AddVerb(plan, session, "train", "Passes, bytes and memory of an epoch on the full graph",
              "rhizome plan train demo.rz --full-graph --model gcn --layers 3 --memory 512M", flags,
              RunPlanTrain);
  AddTrainFlags(*verb, *flags);
}

}  // namespace rhizome
