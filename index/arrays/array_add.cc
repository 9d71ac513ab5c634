#include "rhizome/array_add.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "index/arrays/publish_array.h"
#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "index/delta/type_facts.h"
#include "index/generation/graph_input.h"
#include "index/graph/live_vertices.h"
#include "index/homes/home_array.h"
#include "index/ingest/array_text.h"
#include "index/ingest/ingest_steps.h"
#include "index/ingest/spilled_array.h"
#include "index/input/table_reader.h"
#include "index/topology/type_rows.h"
#include "rhizome/array_change.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/type_names.h"
#include "storage/base/exceptions.h"
#include "storage/io/job_folder.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kDefaultMemoryBytes = std::uint64_t{1} << 30;
// Bounds the part of an array's name in the name of its job's folder.
constexpr std::size_t kMaxJobName = 64;

/// Returns a name that no other job, running or killed, has.
std::string JobName(std::string_view array) {
  return fmt::format("array-{}-{}", array.substr(0, kMaxJobName), getpid());
}

/// Opens a file of ids. An id may contain tabs, so in files other than .csv it is the whole line.
Result<std::unique_ptr<TableReader>> OpenIds(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(fs, path));
  const bool csv = ContentExtension(path) == ".csv";
  return TableReader::Open(std::move(stream), csv ? TableForm::kCsv : TableForm::kLines,
                           /*header=*/false);
}

Status CheckFree(const Store& store, const AddArrayOptions& options) {
  const std::string& name = options.file.name;
  RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(name));
  const bool by_file = options.file.attributes && !BoundType(*options.file.attributes).empty();
  if (by_file || !BoundType(options.attributes).empty())
    return Status::InvalidArgument(fmt::format(
        "array '{}': the attribute '{}' is set by the store; name the array's vertex type instead",
        name, kVertexTypeAttribute));
  for (const ArrayEntry& array : store.manifest().arrays) {
    const std::string_view dimension = FirstDimension(array);
    if (dimension == "row" || name == array.name) continue;
    const std::string_view attribute =
        std::string_view(array.name).substr(0, array.name.rfind('.'));
    if (name.starts_with(fmt::format("{}.p", attribute)))
      return Status::InvalidArgument(
          fmt::format("array '{}': the edge attribute '{}' could take this name", name, attribute));
  }
  if (store.manifest().FindArray(name) == nullptr || options.new_version) return Status::Ok();
  return Status::AlreadyExists(fmt::format(
      "an array '{}' exists already; add a new version of it, or choose another name", name));
}

/// Takes one array from a file into a store: reads and permutes it, and writes it below scratch/.
class ArrayJob {
 public:
  ArrayJob(FileSystem& fs, const Path& path, const AddArrayOptions& options,
           const JobControl& control)
      : fs_(fs), path_(path), options_(options), control_(control), input_(options.file) {
    ingest_.memory_bytes = options.memory_bytes == 0 ? kDefaultMemoryBytes : options.memory_bytes;
  }

  Result<AddArrayReport> Add();
  Result<AddArrayReport> Append(const std::string& reference);

 private:
  Status Open();
  Status Bind(std::string_view type);
  TypeId TypeOf(VertexId vertex) const;
  std::string OfType() const;
  Status OpenFile(const std::string& name);
  Status ClearJob(const std::string& job);
  Status ReadIds();
  Status CheckFit() const;
  void PlaceRows(std::uint64_t first, std::uint64_t count);
  std::optional<std::uint64_t> VerticesGiven() const;
  bool HasRowsOfAdded() const;
  Status Write(const ArrayEntry& wanted, const ChunkArray* old, std::uint64_t first,
               std::uint64_t count);
  Status KeepRows(const ChunkArray& old, std::uint64_t first, std::uint64_t count,
                  std::uint64_t begin, std::span<std::byte> rows) const;
  std::optional<TypeRows> RowsOfType(std::uint64_t rows) const;
  ArrayInput Describe() const;
  using PublishStep =
      std::function<Result<std::string>(ArrayChange&, const ArraySource&, AddArrayReport&)>;

