#include "index/generation/graph_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/base/edge_ends.h"
#include "index/base/free_vector.h"
#include "index/base/task_runner.h"
#include "index/base/vertex_column.h"
#include "index/generation/chunk_copy.h"
#include "index/generation/graph_input.h"
#include "index/generation/home_choice.h"
#include "index/generation/partitioned_edges.h"
#include "index/generation/row_coordinates.h"
#include "index/generation/spilled_graph.h"
#include "index/topology/adjacency.h"
#include "index/topology/degrees.h"
#include "index/topology/edge_order.h"
#include "index/topology/type_rows.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "storage/array/array_rules.h"
#include "storage/array/coordinates.h"
#include "storage/array/text_files.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/io/paced_file_system.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
namespace {

class PacedSink final : public ByteSink {
 public:
  PacedSink(ByteSink& sink, IoPacer* pacer) : sink_(sink), pacer_(pacer) {}
  Status Append(std::span<const std::byte> bytes) override {
    return AppendPaced(sink_, bytes, pacer_);
  }

 private:
  ByteSink& sink_;
  IoPacer* const pacer_;
};

/// The steps of BuildGeneration; each consumes the result of the step before. Memory besides the
/// edges (partitioned_edges.h): kBuildBytesPerVertex a vertex, and the memory of the partition
/// writers.
class GraphBuilder {
 public:
  GraphBuilder(Store& store, GraphInput input, const BuildOptions& options,
               const JobControl& control, const BuildHooks& hooks)
      : store_(store),
        input_(std::move(input)),
        options_(options),
        control_(control),
        hooks_(hooks),
        partitions_(options.partition.partitions) {}

  Status Run();

 private:
  Status Divide();
  Status CheckMemory() const;
  Status OrderRows();
  Status WriteOrder();
  Status WriteIds();
  Status WriteCoordinates();
  Result<RowIds> IdsOfRows();
  Status WriteFile(const std::string& path, std::span<const std::byte> bytes);
  void CheckOwners() const;
  bool ArraysFitBeside() const;
  Status WriteOneByOne();
  Status WriteAllAtOnce();
  Status WriteTopology(const JobControl& control, std::uint64_t beside_bytes);
  std::uint64_t BytesForWriters(std::uint64_t beside_bytes) const;
  std::uint32_t WriterCount(std::uint64_t beside_bytes) const;
  std::uint64_t EdgeBytes() const;
  std::uint64_t PartitionBytes() const;
  std::uint32_t PartitionsNeeded() const;
  Status WritePartition(std::uint32_t partition);
  Status WriteAttributes(std::uint32_t partition, std::span<const std::uint64_t> edge_order,
                         const std::vector<EdgeAttribute>& attributes);
  Status AddTexts(const WriteTextsOf& write, ArrayEntry& holder);
  void NumberArrays();
  Status WriteArrays();
  Status WriteArray(const ArrayInput& array);
  void SortDegrees(Degrees& degrees) const;
  void CountEnds(const EdgesOfPartition& edges);

  Store& store_;
  GraphInput input_;
  const BuildOptions& options_;
  const JobControl& control_;
  const BuildHooks& hooks_;
  const std::uint32_t partitions_;

