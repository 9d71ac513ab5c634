#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/tables/row_optimizer.h"
#include "cache/tables/table_cache.h"
#include "gnn/models/inputs.h"
#include "gnn/train/train_job.h"
#include "index/base/parallel.h"
#include "rhizome/job_control.h"
#include "rhizome/loader.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The rows of vertex types without features, which are learned with the model: a table in the
/// job's folder that may be larger than memory. The rows of coming minibatches are known one
/// superbatch ahead, so that those that are needed again soonest remain in memory (TableCache).
///
/// Optimisers update only the rows of a minibatch: `adam` is lazy, `sgd` has no momentum. Weight
/// decay and clipping do not apply. The state of the training is stored with the table, so that
/// both survive together.
/// Memory: 4 bytes a vertex of the graph, and the cache.
/// Threads: NoteSampled and EndSuperbatch on the sampling thread, all else on another one.
class LearnedRows {
 public:
  /// Returns null if no type of the job has learned rows. The table is a new one in `folder`, or,
  /// with JobOptions::resume, the one of the last checkpoint. Errors: kInvalidArgument, an
  /// optimiser that is not for rows, or options that do not go with learned rows; kAlreadyExists,
  /// the store has an array of the name that the rows get; as RowTable::Create and
  /// TableCache::Open.
  static Result<std::unique_ptr<LearnedRows>> Open(const TrainJob& job, const TrainOptions& options,
                                                   const Path& folder);

  /// Takes the rows that a sampled minibatch needs, and ends the superbatch.
  void NoteSampled(const Minibatch& minibatch);
  void EndSuperbatch();

  /// Returns the rows of the next minibatch, in the order of NoteSampled. Errors: as TableCache.
  Result<std::vector<LearnedTable>*> Acquire(const Minibatch& minibatch);

  /// Updates the rows by their gradients. Errors: as TableCache::Update.
  Status Update();

  /// Ends the minibatch. Errors: as TableCache::Release.
  Status Release();

  void SetLearningRate(double rate);

  /// Stores the rows and the state of the training. Errors: as TableCache::Checkpoint.
  Status Checkpoint(std::span<const std::byte> training);

  /// Returns the state of the training at the last checkpoint; empty: there is none.
  std::span<const std::byte> training() const { return training_; }

  /// Publishes the rows as arrays of the store, one for each type (LearnedArray). Errors: as
  /// AddArray.
  Status Publish(const Path& store, const JobControl& control);

  /// Memory in bytes, besides the schedules of superbatches.
  std::uint64_t memory_bytes() const;
  LearnedRowsReport report() const;

 private:
  struct OfType {
    TypeId type = 0;
    std::string name;
    std::uint64_t columns = 0;
  };
  explicit LearnedRows(const TrainJob& job) : graph_(*job.graph) {}
  Status FindTypes(const TrainJob& job, const TrainOptions& options);
  Status CheckNames() const;
  void NumberRows();
  std::uint64_t MaxStepRows(const TrainJob& job, const TrainOptions& options) const;
  Status OpenTable(const TrainOptions& options, const Path& folder);
  Status OpenCache(const TrainJob& job, const TrainOptions& options);
  std::vector<CacheKey> KeysOf(const Minibatch& minibatch) const;
  void FillTables(const Minibatch& minibatch);
  Status PublishType(const OfType& type, RowTable& table, const Path& store,
                     const JobControl& control) const;

  const GraphSnapshot& graph_;
  std::vector<OfType> types_;
  std::uint64_t dim_ = 0;                  // columns of the widest type
  std::uint64_t count_ = 0;                // rows of the table
  std::vector<std::uint32_t> key_of_row_;  // by row of the graph
  RowOptimizerOptions options_;
  std::optional<RowOptimizer> optimizer_;
  std::unique_ptr<RowTable> opened_;  // until the cache owns it
  std::unique_ptr<TableCache> cache_;
  std::uint64_t cache_bytes_ = 0;
  std::uint64_t steps_ = 0;  // that updated rows
  std::vector<std::byte> training_;
  std::unique_ptr<TaskArena> arena_;

  // Rows of sampled minibatches: of the superbatch that is drawn, and of complete ones.
  Trace drawn_;
  std::mutex mutex_;
  std::vector<Trace> waiting_;

  // State of the minibatch in use.
  TableRows rows_;
  std::vector<LearnedTable> tables_;
  std::vector<std::uint32_t> place_;  // by learned vertex, type by type: its position in rows_
  std::vector<float> gradients_;      // [rows_, dim_]
};

}  // namespace internal
}  // namespace rhizome