  Result<AddArrayReport> Publish(const PublishStep& step,
                                 std::optional<MadeArray::Appended> appended = {});
  /// Rows() counts the vertices of the generation; Vertices() also counts vertices that updates
  /// added.
  std::uint64_t Rows() const { return store_->manifest().info.vertices; }
  std::uint64_t Vertices() const { return delta_->vertices(); }
  Result<VertexId> Find(const VertexIds& ids, const std::string& text) const;
  std::uint64_t RowsOfAppended(const ArrayEntry& entry) const;

  FileSystem& fs_;
  const Path path_;
  const AddArrayOptions& options_;
  const JobControl& control_;
  ArrayFile input_;
  IngestOptions ingest_;
  Stopwatch watch_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<const Delta> delta_;
  std::optional<VertexOrder> order_;  // loaded by Write, or by Bind
  std::optional<TypeId> type_;        // of a bound array
  LiveVertices live_;                 // of the type
  std::unique_ptr<SpillSpace> space_;
  Path root_;
  std::unique_ptr<IngestContext> context_;
  std::shared_ptr<SpilledArray> file_;
  std::vector<VertexId> vertex_of_row_;  // empty: row i is vertex i
  std::unique_ptr<ChunkArrayWriter> writer_;
  std::vector<FileEntry> files_;
  std::uint64_t rows_given_ = 0;
};

Status ArrayJob::Open() {
  RHIZOME_ASSIGN_OR_RETURN(
      store_, Store::Open(fs_, path_, Store::Mode::kRead, {.scratch = options_.scratch}));
  RHIZOME_ASSIGN_OR_RETURN(delta_, Delta::Load(Delta::Empty(DeltaBaseOf(*store_)), *store_));
  RHIZOME_ASSIGN_OR_RETURN(live_, LiveVertices::Of(*store_, *delta_));
  return Status::Ok();
}

/// Restricts the job to the vertices of a type.
Status ArrayJob::Bind(std::string_view type) {
  const auto& types = delta_->vertex_types();
  const auto number = TypeNamed(types, type);
  if (!number)
    return Status::InvalidArgument(
        fmt::format("array '{}': there is no vertex type '{}'; vertex types: {}", input_.name, type,
                    ListOfNames(types)));
  if (types.size() == 1) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(order_, LoadOrder(*store_));
  RHIZOME_ASSIGN_OR_RETURN(live_, LiveVertices::OfType(*store_, *delta_, *order_, *number));
  type_ = number;
  return Status::Ok();
}

TypeId ArrayJob::TypeOf(VertexId vertex) const { return TypeOfVertex(*order_, *delta_, vertex); }

/// Returns " of type 'paper'" for messages; empty if the array is not bound.
std::string ArrayJob::OfType() const {
  if (!type_) return {};
  return fmt::format(" of type '{}'", delta_->vertex_types()[*type_]);
}

/// As GraphParts::Find, without opening the graph.
Result<VertexId> ArrayJob::Find(const VertexIds& ids, const std::string& text) const {
  ExternalId id(text);
  if (ids.kind() != ExternalIdKind::kString) {
    const auto number = ParseCanonicalInteger(text);
    if (!number) return Fail(Status::NotFound(fmt::format("no vertex '{}'", text)));
    id = *number;
  }
  if (const auto put = delta_->Find(id)) return *put;
  const auto vertex = ids.Find(id);
  if (vertex && !delta_->IsDeleted(*vertex)) return *vertex;
  return Fail(Status::NotFound(fmt::format("no vertex '{}'", text)));
}

/// Removes the folder of a killed job that had the same process id.
Status ArrayJob::ClearJob(const std::string& job) {
  const Path folder = store_->scratch() / job;
  const auto info = fs_.Stat(folder);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  RHIZOME_ASSIGN_OR_RETURN(const auto lock, ClaimJobFolder(fs_, folder));
  return RemoveJobFolder(fs_, folder);
}