  Mutex writer_mutex_;  // guards calls of writer_, and ends_, while partitions are written
  std::unique_ptr<GenerationWriter> writer_;
  GenerationInfo info_;
  PartitionedEdges::Columns columns_;
  std::optional<EndsOfEdges> ends_;  // set if there are several vertex types
  std::uint64_t last_array_id_ = 0;
  std::uint64_t largest_partition_ = 0;  // directed edges
  std::uint64_t most_vertices_ = 0;      // see EdgeDivision
  std::shared_ptr<PartitionedEdges> edges_;
  std::vector<PartitionId> owners_;
  Degrees out_degree_;  // by vertex, then by row
  Degrees in_degree_;
  VertexColumn vertex_of_row_;  // until the order is written
  std::optional<VertexOrder> order_;
  std::vector<std::uint8_t> partition_sets_;  // see PartitionContext
};

// Builds a generation:
// 1. checks the input, numbers its arrays, and begins the generation, so that no other job does;
// 2. partitions the edges, and chooses the owner and, if wanted, the home of each vertex (Divide);
// 3. orders the rows (OrderRows);
// 4. writes the order, the external ids and the coordinates of the Zarr arrays;
// 5. writes partitions and arrays, concurrently if memory allows, otherwise one after the other;
// 6. commits.
Status GraphBuilder::Run() {
  RHIZOME_RETURN_IF_ERROR(CheckGraphInput(input_, options_));
  NumberArrays();
  RHIZOME_ASSIGN_OR_RETURN(writer_, GenerationWriter::Create(store_));
  if (!input_.series.empty()) writer_->set_series(input_.series);
  RHIZOME_RETURN_IF_ERROR(Divide());
  RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "order", .done = 0, .total = 1}));
  RHIZOME_RETURN_IF_ERROR(OrderRows());
  RHIZOME_RETURN_IF_ERROR(WriteOrder());
  RHIZOME_RETURN_IF_ERROR(WriteIds());
  RHIZOME_RETURN_IF_ERROR(WriteCoordinates());
  RHIZOME_RETURN_IF_ERROR(ArraysFitBeside() ? WriteAllAtOnce() : WriteOneByOne());
  RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "commit", .done = 0, .total = 1}));
  // The spill files are removed before the commit, so that a job killed after it leaves none
  // behind.
  if (input_.spilled) RHIZOME_RETURN_IF_ERROR(input_.spilled->space->Clear());
  RHIZOME_RETURN_IF_ERROR(hooks_.commit ? hooks_.commit(*writer_, info_) : writer_->Commit(info_));
  // The commit cannot be undone, so a cancellation after it is ignored.
  (void)control_.Report({.phase = "commit", .done = 1, .total = 1});
  return Status::Ok();
}

Status GraphBuilder::Divide() {
  info_.symmetric = input_.undirected;
  RHIZOME_RETURN_IF_ERROR(
      control_.Report({.phase = "partition", .done = 0, .total = input_.edges.size()}));
  edges_ = PartitionedEdges::Make(input_, options_.partition, control_);
  columns_ = edges_->columns();
  info_.weighted = columns_.weighted;
  HomeChoice homes(options_.homes, options_.partition, options_.memory_bytes, control_);
  if (homes.wanted()) {
    RHIZOME_ASSIGN_OR_RETURN(auto seeds, TrainingVertices(input_));
    RHIZOME_RETURN_IF_ERROR(
        homes.Divide(edges_->Input(), std::move(seeds), std::move(input_.homes)));
  }
  RHIZOME_ASSIGN_OR_RETURN(EdgeDivision division, edges_->Divide());
  if (homes.wanted()) {
    RHIZOME_RETURN_IF_ERROR(homes.Finish(edges_->Input(), division.owners));
    input_.arrays.push_back(ArrayOfHomes(homes.facts(), homes.Take()));
    NumberArrays();
  }
  edges_->ForgetInput();
  owners_ = std::move(division.owners);
  out_degree_ = std::move(division.out_degree);
  in_degree_ = std::move(division.in_degree);
  largest_partition_ = division.largest_partition;
  most_vertices_ = division.most_vertices;

  info_.vertices = input_.vertex_count;
  info_.edges = division.edges;
  info_.partitions = partitions_;
  info_.id_kind = input_.id_kind;
  info_.directions = input_.undirected ? Direction::kBoth : options_.directions;
  info_.partitioner = StoredPartitionerName(division.kind);
  info_.order = OrderName(options_.order);
  info_.replication_factor = division.metrics.replication_factor;
  info_.vertex_balance = division.metrics.vertex_balance;
  info_.edge_balance = division.metrics.edge_balance;
  info_.interior_share = division.metrics.interior_share;
  info_.vertex_types = input_.vertex_type_names;
  info_.edge_types = input_.edge_type_names;
  if (info_.vertex_types.size() > 1) ends_.emplace(info_.edge_types.size());
  return CheckMemory();
}

