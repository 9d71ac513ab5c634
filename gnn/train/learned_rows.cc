#include "gnn/train/learned_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "cache/feed/inputs.h"
#include "cache/feed/row_types.h"
#include "gnn/train/row_optimizer_kind.h"
#include "index/base/counter_random.h"
#include "rhizome/array_add.h"
#include "storage/base/check.h"

// A step: Acquire copies the rows of a minibatch's learned vertices into a tensor for each type;
// the backward pass sets their gradients (InputLayer); Update passes them to the cache, with zeros
// in the columns that narrower types do not have, which therefore stay zero.

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kLearnedTable = "learned";
constexpr std::uint32_t kNoKey = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kFirstRowStream = 105;

/// Reads the rows of the vertices of a type, in the order of their ids.
class LearnedSource final : public RowSource {
 public:
  LearnedSource(RowTable& table, std::vector<std::uint32_t> keys, std::uint64_t columns)
      : table_(table), keys_(std::move(keys)) {
    rows = keys_.size();
    dim = columns;
    dtype = DataType::kFloat32;
  }

  Status Read(std::span<std::byte> out) override {
    while (!out.empty()) {
      if (used_ == values_.size()) RHIZOME_RETURN_IF_ERROR(ReadBlock());
      const std::size_t count = std::min(out.size(), values_.size() - used_);
      std::memcpy(out.data(), values_.data() + used_, count);
      used_ += count;
      out = out.subspan(count);
    }
    return Status::Ok();
  }

 private:
  Status ReadBlock() {
    constexpr std::uint64_t kBlockRows = 4096;
    const std::uint64_t count = std::min<std::uint64_t>(kBlockRows, keys_.size() - next_);
    std::vector<std::byte> all(count * table_.row_bytes());
    std::vector<RowTarget> targets(count);
    for (std::uint64_t i = 0; i < count; ++i)
      targets[i] = {.row = keys_[next_ + i], .out = all.data() + i * table_.row_bytes()};
    RHIZOME_RETURN_IF_ERROR(table_.Read(targets));
    const std::size_t bytes = dim * sizeof(float);
    values_.resize(count * bytes);
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(values_.data() + i * bytes, all.data() + i * table_.row_bytes(), bytes);
    next_ += count;
    used_ = 0;
    return Status::Ok();
  }

  RowTable& table_;
  const std::vector<std::uint32_t> keys_;
  std::uint64_t next_ = 0;  // of keys_
  std::vector<std::byte> values_;
  std::size_t used_ = 0;
};

/// Checks options that do not go with learned rows.
Status CheckLearnedOptions(const TrainJob& job, const TrainOptions& options) {
  if (options.learning.seeds > 1)
    return Status::InvalidArgument(
        "`seeds`: learned rows (`features`) are trained with one seed; train once for each");
  if (job.sampling.sampler.disjoint)
    return Status::Unsupported(
        "learned rows (`features`) are not supported with disjoint or temporal sampling");
  if (options.learning.patience > 0 || options.learning.schedule.kind == ScheduleKind::kPlateau)
    return Status::InvalidArgument(
        "`patience` and `schedule=plateau`: with learned rows (`features`) the last epoch is kept, "
        "so that a training cannot return to an earlier one");
  return Status::Ok();
}

}  // namespace

// Steps: (1) find the learned types, and check the options; (2) number their rows; (3) open the
// table, new or as at its checkpoint; (4) open the cache with its share of the memory.
Result<std::unique_ptr<LearnedRows>> LearnedRows::Open(const TrainJob& job,
                                                       const TrainOptions& options,
                                                       const Path& folder) {
  std::unique_ptr<LearnedRows> learned(new LearnedRows(job));
  RHIZOME_RETURN_IF_ERROR(learned->FindTypes(job, options));
  if (learned->types_.empty()) return std::unique_ptr<LearnedRows>();
  RHIZOME_RETURN_IF_ERROR(CheckLearnedOptions(job, options));
  learned->NumberRows();
  if (learned->count_ == 0)
    return Fail(Status::InvalidArgument("learned rows (`features`): no vertex has such a type"));
  learned->arena_ = std::make_unique<TaskArena>(
      static_cast<int>(std::max<std::uint32_t>(options.resources.threads, 1)));
  if (!options.job.resume) RHIZOME_RETURN_IF_ERROR(learned->CheckNames());
  RHIZOME_RETURN_IF_ERROR(learned->OpenTable(options, folder));
  RHIZOME_RETURN_IF_ERROR(learned->CheckNames());
  RHIZOME_RETURN_IF_ERROR(learned->OpenCache(job, options));
  return learned;
}