Status ArrayJob::OpenFile(const std::string& name) {
  if (!(options_.wait_seconds > 0)) RHIZOME_RETURN_IF_ERROR(ArrayChange::CheckNoWriter(fs_, path_));
  input_.name = name;
  const std::string job = JobName(name);
  RHIZOME_RETURN_IF_ERROR(ClearJob(job));
  const std::uint64_t queue_bytes =
      std::clamp<std::uint64_t>(ingest_.memory_bytes / 32, 256 << 10, 16 << 20);
  RHIZOME_ASSIGN_OR_RETURN(space_, SpillSpace::Create(fs_, store_->scratch(), job, queue_bytes));
  root_ = store_->scratch() / job;
  context_ = std::make_unique<IngestContext>(fs_, ingest_, control_, /*spills=*/true);
  RHIZOME_ASSIGN_OR_RETURN(ResolvedArray resolved,
                           ResolveArray(fs_, input_, /*header=*/{}, /*delimiter=*/{}));
  input_ = std::move(resolved.file);
  RHIZOME_ASSIGN_OR_RETURN(
      file_, SpilledArray::Open(*context_, input_, *space_, ingest_.memory_bytes / 2));
  return Status::Ok();
}

/// Checks that the number of rows in the file equals the number of ids, or of vertices that are not
/// deleted. If no vertex is deleted, or the file has no rows, it may be smaller.
Status ArrayJob::CheckFit() const {
  const std::uint64_t most = options_.ids ? vertex_of_row_.size() : live_.count();
  const bool rest_may_come = !options_.ids && (live_.deleted_count() == 0 || file_->rows == 0);
  const bool too_few = file_->exact_rows && !rest_may_come && file_->rows < most;
  if (file_->rows <= most && !too_few) return Status::Ok();
  const std::string has =
      fmt::format("array '{}': {} has {} rows, but ", options_.file.name, file_->path, file_->rows);
  if (options_.ids)
    return Status::InvalidArgument(
        fmt::format("{}{} names {} ids", has, options_.ids->string(), most));
  if (live_.deleted_count() == 0)
    return Status::InvalidArgument(
        fmt::format("{}the graph has {} vertices{}", has, most, OfType()));
  return Status::InvalidArgument(fmt::format(
      "{}the graph has {} vertices{} ({} deleted): a file without ids must have one row for each "
      "vertex, in the order of an export; give a file with the ids of its rows",
      has, most, OfType(), live_.deleted_count()));
}

/// Assigns the rows of the file to the live vertices, beginning with `first`.
void ArrayJob::PlaceRows(std::uint64_t first, std::uint64_t count) {
  vertex_of_row_.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) vertex_of_row_[i] = live_.At(first + i);
}

/// Returns the number of vertices that have rows now, if the rows belong to the first live vertices
/// in order. It includes deleted vertices before the next live one. Otherwise returns nullopt.
std::optional<std::uint64_t> ArrayJob::VerticesGiven() const {
  for (std::uint64_t i = 0; i < vertex_of_row_.size(); ++i)
    if (vertex_of_row_[i] != live_.At(i)) return std::nullopt;
  return static_cast<std::uint64_t>(live_.At(file_->rows));
}

/// Returns whether the file has rows of vertices that updates added.
bool ArrayJob::HasRowsOfAdded() const {
  if (!options_.ids)
    return file_->rows > 0 && static_cast<std::uint64_t>(live_.At(file_->rows - 1)) >= Rows();
  return std::any_of(vertex_of_row_.begin(), vertex_of_row_.end(),
                     [&](VertexId v) { return static_cast<std::uint64_t>(v) >= Rows(); });
}