// Only spilled graphs are checked here; the reader of a graph in memory has checked it.
Status GraphBuilder::CheckMemory() const {
  if (columns_.in_memory || options_.memory_bytes == 0) return Status::Ok();
  const std::uint64_t vertex_bytes = BuildVertexBytes(input_.vertex_count, partitions_);
  const std::uint64_t needed = vertex_bytes + PartitionBytes();
  if (needed <= options_.memory_bytes) return Status::Ok();
  std::string hint = "raise the memory limit";
  if (const std::uint32_t more = PartitionsNeeded(); more > 0)
    hint = fmt::format("raise the memory limit, or use `partitions={}`", more);
  return Status::OutOfMemory(fmt::format(
      "building a partition of {} edges takes about {} MiB of memory with {} vertices, but the "
      "limit is {} MiB; nothing was written; {}",
      largest_partition_, (needed >> 20) + 1, input_.vertex_count, options_.memory_bytes >> 20,
      hint));
}

/// Returns a number of partitions that would fit in memory; 0 if more partitions do not help.
std::uint32_t GraphBuilder::PartitionsNeeded() const {
  const std::uint64_t edge_bytes =
      PartitionBytes() / std::max<std::uint64_t>(largest_partition_, 1) + 1;
  for (std::uint32_t more = partitions_ + 1; more <= kMaxPartitions; ++more) {
    const std::uint64_t edges = info_.edges * 11 / 10 / more + 1;
    if (BuildVertexBytes(input_.vertex_count, more) + edges * edge_bytes <= options_.memory_bytes)
      return more;
  }
  return 0;
}

std::uint64_t GraphBuilder::EdgeBytes() const {
  const bool typed = info_.edge_types.size() > 1;
  return kWriteBytesPerEdge + (typed ? 6 : 0) + (info_.weighted ? 16 : 0) +
         24 * columns_.attributes;
}

std::uint64_t GraphBuilder::PartitionBytes() const {
  return WritePartitionBytes(largest_partition_, EdgeBytes(), most_vertices_, input_.vertex_count);
}

// Chooses the degree that measures how often a row is read. A traversal over in-edges reads a
// vertex once for each edge with that source, which is its out-degree. A store with only out-lists
// can be traversed only over out-edges, where the measure is the in-degree.
Status GraphBuilder::OrderRows() {
  const bool walks_out = info_.directions == Direction::kOut;
  const ReorderInput input{.owner = owners_,
                           .type = input_.vertex_type,
                           .degree = walks_out ? &in_degree_ : &out_degree_};
  auto order = hooks_.order_rows ? hooks_.order_rows(input)
                                 : OrderVertices(input, options_.order, options_.partition.seed);
  if (!order) return order.error();
  vertex_of_row_ = *std::move(order);
  RHIZOME_CHECK(vertex_of_row_.size() == input_.vertex_count);
  return control_.Report({.phase = "order", .done = 1, .total = 1});
}

// Writes the order. It is read back from the file, so that the reader's checks apply to it.
Status GraphBuilder::WriteOrder() {
  const OrderInput order{
      .vertex_of_row = vertex_of_row_,
      .owner_of_vertex = owners_,
      .type_of_vertex = input_.vertex_type,
      .partitions = partitions_,
      .vertex_types = static_cast<std::uint32_t>(input_.vertex_type_names.size())};
  RHIZOME_ASSIGN_OR_RETURN(auto file, writer_->CreateFile(kOrderPath));
  RHIZOME_RETURN_IF_ERROR(VertexOrder::Write(*file, writer_->store_id(), order));
  RHIZOME_RETURN_IF_ERROR(file->Close());
  vertex_of_row_ = {};
  Free(owners_);
  Free(input_.vertex_type);
  RHIZOME_ASSIGN_OR_RETURN(auto sections,
                           SectionFile::Load(writer_->fs(), writer_->root() / kOrderPath,
                                             FileKind::kOrder, writer_->store_id()));
  RHIZOME_ASSIGN_OR_RETURN(auto parsed, VertexOrder::Parse(std::move(sections), input_.vertex_count,
                                                           partitions_, order.vertex_types));
  order_.emplace(std::move(parsed));
  return Status::Ok();
}