Status LearnedRows::FindTypes(const TrainJob& job, const TrainOptions& options) {
  for (std::size_t type = 0; type < job.inputs.size(); ++type) {
    const FeatureInput& input = job.inputs[type];
    const auto columns = LearnedColumns(input.array);
    if (!columns) continue;
    types_.push_back(
        {.type = static_cast<TypeId>(type), .name = input.vertex_type, .columns = *columns});
    dim_ = std::max(dim_, *columns);
  }
  if (types_.empty()) return Status::Ok();
  const auto kind = RowOptimizerOf(options.learning.optimizer.kind);
  if (!kind)
    return Status::InvalidArgument(
        "`optimizer=adamw`: learned rows (`features`) need adam, adagrad or sgd");
  options_.kind = *kind;
  SetLearningRate(options.learning.learning_rate);
  return Status::Ok();
}

/// Checks that the rows can be published, before a training of hours. A job that is resumed may
/// have published some of them.
Status LearnedRows::CheckNames() const {
  if (!training_.empty()) return Status::Ok();
  for (const OfType& type : types_) {
    const std::string array = LearnedArray(type.name);
    if (graph_.store().manifest().FindArray(array) == nullptr) continue;
    return Status::AlreadyExists(fmt::format(
        "the learned rows of type {} become the array {}, which the store has already; drop it "
        "first, or name it as the features of the type",
        type.name, array));
  }
  return Status::Ok();
}

void LearnedRows::SetLearningRate(double rate) {
  options_.learning_rate = static_cast<float>(rate);
  optimizer_.emplace(options_, dim_);
}

/// Numbers the rows of learned vertices, in the order of rows, which keeps partitions together.
void LearnedRows::NumberRows() {
  const RowTypes row_types(graph_);
  std::vector<bool> learns(graph_.vertex_types().size() + 1);
  for (const OfType& of : types_) learns[of.type] = true;
  key_of_row_.assign(graph_.vertex_count(), kNoKey);
  for (std::uint64_t row = 0; row < key_of_row_.size(); ++row)
    if (learns[row_types.Of(static_cast<Row>(row))])
      key_of_row_[row] = static_cast<std::uint32_t>(count_++);
}

/// Returns an upper bound on the learned rows of a minibatch.
std::uint64_t LearnedRows::MaxStepRows(const TrainJob& job, const TrainOptions& options) const {
  const std::uint64_t rows =
      job.max_seeds > 0 ? job.max_seeds : std::uint64_t{options.minibatch()->batch_size};
  const auto bound = [&](const SamplerOptions& sampler) {
    double all = static_cast<double>(rows), frontier = all;
    for (const std::int64_t fanout : sampler.fanouts) {
      if (fanout < 0) return count_;
      frontier *= static_cast<double>(fanout) * (sampler.direction == Direction::kBoth ? 2 : 1);
      all += frontier;
    }
    if (!sampler.typed_fanouts.empty()) return count_;
    return all < static_cast<double>(count_) ? static_cast<std::uint64_t>(all) : count_;
  };
  if (job.sampling.no_edges) return std::min(rows, count_);
  std::uint64_t most = bound(job.sampling.sampler);
  if (job.sampling.valid_sampler) most = std::max(most, bound(*job.sampling.valid_sampler));
  return most;
}