Status ArrayJob::ReadIds() {
  RHIZOME_ASSIGN_OR_RETURN(const VertexIds ids, LoadVertexIds(*store_));
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, OpenIds(fs_, *options_.ids));
  std::vector<bool> seen(Vertices());
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const TableReader::Next next, reader->ReadLine());
    if (next == TableReader::Next::kEnd) return Status::Ok();
    const auto bad = [&](std::string_view why) {
      return Status::InvalidArgument(fmt::format("{}: {}", reader->Place(), why));
    };
    if (next == TableReader::Next::kMalformed) return bad(reader->reason());
    const std::string text(reader->fields().empty() ? "" : reader->fields()[0]);
    const auto vertex = Find(ids, text);
    if (!vertex)
      return Status::NotFound(fmt::format("{}: {}", reader->Place(), vertex.error().message()));
    if (type_ && TypeOf(*vertex) != *type_)
      return bad(
          fmt::format("id '{}' is a vertex of type '{}', but the array has rows for vertices{}",
                      text, delta_->vertex_types()[TypeOf(*vertex)], OfType()));
    if (seen[static_cast<std::size_t>(*vertex)]) return bad("id '" + text + "' is repeated");
    seen[static_cast<std::size_t>(*vertex)] = true;
    vertex_of_row_.push_back(*vertex);
    if (vertex_of_row_.size() % kLinesPerReport == 0)
      RHIZOME_RETURN_IF_ERROR(context_->Progress("read ids", reader->stream(), 0));
  }
}

/// Returns the rows of the array's type among `rows` rows; nullopt if the array is not bound.
std::optional<TypeRows> ArrayJob::RowsOfType(std::uint64_t rows) const {
  if (!type_) return std::nullopt;
  TypeRows of_type(*order_, *type_);
  for (std::uint64_t v = order_->size(); v < rows; ++v)
    if (delta_->TypeOf(static_cast<VertexId>(v)) == *type_) of_type.Add(v);
  return of_type;
}

/// Writes the array chunk by chunk: rows of the file by `vertex_of_row_`, and rows of `old` for the
/// vertices outside [first, first + count).
Status ArrayJob::Write(const ArrayEntry& wanted, const ChunkArray* old, std::uint64_t first,
                       std::uint64_t count) {
  if (!order_) {
    RHIZOME_ASSIGN_OR_RETURN(order_, LoadOrder(*store_));
  }
  const auto of_type = RowsOfType(wanted.rows);
  const TypeRows* const bound = of_type ? &*of_type : nullptr;
  RHIZOME_RETURN_IF_ERROR(file_->Begin(*order_, wanted.rows, vertex_of_row_, bound));
  RHIZOME_ASSIGN_OR_RETURN(writer_, ChunkArrayWriter::Create(fs_, root_, wanted));
  const ArrayEntry& entry = writer_->entry();
  std::vector<std::byte> rows;
  std::vector<std::byte> packed;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "write array",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = ShownName(wanted.name)}));
    const std::uint64_t begin = chunk * entry.chunk_rows;
    const std::uint64_t end = std::min(begin + entry.chunk_rows, entry.rows);
    if (bound != nullptr && !bound->AnyIn(begin, end)) {
      RHIZOME_RETURN_IF_ERROR(writer_->LeaveOut(chunk));
      continue;
    }
    rows.resize((end - begin) * entry.row_bytes());
    if (bound != nullptr) {
      packed.resize((bound->RankOf(end) - bound->RankOf(begin)) * entry.row_bytes());
      RHIZOME_RETURN_IF_ERROR(file_->Read(packed));
      PlaceOfType(entry, *bound, begin, packed, rows);
    } else {
      RHIZOME_RETURN_IF_ERROR(file_->Read(rows));
    }
    if (old != nullptr) RHIZOME_RETURN_IF_ERROR(KeepRows(*old, first, count, begin, rows));
    RHIZOME_RETURN_IF_ERROR(writer_->WriteChunk(chunk, rows));
  }
  RHIZOME_ASSIGN_OR_RETURN(files_, writer_->Finish());
  return control_.CheckCancelled();
}