Status GraphBuilder::WriteIds() {
  if (input_.id_kind == ExternalIdKind::kDense) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(auto file, writer_->CreateFile(kVertexIdsPath));
  if (input_.write_ids) {
    RHIZOME_RETURN_IF_ERROR(input_.write_ids(*file, writer_->store_id()));
    return file->Close();
  }
  const StoreId& store_id = writer_->store_id();
  RHIZOME_RETURN_IF_ERROR(
      input_.spilled
          ? VertexIds::Write(*file, store_id, input_.spilled->dictionary->Stream(input_.id_kind))
      : input_.id_kind == ExternalIdKind::kInteger
          ? VertexIds::Write(*file, store_id, std::span<const std::int64_t>(input_.integer_ids))
          : VertexIds::Write(*file, store_id, std::span<const std::string>(input_.string_ids)));
  return file->Close();
}

Status GraphBuilder::WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  RHIZOME_ASSIGN_OR_RETURN(auto file, writer_->CreateFile(path));
  RHIZOME_RETURN_IF_ERROR(AppendPaced(*file, bytes, hooks_.pacer));
  return file->Close();
}

Result<RowIds> GraphBuilder::IdsOfRows() {
  const auto nobody = [](VertexId) { return false; };
  if (input_.write_ids && RHIZOME_MUTANT("rows of deleted vertices belong to live ones"))
    return RowIdsOf(input_.id_kind, nobody, input_.id_of);
  if (input_.write_ids) return RowIdsOf(input_.id_kind, input_.is_deleted, input_.id_of);
  if (input_.spilled && input_.spilled->dictionary) {
    const std::uint64_t all = options_.memory_bytes == 0 ? UINT64_MAX : options_.memory_bytes;
    const auto row_of = [this](std::uint64_t vertex) {
      return static_cast<std::uint64_t>(order_->RowOf(static_cast<VertexId>(vertex)));
    };
    RHIZOME_ASSIGN_OR_RETURN(IdSpool by_row, ReorderIds(*input_.spilled->space,
                                                        std::move(input_.spilled->dictionary->ids),
                                                        row_of, all / 4, control_));
    return RowIdsOf(input_.id_kind, std::move(by_row));
  }
  const bool strings = input_.id_kind == ExternalIdKind::kString;
  return RowIdsOf(input_.id_kind, nobody, [this, strings](VertexId vertex) -> ExternalId {
    const auto v = static_cast<std::size_t>(vertex);
    if (strings) return input_.string_ids[v];
    return input_.integer_ids[v];
  });
}

/// Writes the coordinates, from which readers of the Zarr arrays get the vertex of each row. The
/// external ids are not needed afterwards.
Status GraphBuilder::WriteCoordinates() {
  const auto is_array = [&](std::string_view name) {
    return std::any_of(input_.arrays.begin(), input_.arrays.end(),
                       [&](const ArrayInput& array) { return array.name == name; });
  };
  const auto coordinates = ChooseCoordinates(input_.id_kind, info_.vertex_types.size(), is_array);
  const std::string group = EncodeGroupJson(writer_->generation(), coordinates, info_.vertex_types);
  RHIZOME_ASSIGN_OR_RETURN(const FileEntry file,
                           WriteArrayGroup(writer_->fs(), writer_->root(), group));
  RHIZOME_RETURN_IF_ERROR(writer_->AddArray({}, std::span(&file, 1)));
  RHIZOME_ASSIGN_OR_RETURN(const RowIds ids, IdsOfRows());
  const std::uint64_t chunks = CoordinateChunks(info_.vertices);
  for (const Coordinate& coordinate : coordinates) {
    const std::string text = EncodeCoordinateJson(coordinate, info_);
    RHIZOME_RETURN_IF_ERROR(
        WriteFile(CoordinateJsonPath(coordinate), std::as_bytes(std::span(text))));
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      RHIZOME_RETURN_IF_ERROR(
          control_.Report({.phase = "write coordinates", .done = chunk, .total = chunks}));
      RHIZOME_ASSIGN_OR_RETURN(const auto bytes, EncodeCoordinate(coordinate, chunk, *order_, ids));
      RHIZOME_RETURN_IF_ERROR(WriteFile(CoordinateChunkPath(coordinate, chunk), bytes));
    }
  }
  Free(input_.integer_ids);
  Free(input_.string_ids);
  if (input_.spilled) input_.spilled->dictionary.reset();
  return Status::Ok();
}