Status LearnedRows::OpenTable(const TrainOptions& options, const Path& folder) {
  FileSystem& fs = graph_.store().fs();
  const RowTableOptions table{.rows = count_,
                              .row_bytes = optimizer_->row_floats() * sizeof(float)};
  if (options.job.resume) {
    auto opened = RowTable::Open(fs, folder, kLearnedTable, table);
    if (opened) {
      const std::span<const std::byte> bytes = (*opened)->progress();
      RHIZOME_CHECK(bytes.size() >= sizeof(steps_));
      std::memcpy(&steps_, bytes.data(), sizeof(steps_));
      training_.assign(bytes.begin() + sizeof(steps_), bytes.end());
      opened_ = *std::move(opened);
      return Status::Ok();
    }
    if (opened.error().code() != StatusCode::kNotFound) return opened.error();
  }
  std::vector<std::uint64_t> vertices(count_);
  std::vector<std::uint64_t> columns(count_);
  const RowTypes row_types(graph_);
  for (std::uint64_t row = 0; row < key_of_row_.size(); ++row) {
    if (key_of_row_[row] == kNoKey) continue;
    vertices[key_of_row_[row]] =
        static_cast<std::uint64_t>(*graph_.VertexAt(static_cast<Row>(row)));
    const TypeId type = row_types.Of(static_cast<Row>(row));
    for (const OfType& of : types_)
      if (of.type == type) columns[key_of_row_[row]] = of.columns;
  }
  // Rows have a norm of about 1.
  const auto fill = [&](std::uint64_t key, std::span<std::byte> bytes) {
    CounterRandom random(
        {.seed = options.learning.seed, .vertex = vertices[key], .stream = kFirstRowStream});
    float* const row = reinterpret_cast<float*>(bytes.data());
    const double limit = std::sqrt(3.0 / static_cast<double>(columns[key]));
    for (std::uint64_t c = 0; c < columns[key]; ++c)
      row[c] = static_cast<float>((2 * random.Unit() - 1) * limit);
  };
  RHIZOME_ASSIGN_OR_RETURN(opened_, RowTable::Create(fs, folder, kLearnedTable, table, fill));
  return Status::Ok();
}

/// The cache holds all rows without a memory limit, and gets a quarter of the memory with one.
Status LearnedRows::OpenCache(const TrainJob& job, const TrainOptions& options) {
  const std::uint64_t max_rows = MaxStepRows(job, options);
  const std::size_t row_bytes = opened_->row_bytes();
  const std::uint64_t all = TableCache::BytesFor(count_, row_bytes, max_rows);
  const std::uint64_t least = TableCache::BytesFor(1, row_bytes, max_rows);
  const std::uint64_t limit = options.resources.memory_bytes;
  cache_bytes_ = limit == 0 ? all : std::clamp(limit / 4, least, std::max(least, all));
  RHIZOME_ASSIGN_OR_RETURN(
      cache_, TableCache::Open(std::move(opened_),
                               {.memory_bytes = cache_bytes_, .max_step_rows = max_rows}));
  return Status::Ok();
}

std::vector<CacheKey> LearnedRows::KeysOf(const Minibatch& minibatch) const {
  std::vector<CacheKey> keys;
  for (const Row row : minibatch.rows)
    if (const std::uint32_t key = key_of_row_[static_cast<std::size_t>(row)]; key != kNoKey)
      keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void LearnedRows::NoteSampled(const Minibatch& minibatch) { drawn_.AddStep(KeysOf(minibatch)); }

void LearnedRows::EndSuperbatch() {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::exchange(drawn_, Trace()));
}

Result<std::vector<LearnedTable>*> LearnedRows::Acquire(const Minibatch& minibatch) {
  if (cache_->steps_left() == 0) {
    std::unique_lock lock(mutex_);
    RHIZOME_CHECK(!waiting_.empty());  // a minibatch is delivered after its superbatch was drawn
    Trace next = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    lock.unlock();
    RHIZOME_RETURN_IF_ERROR(cache_->Start(std::move(next)));
  }
  RHIZOME_RETURN_IF_ERROR(cache_->Acquire(rows_));
  FillTables(minibatch);
  return &tables_;
}

