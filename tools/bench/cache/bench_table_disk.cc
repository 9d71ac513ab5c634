#include "tools/bench/cache/bench_table_disk.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cache/tables/row_optimizer.h"
#include "cache/tables/row_table.h"
#include "cache/tables/table_cache.h"
#include "storage/base/mix.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/cache/bench_tables.h"
#include "tools/cli/scratch_folder.h"

// Steps: (1) create a table for each measurement; (2) run all epochs of the traces through a
// TableCache and time those after the first one; (3) carry out BETA's swaps: write one part, read
// another.

namespace rhizome {
namespace {

/// Seconds and requests of an epoch.
struct EpochCost {
  double seconds = 0;
  double wait_seconds = 0;
  RowTableStats table;

  /// Adds the figures, per epoch, to `fields`, with names that begin with `prefix`.
  void AddTo(Json& fields, const std::string& prefix, double epochs) const {
    const auto add = [&](const char* name, auto figure) {
      fields[prefix + name] = static_cast<double>(figure) / epochs;
    };
    add("seconds", seconds);
    add("wait_seconds", wait_seconds);
    add("rows_read", table.rows_read);
    add("read_bytes", table.read_bytes);
    add("reads", table.reads);
    add("write_bytes", table.write_bytes);
    add("writes", table.writes);
    add("completed_blocks", table.completed_blocks);
  }
};

RowTableStats operator-(RowTableStats a, const RowTableStats& b) {
  a.rows_read -= b.rows_read;
  a.rows_written -= b.rows_written;
  a.reads -= b.reads;
  a.read_bytes -= b.read_bytes;
  a.writes -= b.writes;
  a.write_bytes -= b.write_bytes;
  a.completed_blocks -= b.completed_blocks;
  return a;
}

Result<std::unique_ptr<RowTable>> MakeTable(const ScratchFolder& scratch,
                                            const TableDiskOptions& options,
                                            const RowOptimizer& optimizer) {
  const auto fill = [](std::uint64_t row, std::span<std::byte> bytes) {
    const std::span<float> values(reinterpret_cast<float*>(bytes.data()),
                                  bytes.size() / (2 * sizeof(float)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(SplitMix64(row, i) >> 40) * 0x1p-24F;
  };
  RHIZOME_ASSIGN_OR_RETURN(
      auto table,
      RowTable::Create(FileSystem::Posix(), scratch.path(), "table",
                       {.rows = options.rows, .row_bytes = optimizer.row_floats() * sizeof(float)},
                       fill));
  RHIZOME_RETURN_IF_ERROR(table->Checkpoint({}));
  return table;
}

Result<EpochCost> MeasureCache(const TableDiskOptions& options, const RowOptimizer& optimizer,
                               std::unique_ptr<RowTable> table, std::uint64_t cached_rows,
                               const std::vector<Trace>& traces, const JobControl& control) {
  const std::size_t row_bytes = table->row_bytes();
  const std::uint64_t memory = TableCache::BytesFor(cached_rows, row_bytes, options.max_step_rows);
  RHIZOME_ASSIGN_OR_RETURN(
      const auto cache,
      TableCache::Open(std::move(table),
                       {.memory_bytes = memory, .max_step_rows = options.max_step_rows}));
  std::vector<float> gradients(options.max_step_rows * options.dim, 1e-3F);
  EpochCost cost;
  std::uint64_t step = 0;
  Stopwatch watch;
  for (std::size_t epoch = 0; epoch < traces.size(); ++epoch) {
    if (epoch == 1) {
      cost.table = cache->table_stats();
      cost.wait_seconds = cache->stats().wait_seconds;
      watch = Stopwatch();
    }
    RHIZOME_RETURN_IF_ERROR(cache->Start(traces[epoch]));
    TableRows rows;
    while (cache->steps_left() > 0) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_RETURN_IF_ERROR(cache->Acquire(rows));
      RHIZOME_RETURN_IF_ERROR(cache->Update(
          optimizer, ++step, std::span<const float>(gradients).first(rows.size() * options.dim)));
      RHIZOME_RETURN_IF_ERROR(cache->Release());
    }
  }
  cost.table = cache->table_stats() - cost.table;
  cost.seconds = watch.seconds();
  cost.wait_seconds = cache->stats().wait_seconds - cost.wait_seconds;
  return cost;
}

/// Carries out an epoch of BETA: fills the buffer, then writes and reads one part for each swap,
/// and writes the buffer.
Result<EpochCost> MeasureBeta(const TableDiskOptions& options, RowTable& table, std::uint32_t parts,
                              std::uint32_t buffer, const JobControl& control) {
  const auto begin_of = [&](std::uint32_t part) { return options.rows * part / parts; };
  std::uint64_t most = 0;
  for (std::uint32_t part = 0; part < parts; ++part)
    most = std::max(most, begin_of(part + 1) - begin_of(part));
  std::vector<std::byte> memory(most * table.row_bytes());
  const auto transfer = [&](std::uint32_t part, bool write) {
    std::vector<RowTarget> targets;
    std::vector<RowWrite> writes;
    std::byte* at = memory.data();
    for (std::uint64_t row = begin_of(part); row < begin_of(part + 1); ++row) {
      if (write) writes.push_back({static_cast<Row>(row), at});
      if (!write) targets.push_back({static_cast<Row>(row), at});
      at += table.row_bytes();
    }
    return write ? table.Write(writes) : table.Read(targets);
  };
  const RowTableStats before = table.stats();
  const Stopwatch watch;
  for (std::uint32_t part = 0; part < buffer; ++part)
    RHIZOME_RETURN_IF_ERROR(transfer(part, false));
  for (const BetaSwap& swap : BetaOrder(parts, buffer)) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(transfer(swap.out, true));
    RHIZOME_RETURN_IF_ERROR(transfer(swap.in, false));
  }
  for (std::uint32_t part = 0; part < buffer; ++part) RHIZOME_RETURN_IF_ERROR(transfer(part, true));
  return EpochCost{watch.seconds(), watch.seconds(), table.stats() - before};
}

}  // namespace

Result<Json> MeasureTables(const TableDiskOptions& options, const std::vector<Trace>& traces,
                           const std::vector<std::uint32_t>& beta_parts,
                           const JobControl& control) {
  const RowOptimizer optimizer({.kind = RowOptimizerKind::kAdagrad}, options.dim);
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(options.dir));
  const auto epochs = static_cast<double>(traces.size() - 1);
  const auto measure = [&](std::uint64_t cached_rows) -> Result<EpochCost> {
    RHIZOME_ASSIGN_OR_RETURN(auto table, MakeTable(scratch, options, optimizer));
    return MeasureCache(options, optimizer, std::move(table), cached_rows, traces, control);
  };
  RHIZOME_ASSIGN_OR_RETURN(const EpochCost in_memory, measure(options.rows));
  Json shares = Json::array();
  for (std::size_t i = 0; i < options.shares.size(); ++i) {
    const double share = options.shares[i];
    RHIZOME_ASSIGN_OR_RETURN(
        const EpochCost cached,
        measure(static_cast<std::uint64_t>(share * static_cast<double>(options.rows))));
    RHIZOME_ASSIGN_OR_RETURN(const auto table, MakeTable(scratch, options, optimizer));
    const auto buffer = static_cast<std::uint32_t>(share * beta_parts[i] + 1e-9);
    RHIZOME_ASSIGN_OR_RETURN(const EpochCost beta,
                             MeasureBeta(options, *table, beta_parts[i], buffer, control));
    Json row = {{"share", share},
                {"seconds_over_beta", cached.seconds / epochs / beta.seconds},
                {"seconds_over_memory", cached.seconds / in_memory.seconds}};
    cached.AddTo(row, "", epochs);
    beta.AddTo(row, "beta_", 1);
    shares.push_back(std::move(row));
  }
  return shares;
}

}  // namespace rhizome