// Checks that each owner is a partition that holds edges of its vertex, because readers begin at
// the owner.
void GraphBuilder::CheckOwners() const {
  const std::size_t bytes = PartitionSetBytes(partitions_);
  for (std::size_t row = 0; row < order_->size(); ++row) {
    const auto set = std::span(partition_sets_).subspan(row * bytes, bytes);
    const PartitionId owner = order_->OwnerOf(static_cast<Row>(row));
    const bool isolated =
        std::all_of(set.begin(), set.end(), [](std::uint8_t byte) { return byte == 0; });
    RHIZOME_CHECK(isolated || (set[owner / 8U] >> (owner % 8U) & 1) != 0);
  }
}

/// Sorts degrees by row.
void GraphBuilder::SortDegrees(Degrees& degrees) const {
  degrees = degrees.Reordered([this](std::uint64_t row) {
    return static_cast<std::uint64_t>(order_->VertexAt(static_cast<Row>(row)));
  });
}

// Returns the memory that is left for writers of partitions.
std::uint64_t GraphBuilder::BytesForWriters(std::uint64_t beside_bytes) const {
  std::uint64_t held = BuildVertexBytes(input_.vertex_count, partitions_) + beside_bytes;
  if (columns_.in_memory) held += info_.edges * kHeldBytesPerEdge;
  return options_.memory_bytes - std::min(options_.memory_bytes, held);
}

/// Returns the number of concurrent writers: one for each thread, if that many fit in memory.
std::uint32_t GraphBuilder::WriterCount(std::uint64_t beside_bytes) const {
  const std::uint32_t threads = std::min(std::max(options_.partition.threads, 1U), partitions_);
  if (options_.memory_bytes == 0 || largest_partition_ == 0) return threads;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(BytesForWriters(beside_bytes) / PartitionBytes(), 1, threads));
}

bool GraphBuilder::ArraysFitBeside() const {
  if (!hooks_.array_bytes || input_.arrays.empty()) return false;
  return options_.memory_bytes == 0 || BytesForWriters(*hooks_.array_bytes) >= PartitionBytes();
}

Status GraphBuilder::WriteOneByOne() {
  RHIZOME_RETURN_IF_ERROR(WriteTopology(control_, 0));
  return WriteArrays();
}

// Writes partitions and arrays concurrently: lists are bound by the processor and arrays by the
// disk. Only the arrays report progress.
Status GraphBuilder::WriteAllAtOnce() {
  Thread writer;
  RHIZOME_RETURN_IF_ERROR(writer.Start([this] { return WriteArrays(); }));
  JobControl* topology_control = nullptr;
  JobControl topology([&](const JobControl::Progress&) {
    if (control_.cancelled()) topology_control->Cancel();
  });
  topology_control = &topology;
  const Status lists = Guarded([&] { return WriteTopology(topology, *hooks_.array_bytes); });
  const Status arrays = writer.Join();
  return lists.ok() ? arrays : lists;
}

Status GraphBuilder::WriteTopology(const JobControl& control, std::uint64_t beside_bytes) {
  RHIZOME_RETURN_IF_ERROR(edges_->Arrange(*order_));
  SortDegrees(out_degree_);
  SortDegrees(in_degree_);
  RHIZOME_ASSIGN_OR_RETURN(partition_sets_, edges_->PartitionSets());
  CheckOwners();
  TaskRunner runner(partitions_, "topology", control);
  RHIZOME_RETURN_IF_ERROR(runner.Run(WriterCount(beside_bytes), [this](std::uint64_t p) {
    return WritePartition(static_cast<std::uint32_t>(p));
  }));
  if (ends_) info_.edge_ends = ends_->ByType();
  edges_.reset();
  Free(partition_sets_);
  out_degree_ = {};
  in_degree_ = {};
  return Status::Ok();
}

/// Collects the vertex types of the ends of a partition's edges, if there are several types.
void GraphBuilder::CountEnds(const EdgesOfPartition& edges) {
  if (!ends_) return;
  EndsOfEdges ends(info_.edge_types.size());
  for (std::size_t i = 0; i < edges.src.size(); ++i) {
    const TypeId type = edges.type.empty() ? TypeId{0} : edges.type[i];
    const TypeId source = order_->TypeOf(edges.src[i]);
    const TypeId destination = order_->TypeOf(edges.dst[i]);
    ends.Add(type, source, destination);
    if (info_.symmetric) ends.Add(type, destination, source);
  }
  const MutexLock lock(writer_mutex_);
  ends_->AddAll(ends);
}