/// Copies rows of `old` into `rows`, which begin with row `begin`, except the rows of the
/// vertices [first, first + count).
Status ArrayJob::KeepRows(const ChunkArray& old, std::uint64_t first, std::uint64_t count,
                          std::uint64_t begin, std::span<std::byte> rows) const {
  const std::uint64_t row_bytes = old.entry().row_bytes();
  if (begin >= old.entry().rows) return Status::Ok();
  const std::uint64_t old_rows =
      std::min<std::uint64_t>(rows.size() / row_bytes, old.entry().rows - begin);
  std::vector<std::byte> kept(old_rows * row_bytes);
  RHIZOME_RETURN_IF_ERROR(old.ReadRows(begin, old_rows, kept));
  for (std::uint64_t i = 0; i < old_rows; ++i) {
    const auto vertex = static_cast<std::uint64_t>(order_->VertexAt(static_cast<Row>(begin + i)));
    const bool is_new = vertex >= first && vertex - first < count;
    if (!is_new) std::memcpy(rows.data() + i * row_bytes, kept.data() + i * row_bytes, row_bytes);
  }
  return Status::Ok();
}

Result<AddArrayReport> ArrayJob::Publish(const PublishStep& step,
                                         std::optional<MadeArray::Appended> appended) {
  AddArrayReport report;
  const std::vector<ArrayEntry> arrays = writer_->arrays();
  const MadeArray made{.made_for = *store_,
                       .source = {arrays, root_, files_},
                       .memory_bytes = ingest_.memory_bytes,
                       .appended = std::move(appended),
                       .wait_seconds = options_.wait_seconds};
  const auto steps = [&](ArrayChange& change, const ArraySource& moved) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const std::string stored, step(change, moved, report));
    report.array = *FindStoredArray(change.manifest().arrays, stored);
    return Status::Ok();
  };
  RHIZOME_ASSIGN_OR_RETURN(const PublishReport published,
                           PublishMade(path_, made, control_, steps));
  report.new_vertices = published.new_vertices;
  report.rows_given = made.appended ? RowsGiven(report.array) : rows_given_;
  if (type_ && !(options_.ids && !made.appended))
    report.rows_given = live_.PlaceOf(static_cast<VertexId>(report.rows_given));
  report.rows_read = file_->rows;
  report.vertices = live_.count();
  report.store = store_->id();
  report.seconds = watch_.seconds();
  return report;
}

void SetRowsGiven(ArrayEntry& entry, std::uint64_t given) {
  std::erase_if(entry.attributes,
                [](const auto& attribute) { return attribute.first == kRowsGivenAttribute; });
  if (given < entry.rows) entry.attributes.emplace_back(kRowsGivenAttribute, std::to_string(given));
  std::sort(entry.attributes.begin(), entry.attributes.end());
}

/// Adds the attributes of the file, and the one that records the values of missing rows, unless the
/// caller set it.
std::vector<std::pair<std::string, std::string>> WithMissing(
    std::vector<std::pair<std::string, std::string>> attributes, const SpilledArray& file) {
  attributes.insert(attributes.end(), file.attributes.begin(), file.attributes.end());
  const auto missing = MissingOfNewArray(file.name, file.dtype, file.dim);
  const bool said = std::ranges::any_of(
      attributes, [](const auto& one) { return one.first == kMissingAttribute; });
  if (missing && !said) attributes.emplace_back(kMissingAttribute, *missing);
  std::sort(attributes.begin(), attributes.end());
  return attributes;
}

/// Returns the description of the new array.
ArrayInput ArrayJob::Describe() const {
  ArrayInput about{.name = options_.file.name,
                   .dim = file_->dim,
                   .dtype = file_->dtype,
                   .layout = options_.layout,
                   .codec = options_.codec,
                   .chunk_rows = options_.chunk_rows,
                   .inner_rows = options_.inner_rows,
                   .attributes = WithMissing(options_.attributes, *file_),
                   .read_rows = {}};
  if (type_) about.attributes.emplace_back(kVertexTypeAttribute, delta_->vertex_types()[*type_]);
  return about;
}

