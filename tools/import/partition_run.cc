#include "tools/import/partition_run.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cmath>
#include <fstream>
#include <utility>

#include "cache/job/process_memory.h"
#include "storage/base/stopwatch.h"
#include "tools/cli/cli.h"
#include "tools/cli/machine.h"

namespace rhizome {
namespace {

// Resets the kernel's peak of resident memory to what is resident now (proc(5), clear_refs).
// Returns whether that worked.
bool ResetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace

Result<PartitionRun> RunPartitioner(const PartitionInput& input, const PartitionOptions& options,
                                    const JobControl& control) {
  PartitionRun run;
  // Otherwise memory that was freed earlier would be reused and not be counted.
  malloc_trim(0);
  const bool reset = ResetPeak();
  const std::uint64_t before = ResidentBytes();
  const Stopwatch watch;
  const double cpu_start = ProcessCpuSeconds();
  RHIZOME_ASSIGN_OR_RETURN(run.partition_of_edge, PartitionEdges(input, options, control));
  run.cpu_seconds = ProcessCpuSeconds() - cpu_start;
  run.seconds = watch.seconds();
  if (reset) {
    const std::uint64_t peak = PeakResidentBytes();
    run.memory_bytes = peak > before ? peak - before : 0;
  }
  RHIZOME_ASSIGN_OR_RETURN(run.metrics,
                           MeasurePartition(input, run.partition_of_edge, options.partitions));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<PartitionId> owners,
                           ChooseOwners(input, run.partition_of_edge, options.partitions));
  RHIZOME_ASSIGN_OR_RETURN(run.owner_balance, OwnerBalance(owners, options.partitions));
  return run;
}

std::optional<std::string> BalanceWarning(const PartitionOptions& options, double vertex_balance,
                                          std::uint64_t edges, std::uint64_t vertices) {
  const bool bounded = options.kind == PartitionerKind::kRefined;
  if (!bounded || options.partitions == 1 || vertex_balance <= options.max_vertex_balance)
    return std::nullopt;
  return fmt::format(
      "vertex balance {:.3f} exceeds {:.3f}: {} edges between {} vertices are too few for {} "
      "balanced partitions; use fewer partitions",
      vertex_balance, options.max_vertex_balance, edges, vertices, options.partitions);
}

std::string MaxOverMinText(const nlohmann::ordered_json& number) {
  return number.is_number() && std::isfinite(number.get<double>())
             ? fmt::format("{:.3f}", number.get<double>())
             : "infinite";
}

nlohmann::ordered_json PartitionRunFields(const PartitionRun& run, std::uint64_t edges) {
  nlohmann::ordered_json fields = {
      {"replication_factor", run.metrics.replication_factor},
      {"vertex_balance", run.metrics.vertex_balance},
      {"edge_balance", run.metrics.edge_balance},
      {"vertex_max_over_min", run.metrics.vertex_max_over_min},
      {"edge_max_over_min", run.metrics.edge_max_over_min},
      {"interior_share", run.metrics.interior_share},
      {"owner_balance", run.owner_balance},
      {"seconds", run.seconds},
      {"cpu_seconds", run.cpu_seconds},
      {"cpu_per_second", run.seconds > 0 ? run.cpu_seconds / run.seconds : 0},
      {"edges_per_second", run.seconds > 0 ? static_cast<double>(edges) / run.seconds : 0},
      {"bytes_per_edge", nullptr}};
  if (run.memory_bytes && edges != 0)
    fields["bytes_per_edge"] = static_cast<double>(*run.memory_bytes) / static_cast<double>(edges);
  return fields;
}

}  // namespace rhizome
