// The plan of a training of a table: (1) opens what TrainTable opens; (2) divides the memory in the
// same way; (3) makes the batches of one or two epochs, and replays the cache's schedule.

#include "gnn/tables/plan_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/job/process_memory.h"
#include "cache/tables/table_replay.h"
#include "gnn/tables/publish_table.h"
#include "gnn/tables/table_job.h"
#include "gnn/tables/table_memory.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Epochs that are replayed: the first one, whose cache is empty at the start, and one more.
constexpr std::uint64_t kEpochs = 2;

/// Checks that the disk of the job has space for the table.
Status CheckDisk(const TableJob& job, TablePlan& plan) {
  FileSystem& fs = job.store->fs();
  Path folder = job.store->scratch();
  while (!folder.empty() && !fs.Stat(folder)) folder = folder.parent_path();
  RHIZOME_ASSIGN_OR_RETURN(plan.free_bytes, fs.FreeBytes(folder.empty() ? Path(".") : folder));
  if (plan.free_bytes >= plan.disk_bytes) return Status::Ok();
  return Status::OutOfSpace(fmt::format(
      "the table of {} rows of {} bytes needs {} bytes in {}, twice its size, but {} are free; "
      "free "
      "disk space, or put `scratch` on another disk",
      plan.rows, plan.row_bytes, plan.disk_bytes, job.store->scratch().string(), plan.free_bytes));
}

Result<std::vector<TableEpochPlan>> ReplayEpochs(const TableJob& job, std::uint64_t epochs,
                                                 const TableMemory& memory,
                                                 const JobControl& control) {
  LinkBatches& batches = *job.batches;
  TableReplay replay(memory.cached_rows, batches.table_order().size());
  std::vector<TableEpochPlan> plans;
  TableReplayCounts before;
  LinkBatch batch;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t done = 0; done < batches.batches();) {
      const std::uint64_t end = std::min(done + memory.lookahead, batches.batches());
      Trace trace;
      for (; done < end; ++done) {
        RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "plan",
                                                .done = epoch * batches.batches() + done,
                                                .total = epochs * batches.batches()}));
        RHIZOME_RETURN_IF_ERROR(batches.Make(epoch, done, batch));
        trace.AddStep(batch.rows);
      }
      RHIZOME_RETURN_IF_ERROR(replay.Add(trace));
    }
    const TableReplayCounts& now = replay.counts();
    plans.push_back({.rows_requested = now.rows_requested - before.rows_requested,
                     .rows_read = now.rows_read - before.rows_read,
                     .rows_written = now.rows_written - before.rows_written});
    before = now;
  }
  return plans;
}

/// Advises more partitions if the table exceeds the memory and the store has one.
void AdvisePartitions(const TableJob& job, TablePlan& plan) {
  if (job.graph->partition_count() == 1 && plan.cached_rows < plan.rows) {
    plan.notes.push_back(fmt::format(
        "the store has one partition, so an epoch needs its rows in random order, and {} of {} fit "
        "in memory; with more partitions, batches visit one after another, and a row is read about "
        "as often as partitions share it: repartition it when it is compacted, by `partitions={}`",
        plan.cached_rows, plan.rows,
        std::clamp<std::uint64_t>(4 * plan.rows / std::max<std::uint64_t>(plan.cached_rows, 1), 8,
                                  256)));
  }
}

}  // namespace

Result<TablePlan> PlanTable(const TrainOptions& options, const JobControl& control) {
  const std::uint64_t base_bytes = ResidentBytes();
  RHIZOME_ASSIGN_OR_RETURN(const TableJob job, OpenTableJob(options));
  const RowTableOptions table = ShapeOfTable(job);
  TablePlan plan;
  plan.rows = table.rows;
  plan.dim = job.dim();
  plan.relations = job.step.relation_width == 0 ? 0 : job.step.relations;
  plan.partitions = job.graph->partition_count();
  plan.batches = job.batches->batches();
  plan.row_bytes = table.row_bytes;
  plan.table_bytes = table.rows * table.row_bytes;
  plan.disk_bytes = RowTable::DiskBytes(table.rows, table.row_bytes);
  RHIZOME_RETURN_IF_ERROR(CheckDisk(job, plan));
  RHIZOME_ASSIGN_OR_RETURN(const TableMemory memory,
                           DivideTableMemory(job, table, options.resources, HeldBytes(base_bytes)));
  plan.memory_bytes = options.resources.memory_bytes;
  plan.least_memory_bytes = memory.least_bytes;
  plan.all_memory_bytes = memory.all_bytes;
  plan.held_bytes = memory.held_bytes;
  plan.fixed_bytes = memory.fixed_bytes;
  plan.lookahead = memory.lookahead;
  plan.lookahead_bytes = memory.lookahead_bytes;
  plan.cache_bytes = memory.cache_bytes;
  plan.cached_rows = memory.cached_rows;
  AdvisePartitions(job, plan);
  plan.warnings = job.warnings;
  RHIZOME_ASSIGN_OR_RETURN(
      plan.epochs, ReplayEpochs(job, std::min<std::uint64_t>(kEpochs, options.learning.epochs),
                                memory, control));
  return plan;
}

}  // namespace internal
}  // namespace rhizome