// Adds an array:
// 1. opens the store, the file and the ids, and checks that they fit;
// 2. describes the array (entry, rows_given);
// 3. writes it in the store's order;
// 4. publishes it as a new array or as a version of an existing one.
Result<AddArrayReport> ArrayJob::Add() {
  RHIZOME_RETURN_IF_ERROR(Open());
  RHIZOME_RETURN_IF_ERROR(CheckFree(*store_, options_));
  if (!input_.vertex_type.empty()) RHIZOME_RETURN_IF_ERROR(Bind(input_.vertex_type));
  RHIZOME_RETURN_IF_ERROR(OpenFile(options_.file.name));
  if (options_.ids) RHIZOME_RETURN_IF_ERROR(ReadIds());
  RHIZOME_RETURN_IF_ERROR(CheckFit());
  if (!options_.ids && (type_ || live_.deleted_count() > 0)) PlaceRows(0, file_->rows);
  // Rows of vertices that updates added make the array longer than the generation, so these
  // vertices are counted if the file has any such row.
  std::optional<std::uint64_t> chunk_rows;
  if (type_) chunk_rows = RowsOfBoundChunk(live_.count(), store_->manifest().info.partitions);
  RHIZOME_ASSIGN_OR_RETURN(
      ArrayEntry entry,
      DescribeArray(Describe(), HasRowsOfAdded() ? Vertices() : Rows(),
                    NewArrayId(store_->id(), store_->manifest(), root_.filename().string()),
                    chunk_rows));
  file_->missing = MissingRowOf(entry);
  rows_given_ = options_.ids ? vertex_of_row_.size() : entry.rows;
  if (const auto given = VerticesGiven(); given && file_->exact_rows) {
    rows_given_ = std::min(*given, entry.rows);
    SetRowsGiven(entry, rows_given_);
  }
  RHIZOME_RETURN_IF_ERROR(Write(entry, nullptr, 0, 0));
  const std::string& name = options_.file.name;
  const auto publish = [&](ArrayChange& change, const ArraySource& source,
                           AddArrayReport& report) -> Result<std::string> {
    const bool versions = options_.new_version || options_.live || options_.keep > 0;
    if (!versions) return change.Add(source);
    RHIZOME_ASSIGN_OR_RETURN(std::string stored, change.AddVersion(source, name));
    if (options_.live)
      RHIZOME_RETURN_IF_ERROR(change.SetAlias(name, kLiveAlias, SplitVersion(stored)->second));
    if (options_.keep > 0) {
      RHIZOME_ASSIGN_OR_RETURN(report.dropped_versions, change.KeepNewest(name, options_.keep));
    }
    return stored;
  };
  return Publish(publish);
}

/// Returns the first vertex without a row. A vertex that updates added may or may not have a row.
std::uint64_t ArrayJob::RowsOfAppended(const ArrayEntry& entry) const {
  std::uint64_t given = RowsGiven(entry);
  if (given < entry.rows) return given;
  const auto needs_none = [&](std::uint64_t v) {
    const auto vertex = static_cast<VertexId>(v);
    return delta_->IsDeleted(vertex) || delta_->RowCommit(entry.array_id, vertex) ||
           (type_ && TypeOf(vertex) != *type_);
  };
  while (given < Vertices() && needs_none(given)) ++given;
  return given;
}

