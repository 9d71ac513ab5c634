#include "gnn/tables/train_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cache/job/job_scratch.h"
#include "cache/job/process_memory.h"
#include "cache/job/safetensors.h"
#include "cache/kernels/simd.h"
#include "cache/tables/table_cache.h"
#include "gnn/links/test_links.h"
#include "gnn/tables/publish_table.h"
#include "gnn/tables/table_job.h"
#include "gnn/tables/table_memory.h"
#include "gnn/tables/table_progress.h"
#include "gnn/tables/table_validation.h"
#include "index/base/parallel.h"
#include "storage/base/stopwatch.h"
#include "storage/io/posix_place.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kTableName = "table";
/// A training, from its first batch or a checkpoint to its end. Threads: one.
class TableTraining {
 public:
  TableTraining(const TableJob& job, const TrainOptions& options, const JobControl& control,
                TableModelReport& report)
      : job_(job),
        options_(options),
        control_(control),
        report_(report),
        optimizer_(job.optimizer, job.dim()),
        relation_optimizer_(job.optimizer, std::max<std::size_t>(job.step.relation_width, 1)),
        step_(*job.decoder, job.step,
              {.row_of = [&job](VertexId v) { return job.batches->table_order().RowOf(v); },
               .type_of = [&job](VertexId v) { return *job.graph->TypeOf(v); }}),
        arena_(static_cast<int>(std::max<std::uint32_t>(options.resources.threads, 1))) {}

  /// Opens the table in `folder`: the one of a checkpoint, or a new one.
  Status Open(const Path& folder, std::uint64_t base_bytes);

  /// Trains the remaining epochs.
  Status Run();

  /// Writes the results.
  Status Finish(const Path& folder);

  /// Memory of the process before the cache was opened.
  std::uint64_t held_bytes() const { return memory_.held_bytes; }

  /// Frees the cache and the table. Nothing else may follow.
  void FreeMemory() {
    cache_.reset();
    validation_.reset();
  }

 private:
  Result<std::unique_ptr<RowTable>> OpenTable(const Path& folder, const RowTableOptions& options);
  Status RunSuperbatch(std::uint64_t count);
  Status RunBatch(const LinkBatch& batch);
  void UpdateRelations();
  Status MeasureIfDue();
  Status CheckpointIfDue();
  void TakeCounts();
  void EndEpoch();

  const TableJob& job_;
  const TrainOptions& options_;
  const JobControl& control_;
  TableModelReport& report_;
  const RowOptimizer optimizer_;
  const RowOptimizer relation_optimizer_;
  LinkStep step_;
  TaskArena arena_;
  std::optional<TableValidation> validation_;
  NegativeMask mask_;  // of a batch
  TableProgress progress_;
  TableMemory memory_;
  std::unique_ptr<TableCache> cache_;
  std::vector<LinkBatch> batches_;
  std::vector<float> values_;
  LinkGradients gradients_;
  TableCacheStats counted_;      // at the last TakeCounts
  RowTableStats table_counted_;  // likewise
  Stopwatch watch_;
};

Status TableTraining::Open(const Path& folder, std::uint64_t base_bytes) {
  const RowTableOptions table = ShapeOfTable(job_);
  RHIZOME_ASSIGN_OR_RETURN(
      memory_, DivideTableMemory(job_, table, options_.resources, HeldBytes(base_bytes)));
  if (!job_.valid.edges.empty()) validation_.emplace(job_);
  RHIZOME_ASSIGN_OR_RETURN(auto opened, OpenTable(folder, table));
  report_.rows = table.rows;
  report_.dim = job_.dim();
  report_.relations = job_.step.relation_width == 0 ? 0 : job_.step.relations;
  report_.batches = job_.batches->batches();
  report_.table_bytes = table.rows * table.row_bytes;
  report_.disk_bytes = RowTable::DiskBytes(table.rows, table.row_bytes);
  report_.cache_bytes = memory_.cache_bytes;
  RHIZOME_ASSIGN_OR_RETURN(
      cache_, TableCache::Open(std::move(opened), {.memory_bytes = memory_.cache_bytes,
                                                   .max_step_rows = job_.batches->max_rows()}));
  report_.cached_rows = cache_->frame_count();
  report_.resumed_batches = progress_.epoch * report_.batches + progress_.batch;
  return Status::Ok();
}

/// Opens the table, and sets progress_: as at a checkpoint, or at the start.
Result<std::unique_ptr<RowTable>> TableTraining::OpenTable(const Path& folder,
                                                           const RowTableOptions& options) {
  FileSystem& fs = job_.store->fs();
  if (options_.job.resume) {
    auto opened = RowTable::Open(fs, folder, kTableName, options);
    if (!opened && opened.error().code() != StatusCode::kNotFound) return opened;
    if (opened) {
      RHIZOME_ASSIGN_OR_RETURN(progress_,
                               DecodeTableProgress((*opened)->progress(), job_.description));
      return opened;
    }
  }
  const std::vector<VertexId> vertices = job_.batches->table_order().Vertices();
  const std::uint64_t seed = options_.learning.seed;
  progress_.relations = FirstRelations(job_, seed);
  const auto fill = [&](std::uint64_t row, std::span<std::byte> bytes) {
    SetFirstVertexRow(job_, seed, static_cast<std::uint64_t>(vertices[row]),
                      {reinterpret_cast<float*>(bytes.data()), job_.dim()});
  };
  return RowTable::Create(fs, folder, kTableName, options, fill);
}

