#include "gnn/infer/inference_workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
namespace {

using nlohmann::json;

std::string EncodeCosts(const InferLayerReport& report) {
  json facts = json::object();
  InferLayerCosts::Each([&](const char* name, const auto& figure) { facts[name] = figure; },
                        report);
  json costs = json::array();
  for (const InferLayerReport::Cost& cost : report.costs)
    costs.push_back({cost.begin, cost.end, cost.cpu_seconds});
  facts["costs"] = std::move(costs);
  return facts.dump();
}

/// Adds a child's report to `sum`.
Status AddCosts(std::string_view text, InferLayerReport& sum) {
  const json facts = ParseUntrustedJson(text);
  Status status;
  const auto add = [&](const char* name, auto& figure) {
    if (!facts.is_object() || !facts.contains(name) || !facts[name].is_number()) {
      status = Status::IoError(fmt::format("a worker did not report its {}", name));
    } else {
      figure += facts[name].template get<std::decay_t<decltype(figure)>>();
    }
  };
  InferLayerCosts::Each(add, sum);
  RHIZOME_RETURN_IF_ERROR(status);
  for (const json& cost : facts.value("costs", json::array())) {
    if (!cost.is_array() || cost.size() != 3 || !cost[0].is_number_unsigned() ||
        !cost[1].is_number_unsigned() || !cost[2].is_number())
      return Status::IoError("a worker did not report the costs of its ranges");
    sum.costs.push_back({cost[0], cost[1], cost[2]});
  }
  return Status::Ok();
}

std::string DescribeSilent(const std::string& workers) {
  if (workers.empty()) return {};
  return fmt::format(" ({} did not respond for {} s and was killed)", workers,
                     kMaxWorkerSilence.count());
}

}  // namespace

Result<std::unique_ptr<InferenceWorkers>> InferenceWorkers::Start(
    const std::vector<std::string>& command, std::uint32_t workers, WorkerRanges ranges,
    JobNote note) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> pool,
                           WorkerPool::Start(command, workers, {.note = std::move(note)}));
  return std::unique_ptr<InferenceWorkers>(
      new InferenceWorkers(std::move(pool), std::move(ranges)));
}

Result<InferLayerReport> InferenceWorkers::RunLayer(const LayerToCut& to_cut, LayerOutput& output,
                                                    InferenceLog& log, const JobControl& control) {
  InferLayerReport report;
  const std::uint32_t layer = to_cut.layer;
  RHIZOME_ASSIGN_OR_RETURN(std::vector<WorkerTask> tasks,
                           ranges_.Cut(to_cut, output.done(), pool_->alive(), control));
  const std::uint64_t total = output.done().size();
  const auto finished = [&](std::uint32_t, std::uint64_t chunk, std::string_view facts) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const DecodedFinished decoded, DecodeFinished(std::string(facts)));
    if (decoded.layer != layer || decoded.chunk != chunk) {
      return Status::IoError("a worker reported a chunk that it was not assigned");
    }
    RHIZOME_RETURN_IF_ERROR(output.Adopt(chunk, decoded.finished));
    RHIZOME_RETURN_IF_ERROR(log.Append(layer, chunk, decoded.finished));
    return control.Report({.phase = fmt::format("layer {}", layer + 1),
                           .done = output.adopted_chunks(),
                           .total = total,
                           .detail = {}});
  };
  const auto done = [&](std::uint32_t, std::string_view facts) { return AddCosts(facts, report); };
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<WorkerTask> left,
                           pool_->Run(std::move(tasks), finished, done, control));
  if (!left.empty()) {
    return Fail(
        Status::IoError(fmt::format("all {} workers have died, the last of them in layer {}{}; "
                                    "finished chunks are kept: continue with `resume`",
                                    pool_->died(), layer + 1, DescribeSilent(pool_->silenced()))));
  }
  RHIZOME_ASSIGN_OR_RETURN(report.ranges, ranges_.Learn(std::move(report.costs)));
  return report;
}

Status ServeInference(const RunTask& run) {
  return ServeTasks(
      STDIN_FILENO, STDOUT_FILENO,
      [&](const WorkerTask& task, const FinishedPiece& finished) -> Result<std::string> {
        ChunkProgress progress;
        progress.tell = [&](std::uint64_t chunk, const FinishedChunk& made) {
          return finished(chunk, EncodeFinished(task.stage, chunk, made));
        };
        RHIZOME_ASSIGN_OR_RETURN(const InferLayerReport report, run(task, std::move(progress)));
        return EncodeCosts(report);
      });
}

}  // namespace internal
}  // namespace rhizome
