#include "rhizome/gnn/inference_workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/untrusted_json.h"

namespace rhizome {
namespace {

using nlohmann::json;

std::string EncodeReport(const InferLayerReport& report) {
  const json facts = {{"requests", report.chunk_requests},
                      {"reads", report.chunk_reads},
                      {"bytes", report.bytes_read},
                      {"written", report.bytes_written},
                      {"plan", report.plan_seconds},
                      {"read", report.read_seconds},
                      {"copy", report.copy_seconds},
                      {"fill", report.fill_seconds},
                      {"model", report.model_seconds},
                      {"sum", report.sum_seconds},
                      {"write", report.write_seconds},
                      {"hits", report.hit_rate * static_cast<double>(report.chunk_requests)},
                      {"computed", report.computed},
                      {"blocks", report.blocks}};
  return facts.dump();
}

/// Adds a child's report; `hit_rate` is a count of hits until all are added.
Status AddReport(std::string_view text, InferLayerReport& sum) {
  const json facts = ParseUntrustedJson(text);
  for (const char* field : {"requests", "reads", "bytes", "written", "plan", "read", "copy", "fill",
                            "model", "sum", "write", "hits", "computed", "blocks"}) {
    if (!facts.is_object() || !facts.contains(field) || !facts[field].is_number()) {
      return Status::IoError(fmt::format("a worker did not say its {}", field));
    }
  }
  sum.chunk_requests += facts["requests"].get<std::uint64_t>();
  sum.chunk_reads += facts["reads"].get<std::uint64_t>();
  sum.bytes_read += facts["bytes"].get<std::uint64_t>();
  sum.bytes_written += facts["written"].get<std::uint64_t>();
  sum.plan_seconds += facts["plan"].get<double>();
  sum.read_seconds += facts["read"].get<double>();
  sum.copy_seconds += facts["copy"].get<double>();
  sum.sum_seconds += facts["sum"].get<double>();
  sum.fill_seconds += facts["fill"].get<double>();
  sum.model_seconds += facts["model"].get<double>();
  sum.write_seconds += facts["write"].get<double>();
  sum.hit_rate += facts["hits"].get<double>();
  sum.computed += facts["computed"].get<std::uint64_t>();
  sum.blocks += facts["blocks"].get<std::uint64_t>();
  return Status::Ok();
}

}  // namespace

std::vector<WorkerTask> TasksOfLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                     const LayerOutput& output, std::uint32_t workers) {
  const std::vector<bool>& done = output.done();
  const auto open = static_cast<std::uint64_t>(std::count(done.begin(), done.end(), false));
  const bool by_owner = graph.partition_count() >= workers;
  const std::uint64_t most = by_owner ? open : (open + workers - 1) / std::max(workers, 1U);
  const auto owner_of = [&](std::uint64_t chunk) {
    const std::uint64_t row = chunk * output.entry().chunk_rows;
    return row < graph.order().size() ? graph.order().OwnerOf(static_cast<Row>(row))
                                      : graph.partition_count() - 1;
  };
  std::vector<WorkerTask> tasks;
  for (std::uint64_t chunk = 0; chunk < done.size(); ++chunk) {
    if (done[chunk]) continue;
    const bool goes_on = !tasks.empty() && tasks.back().end == chunk &&
                         chunk - tasks.back().begin < most &&
                         (!by_owner || owner_of(chunk) == owner_of(chunk - 1));
    if (!goes_on) tasks.push_back({.stage = layer, .begin = chunk, .end = chunk});
    ++tasks.back().end;
  }
  return tasks;
}

Result<std::unique_ptr<InferenceWorkers>> InferenceWorkers::Start(
    const std::vector<std::string>& command, std::uint32_t workers) {
  RHIZOME_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> pool, WorkerPool::Start(command, workers));
  return std::unique_ptr<InferenceWorkers>(new InferenceWorkers(std::move(pool)));
}

Result<InferLayerReport> InferenceWorkers::RunLayer(const GraphSnapshot& graph, std::uint32_t layer,
                                                    LayerOutput& output, InferenceLog& log,
                                                    const JobControl& control) {
  InferLayerReport report;
  std::vector<WorkerTask> tasks = TasksOfLayer(graph, layer, output, pool_->alive());
  const std::uint64_t total = output.done().size();
  const auto finished = [&](std::uint32_t, std::uint64_t chunk, std::string_view facts) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const DecodedFinished decoded, DecodeFinished(std::string(facts)));
    if (decoded.layer != layer || decoded.chunk != chunk) {
      return Status::IoError("a worker told of another chunk than it was asked for");
    }
    RHIZOME_RETURN_IF_ERROR(output.Adopt(chunk, decoded.finished));
    RHIZOME_RETURN_IF_ERROR(log.Append(layer, chunk, decoded.finished));
    return control.Report({.phase = fmt::format("layer {}", layer + 1),
                           .done = output.adopted_chunks(),
                           .total = total,
                           .detail = {}});
  };
  const auto done = [&](std::uint32_t, std::string_view facts) { return AddReport(facts, report); };
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<WorkerTask> left,
                           pool_->Run(std::move(tasks), finished, done, control));
  if (!left.empty()) {
    return Fail(Status::IoError(
        fmt::format("all {} workers have died, the last of them in layer {}; what was finished is "
                    "kept: go on with --resume",
                    pool_->died(), layer + 1)));
  }
  if (report.chunk_requests > 0) report.hit_rate /= static_cast<double>(report.chunk_requests);
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
        return EncodeReport(report);
      });
}

}  // namespace rhizome