Status TableTraining::Run() {
  const std::uint64_t batches = job_.batches->batches();
  while (progress_.epoch < options_.learning.epochs) {
    watch_ = Stopwatch();
    const double before = progress_.current.seconds;
    while (progress_.batch < batches) {
      RHIZOME_RETURN_IF_ERROR(
          RunSuperbatch(std::min(memory_.lookahead, batches - progress_.batch)));
      progress_.current.seconds = before + watch_.seconds();
    }
    RHIZOME_RETURN_IF_ERROR(MeasureIfDue());
    EndEpoch();
  }
  return Status::Ok();
}

/// Runs the next batches, whose accesses the cache knows from the start.
Status TableTraining::RunSuperbatch(std::uint64_t count) {
  batches_.resize(std::max<std::size_t>(batches_.size(), count));
  Trace trace;
  for (std::uint64_t i = 0; i < count; ++i) {
    RHIZOME_RETURN_IF_ERROR(job_.batches->Make(progress_.epoch, progress_.batch + i, batches_[i]));
    trace.AddStep(batches_[i].rows);
  }
  RHIZOME_RETURN_IF_ERROR(cache_->Start(std::move(trace)));
  for (std::uint64_t i = 0; i < count; ++i) {
    RHIZOME_RETURN_IF_ERROR(RunBatch(batches_[i]));
    ++progress_.batch;
    RHIZOME_RETURN_IF_ERROR(CheckpointIfDue());
  }
  return Status::Ok();
}

Status TableTraining::RunBatch(const LinkBatch& batch) {
  const TableModelEpoch& so_far = progress_.current;
  const double queries = 2 * static_cast<double>(std::max<std::uint64_t>(so_far.edges, 1));
  RHIZOME_RETURN_IF_ERROR(
      control_.Report({.phase = "train",
                       .done = progress_.epoch * report_.batches + progress_.batch,
                       .total = options_.learning.epochs * report_.batches,
                       .detail = fmt::format("epoch {}, loss {:.4f}", progress_.epoch + 1,
                                             so_far.loss / queries)}));
  TableRows rows;
  RHIZOME_RETURN_IF_ERROR(cache_->Acquire(rows));
  if (!batch.edges.empty()) {
    values_.resize(rows.size() * job_.dim());
    rows.CopyValues(job_.dim(), values_);
    if (job_.filter) RHIZOME_RETURN_IF_ERROR(job_.filter->Mask(batch, /*each=*/0, mask_));
    arena_.execute([&] {
      step_.Compute(batch, values_, progress_.relations, gradients_,
                    job_.filter ? &mask_ : nullptr);
    });
    if (!std::isfinite(gradients_.loss))
      return Status::InvalidArgument(fmt::format(
          "the loss of batch {} of epoch {} is not a number; a lower `learning_rate` may help{}",
          progress_.batch + 1, progress_.epoch + 1,
          options_.job.checkpoint_every == 0 ? "" : "; the last checkpoint is kept"));
    ++progress_.steps;
    Status updated;
    arena_.execute([&] { updated = cache_->Update(optimizer_, progress_.steps, gradients_.rows); });
    RHIZOME_RETURN_IF_ERROR(updated);
    UpdateRelations();
    progress_.current.loss += gradients_.loss;
    progress_.current.edges += batch.edges.size();
  }
  return cache_->Release();
}

void TableTraining::UpdateRelations() {
  const std::size_t width = job_.step.relation_width;
  for (std::size_t i = 0; i < gradients_.relation_rows.size(); ++i) {
    const std::size_t stride = job_.step.relation_stride;
    const std::size_t row = gradients_.relation_rows[i];
    relation_optimizer_.Update(std::span(progress_.relations).subspan(row * stride, stride),
                               std::span(gradients_.relations).subspan(i * width, width),
                               progress_.steps);
  }
}

Status TableTraining::CheckpointIfDue() {
  const std::uint64_t every = options_.job.checkpoint_every;
  const std::uint64_t done = progress_.epoch * report_.batches + progress_.batch;
  if (every == 0 || done % every != 0) return Status::Ok();
  TakeCounts();
  return cache_->Checkpoint(EncodeTableProgress(progress_, job_.description));
}