Status GraphBuilder::WritePartition(std::uint32_t partition) {
  const PartitionContext context{.partition = partition,
                                 .partitions = partitions_,
                                 .edge_types = static_cast<std::uint32_t>(info_.edge_types.size()),
                                 .symmetric = info_.symmetric,
                                 .weighted = info_.weighted,
                                 .attributed = columns_.attributes > 0,
                                 .directions = info_.directions,
                                 .codec = options_.topology_codec,
                                 .out_degree = &out_degree_,
                                 .in_degree = &in_degree_,
                                 .partition_set = partition_sets_};
  RHIZOME_ASSIGN_OR_RETURN(PartitionEdgeList part, edges_->Take(partition));
  CountEnds(part.edges);
  if (!part.attributes.empty()) {
    const auto edge_order = OrderOfEdges(part.edges, *order_, context);
    RHIZOME_RETURN_IF_ERROR(WriteAttributes(partition, edge_order, part.attributes));
    part.attributes.clear();
  }
  std::unique_ptr<GenerationWriter::File> file;
  {
    const MutexLock lock(writer_mutex_);
    RHIZOME_ASSIGN_OR_RETURN(file, writer_->CreateFile(PartitionPath(partition)));
  }
  PacedSink sink(*file, hooks_.pacer);
  RHIZOME_RETURN_IF_ERROR(
      Adjacency::Write(sink, writer_->store_id(), *order_, context, std::move(part.edges)));
  const MutexLock lock(writer_mutex_);
  return file->Close();
}

/// Replaces the values in `rows`, int64, by codes (AttributeTexts::codes).
/// Errors: kInvalidArgument, a value has no code.
Status MapCodes(std::string_view name, std::span<const std::int64_t> codes,
                std::span<std::byte> rows) {
  if (codes.empty()) return Status::Ok();
  for (std::size_t at = 0; at < rows.size(); at += sizeof(std::int64_t)) {
    std::int64_t code = 0;
    std::memcpy(&code, &rows[at], sizeof(code));
    if (code >= static_cast<std::int64_t>(codes.size()))
      return Status::InvalidArgument(fmt::format(
          "edge attribute '{}': code {} has no text; there are {}", name, code, codes.size()));
    code = code < 0 ? -1 : codes[static_cast<std::size_t>(code)];
    std::memcpy(&rows[at], &code, sizeof(code));
  }
  return Status::Ok();
}

Status GraphBuilder::WriteAttributes(std::uint32_t partition,
                                     std::span<const std::uint64_t> edge_order,
                                     const std::vector<EdgeAttribute>& attributes) {
  for (std::size_t a = 0; a < attributes.size(); ++a) {
    const EdgeAttribute& attribute = attributes[a];
    const std::uint64_t array_id = last_array_id_ + a * partitions_ + partition + 1;
    auto facts = attribute.attributes;
    facts.emplace_back(kDimensionAttribute, EdgeDimension(partition));
    std::sort(facts.begin(), facts.end());
    const ArrayInput about{.name = EdgeArrayName(attribute.name(), partition),
                           .dim = attribute.dim(),
                           .dtype = attribute.dtype(),
                           .layout = input_.attribute_layout,
                           .codec = input_.attribute_codec,
                           .chunk_rows = input_.attribute_chunk_rows,
                           .attributes = std::move(facts),
                           .read_rows = {}};
    RHIZOME_ASSIGN_OR_RETURN(ArrayEntry entry, DescribeArray(about, edge_order.size(), array_id));
    const auto texts = input_.attribute_texts.find(attribute.name());
    if (texts != input_.attribute_texts.end()) RemoveShapeOfTexts(entry);
    if (texts != input_.attribute_texts.end() && partition == 0)
      RHIZOME_RETURN_IF_ERROR(AddTexts(texts->second.write, entry));
    RHIZOME_ASSIGN_OR_RETURN(auto writer,
                             ChunkArrayWriter::Create(writer_->fs(), writer_->root(), entry));
    const std::size_t bytes = attribute.row_bytes();
    std::vector<std::byte> rows;
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      const auto places = edge_order.subspan(
          chunk * entry.chunk_rows,
          std::min(entry.chunk_rows, edge_order.size() - chunk * entry.chunk_rows));
      rows.resize(places.size() * bytes);
      for (std::size_t i = 0; i < places.size(); ++i)
        std::memcpy(rows.data() + i * bytes, attribute.bytes().data() + places[i] * bytes, bytes);
      if (texts != input_.attribute_texts.end())
        RHIZOME_RETURN_IF_ERROR(MapCodes(attribute.name(), texts->second.codes, rows));
      RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, rows));
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto files, writer->Finish());
    const MutexLock lock(writer_mutex_);
    RHIZOME_RETURN_IF_ERROR(writer_->AddArray(writer->arrays(), files));
  }
  return Status::Ok();
}