/// Copies the rows of the minibatch's vertices, type by type.
void LearnedRows::FillTables(const Minibatch& minibatch) {
  tables_.clear();
  place_.clear();
  const std::span<const CacheKey> keys = rows_.keys();
  for (const OfType& of : types_) {
    LearnedTable& table = tables_.emplace_back();
    table.type = of.type;
    for (std::uint32_t v = 0; v < minibatch.rows.size(); ++v) {
      const TypeId type = minibatch.vertex_types.empty() ? TypeId{0} : minibatch.vertex_types[v];
      if (type == of.type) table.vertices.push_back(v);
    }
    table.rows = torch::empty(
        {static_cast<std::int64_t>(table.vertices.size()), static_cast<std::int64_t>(of.columns)});
    float* out = table.rows.data_ptr<float>();
    for (const std::uint32_t v : table.vertices) {
      const CacheKey key = key_of_row_[static_cast<std::size_t>(minibatch.rows[v])];
      const auto at = std::lower_bound(keys.begin(), keys.end(), key) - keys.begin();
      place_.push_back(static_cast<std::uint32_t>(at));
      std::copy_n(rows_.row(static_cast<std::size_t>(at)).begin(), of.columns, out);
      out += of.columns;
    }
  }
}

Status LearnedRows::Update() {
  gradients_.assign(rows_.size() * dim_, 0);
  std::size_t next = 0;
  for (const LearnedTable& table : tables_) {
    // Undefined if no row of the type takes part in the loss.
    const bool has = table.gradient.defined();
    const auto columns = static_cast<std::size_t>(table.rows.size(1));
    for (std::size_t i = 0; i < table.vertices.size(); ++i, ++next) {
      if (!has) continue;
      std::copy_n(table.gradient.data_ptr<float>() + i * columns, columns,
                  gradients_.data() + place_[next] * dim_);
    }
  }
  ++steps_;
  Status updated;
  arena_->execute([&] { updated = cache_->Update(*optimizer_, steps_, gradients_); });
  return updated;
}

Status LearnedRows::Release() { return cache_->Release(); }

Status LearnedRows::Checkpoint(std::span<const std::byte> training) {
  std::vector<std::byte> bytes(sizeof(steps_));
  std::memcpy(bytes.data(), &steps_, sizeof(steps_));
  bytes.insert(bytes.end(), training.begin(), training.end());
  return cache_->Checkpoint(bytes);
}

Status LearnedRows::Publish(const Path& store, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(RowTable* const table, cache_->Flush());
  for (const OfType& type : types_)
    RHIZOME_RETURN_IF_ERROR(PublishType(type, *table, store, control));
  return Status::Ok();
}

Status LearnedRows::PublishType(const OfType& type, RowTable& table, const Path& store,
                                const JobControl& control) const {
  const std::string array = LearnedArray(type.name);
  RHIZOME_ASSIGN_OR_RETURN(const auto now,
                           Store::Open(graph_.store().fs(), store, Store::Mode::kRead, {}));
  if (now->manifest().FindArray(array) != nullptr) return Status::Ok();  // before a stop
  std::vector<std::uint32_t> keys;
  for (VertexId v = 0; static_cast<std::uint64_t>(v) < graph_.vertex_count(); ++v) {
    if (graph_.IsDeleted(v)) continue;
    RHIZOME_ASSIGN_OR_RETURN(const TypeId of, graph_.TypeOf(v));
    if (of != type.type) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph_.RowOf(v));
    keys.push_back(key_of_row_[static_cast<std::size_t>(row)]);
  }
  AddArrayOptions add;
  add.file.name = array;
  add.file.path = add.file.name;
  if (graph_.vertex_types().size() > 1) add.file.vertex_type = type.name;
  add.file.open = [&](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<LearnedSource>(table, keys, type.columns);
  };
  const auto added = AddArray(graph_.store().fs(), store, add, control);
  return added ? Status::Ok() : added.error();
}

std::uint64_t LearnedRows::memory_bytes() const {
  return cache_bytes_ + key_of_row_.size() * sizeof(std::uint32_t);
}

LearnedRowsReport LearnedRows::report() const {
  const TableCacheStats stats = cache_->stats();
  return {.rows = count_,
          .table_bytes = count_ * optimizer_->row_floats() * sizeof(float),
          .cached_rows = cache_->frame_count(),
          .rows_requested = stats.rows_requested,
          .rows_read = stats.rows_read,
          .rows_written = stats.rows_written};
}

}  // namespace internal
}  // namespace rhizome