/// Adds what the cache has counted since the last call to the epoch in progress.
void TableTraining::TakeCounts() {
  const TableCacheStats now = cache_->stats();
  const RowTableStats table = cache_->table_stats();
  TableModelEpoch& epoch = progress_.current;
  epoch.rows_requested += now.rows_requested - counted_.rows_requested;
  epoch.rows_read += now.rows_read - counted_.rows_read;
  epoch.rows_written += now.rows_written - counted_.rows_written;
  epoch.bytes_read += table.read_bytes - table_counted_.read_bytes;
  epoch.bytes_written += table.write_bytes - table_counted_.write_bytes;
  counted_ = now;
  table_counted_ = table;
}

/// Ranks the validation edges after an epoch for which this is asked for. Changed rows are written
/// first and remain in the cache; they count as the epoch's. What is read here does not.
Status TableTraining::MeasureIfDue() {
  const std::uint64_t number = progress_.epoch + 1;
  const bool due = number % options_.learning.eval_every == 0 || number == options_.learning.epochs;
  if (!validation_ || !due) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(RowTable* const table, cache_->Flush());
  TakeCounts();
  RHIZOME_ASSIGN_OR_RETURN(progress_.current.mrr_sampled,
                           validation_->Measure(*table, progress_.relations, arena_, control_));
  table_counted_ = cache_->table_stats();
  return Status::Ok();
}

void TableTraining::EndEpoch() {
  TakeCounts();
  TableModelEpoch& epoch = progress_.current;
  epoch.loss /= 2 * static_cast<double>(std::max<std::uint64_t>(epoch.edges, 1));
  progress_.reports.push_back(std::exchange(epoch, {}));
  ++progress_.epoch;
  progress_.batch = 0;
}

Status TableTraining::Finish(const Path& folder) {
  report_.epochs = progress_.reports;
  if (const Path out = AbsolutePath(job_.store->fs(), options_.job.out); !out.empty()) {
    RHIZOME_RETURN_IF_ERROR(SaveSafetensors(out, DecoderFile(job_, progress_.relations)));
    report_.decoder_file = options_.job.out.string();
  }
  const std::string& array = options_.link.out_array;
  if (array.empty()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(RowTable* const table, cache_->Flush());
  RHIZOME_RETURN_IF_ERROR(
      PublishTable(job_, options_.store, array, *table, folder / "published", control_));
  report_.array = array;
  return Status::Ok();
}

}  // namespace

// Trains in these steps: (1) opens the store, batches and decoder (OpenTableJob), and locks the
// job's folder; (2) divides the memory, and creates the table or opens it at its checkpoint;
// (3) runs the epochs, a superbatch of batches at a time; (4) writes the decoder and publishes the
// rows as an array; (5) removes the folder; (6) ranks the test edges, if any.
Result<TrainReport> TrainTable(const TrainOptions& options, const JobControl& control) {
  TrainReport report;
  report.task = Task::kLink;
  TableModelReport& table = report.table.emplace();
  table.base_memory_bytes = ResidentBytes();
  RHIZOME_RETURN_IF_ERROR(CheckSimdSetting());
  RHIZOME_ASSIGN_OR_RETURN(const TableJob job, OpenTableJob(options));
  RHIZOME_ASSIGN_OR_RETURN(const TestLinks test, TestLinks::Read(*job.graph, options.link));
  report.warnings = job.warnings;
  if (options.job.note) std::ranges::for_each(report.warnings, options.job.note);
  if (!options.link.out_array.empty()) {
    RHIZOME_RETURN_IF_ERROR(CheckNewArray(*job.store, options.link.out_array));
    RHIZOME_RETURN_IF_ERROR(ArrayChange::CheckNoWriter(job.store->fs(), options.store));
  } else if (options.job.note) {
    options.job.note("no `out_array`: the rows are lost when the training ends");
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<JobScratch> scratch,
                           JobScratch::Open(*job.store, options.job.name,
                                            options.job.resume ? JobScratch::Leftovers::kKeep
                                                               : JobScratch::Leftovers::kRemove));
  if (options.job.checkpoint_every > 0 || options.job.resume) scratch->Keep();
  TableTraining training(job, options, control, table);
  RHIZOME_RETURN_IF_ERROR(training.Open(scratch->folder(), table.base_memory_bytes));
  RHIZOME_RETURN_IF_ERROR(training.Run());
  RHIZOME_RETURN_IF_ERROR(training.Finish(scratch->folder()));
  scratch->RemoveAtEnd();
  if (!test.empty()) {
    training.FreeMemory();
    RHIZOME_ASSIGN_OR_RETURN(report.link_test, test.Rank(options, training.held_bytes(), control));
  }
  table.peak_memory_bytes = PeakResidentBytes();
  return report;
}

ModelInfo DescribeTableModel() {
  return {
      .name = std::string(kTableModel),
      .title = "a row of numbers for each vertex, learned from links: a knowledge graph embedding",
      .source =
          "Bordes et al., Translating Embeddings for Modeling Multi-relational Data "
          "(NeurIPS 2013)",
      .options = {},
      .network = false};
}

}  // namespace internal
}  // namespace rhizome