/// Writes the texts of an array's codes, and describes them in the array's attributes.
Status GraphBuilder::AddTexts(const WriteTextsOf& write, ArrayEntry& holder) {
  PacedFileSystem fs(writer_->fs(), hooks_.pacer);
  RHIZOME_ASSIGN_OR_RETURN(const TextFiles texts, write(fs, writer_->root(), holder.name));
  SetAttributes(texts.attributes, holder);
  const MutexLock lock(writer_mutex_);
  return writer_->AddArray({}, texts.files);
}

void GraphBuilder::NumberArrays() {
  for (const ArrayInput& array : input_.arrays)
    last_array_id_ = std::max(last_array_id_, array.array_id);
  for (ArrayInput& array : input_.arrays)
    if (array.array_id == 0) array.array_id = ++last_array_id_;
}

Status GraphBuilder::WriteArrays() {
  for (std::size_t i = 0; i < input_.arrays.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(WriteArray(input_.arrays[i]));
    input_.arrays[i].read_rows = nullptr;  // frees the memory that read_rows captured
    input_.arrays[i].begin = nullptr;
    input_.arrays[i].write_texts = nullptr;
  }
  return Status::Ok();
}

Status GraphBuilder::WriteArray(const ArrayInput& array) {
  const std::string_view bound = BoundType(array.attributes);
  const auto type = TypeNamed(info_.vertex_types, bound);
  std::optional<TypeRows> of_type;
  std::optional<std::uint64_t> chunk_rows;
  if (!bound.empty() && type) {
    of_type.emplace(*order_, *type);
    chunk_rows = RowsOfBoundChunk(of_type->count(), partitions_);
  }
  const TypeRows* const rows = of_type ? &*of_type : nullptr;
  RHIZOME_ASSIGN_OR_RETURN(ArrayEntry entry,
                           DescribeArray(array, info_.vertices, array.array_id, chunk_rows));
  if (array.write_texts) RHIZOME_RETURN_IF_ERROR(AddTexts(array.write_texts, entry));
  PacedFileSystem fs(writer_->fs(), hooks_.pacer);
  RHIZOME_ASSIGN_OR_RETURN(auto writer, ChunkArrayWriter::Create(fs, writer_->root(), entry));
  if (array.begin) RHIZOME_RETURN_IF_ERROR(array.begin(*order_, rows));
  RHIZOME_RETURN_IF_ERROR(WriteChunks(array, *order_, rows, options_.memory_bytes, *writer,
                                      control_, hooks_.chunk_written));
  RHIZOME_ASSIGN_OR_RETURN(const auto files, writer->Finish());
  const MutexLock lock(writer_mutex_);
  return writer_->AddArray(writer->arrays(), files);
}

}  // namespace

std::string EdgeArrayName(std::string_view attribute, std::uint32_t partition) {
  return fmt::format("{}.p{:04}", attribute, partition);
}

std::string EdgeDimension(std::uint32_t partition) { return fmt::format("edge_p{:04}", partition); }

Status BuildGeneration(Store& store, GraphInput input, const BuildOptions& options,
                       const JobControl& control, const BuildHooks& hooks) try {
  return GraphBuilder(store, std::move(input), options, control, hooks).Run();
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