Result<AddArrayReport> ArrayJob::Append(const std::string& reference) {
  RHIZOME_RETURN_IF_ERROR(ParseArrayReference(reference));
  RHIZOME_RETURN_IF_ERROR(Open());
  RHIZOME_ASSIGN_OR_RETURN(const auto old, store_->OpenArray(reference));
  ArrayEntry entry = old->entry();
  if (entry.rows != Rows() || FirstDimension(entry) != "row")
    return Fail(
        Status::InvalidArgument(fmt::format("'{}' is not an array of vertices", reference)));
  RHIZOME_ASSIGN_OR_RETURN(const auto homes, HomesOfArray(entry));
  if (homes)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' keeps the homes of rows, to which no rows are appended; put the homes of "
                    "new vertices instead, which checks that they are below {}",
                    reference, homes->homes)));
  if (!BoundType(entry).empty()) RHIZOME_RETURN_IF_ERROR(Bind(BoundType(entry)));
  const std::uint64_t given = RowsOfAppended(entry);
  const std::uint64_t place = live_.PlaceOf(static_cast<VertexId>(given));
  const std::uint64_t left = live_.count() - place;
  if (left == 0)
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' already has a row for each of the {} vertices{}; there is nothing to append",
        reference, live_.count(), OfType())));
  if (!input_.dtype) input_.dtype = entry.dtype;
  RHIZOME_RETURN_IF_ERROR(OpenFile(entry.name));
  file_->missing = MissingRowOf(entry);
  if (file_->rows > left || file_->dim != entry.dim || file_->dtype != entry.dtype) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' accepts {} more rows of {} {}, but {} has {} rows of {} {}", reference,
                    left, entry.dim, DataTypeName(entry.dtype), file_->path, file_->rows,
                    file_->dim, DataTypeName(file_->dtype))));
  }
  if (options_.ids) RHIZOME_RETURN_IF_ERROR(ReadIds());
  const std::vector<VertexId> named = std::move(vertex_of_row_);
  PlaceRows(place, file_->rows);
  if (options_.ids && named != vertex_of_row_)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' accepts the rows of the {} vertices after {}, in the order of their ids, "
                    "but {} names other vertices; to write rows of single ids, put them instead",
                    reference, file_->rows, given, options_.ids->string())));
  rows_given_ = static_cast<std::uint64_t>(live_.At(place + file_->rows));
  const std::uint64_t count = rows_given_ - given;  // includes deleted vertices
  entry.rows = std::max(entry.rows, rows_given_);
  SetRowsGiven(entry, rows_given_);
  RHIZOME_RETURN_IF_ERROR(Write(entry, old.get(), given, count));
  const std::string name = entry.name;
  const auto publish = [&](ArrayChange& change, const ArraySource& source, AddArrayReport&) {
    return change.Replace(name, source);
  };
  return Publish(publish, MadeArray::Appended{name, given, count});
}

class NoRows final : public RowSource {
 public:
  NoRows(DataType type, std::uint64_t width) {
    dtype = type;
    dim = width;
  }
  Status Read(std::span<std::byte>) override { return Status::Ok(); }
};

}  // namespace

std::function<Result<std::unique_ptr<RowSource>>(FileSystem& fs)> EmptyRows(DataType dtype,
                                                                            std::uint64_t dim) {
  return [dtype, dim](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<NoRows>(dtype, dim);
  };
}

Result<AddArrayReport> AddArray(FileSystem& fs, const Path& path, const AddArrayOptions& options,
                                const JobControl& control) try {
  return WithAbsolute(fs, path, [&](const Path& store) {
    auto report = ArrayJob(fs, store, options, control).Add();
    // Dropped versions could not be removed while the job itself read the store.
    if (report && options.keep > 0)
      static_cast<void>(ArrayChange::RemoveDropped(fs, store, report->store));
    return report;
  });
} catch (...) {
  return Fail(StatusOfException());
}

Result<AddArrayReport> AppendRows(FileSystem& fs, const Path& path, const std::string& reference,
                                  const AddArrayOptions& options, const JobControl& control) try {
  return WithAbsolute(fs, path, [&](const Path& store) {
    auto report = ArrayJob(fs, store, options, control).Append(reference);
    // The files of the shorter array are no longer needed.
    if (report) static_cast<void>(ArrayChange::RemoveDropped(fs, store, report->store));
    return report;
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
