#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "index/generation/spilled_graph.h"
#include "index/ids/spilled_ids.h"
#include "index/ingest/array_file.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/given_homes.h"
#include "index/ingest/hold_out.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_memory.h"
#include "index/ingest/ingest_steps.h"
#include "index/ingest/latest_edges.h"
#include "index/ingest/node_arrays.h"
#include "index/ingest/node_file.h"
#include "index/ingest/spilled_array.h"
#include "index/ingest/text_column.h"
#include "index/ingest/typed_arrays.h"
#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/bytes_left.h"

namespace rhizome {
inline namespace internal {
namespace {

// Represents "no limit" in the arithmetic of budgets.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 40;

/// One ingestion through spill files. Memory: shares of the budget, plus the nodes file and
/// vertex-sized arrays.
class SpillingIngest {
 public:
  SpillingIngest(Store& store, const Path& path, const InputPlan& plan, const JobControl& control)
      : store_(store),
        path_(path),
        plan_(plan),
        options_(plan.options),
        control_(control),
        memory_bytes_(options_.memory_bytes == 0 ? kNoLimit : options_.memory_bytes),
        context_(store.fs(), plan, control, /*spills=*/true) {}

  // Ingests through spill files:
  // 1. chooses the edges that are held out by time;
  // 2. reads nodes, edges and the headers of arrays, then numbers the ids (Read);
  // 3. assembles the input of the build (Assemble);
  // 4. decides between building in memory and by partition (Fit);
  // 5. builds the generation.
  Status Run(IngestReport& report) {
    const std::uint64_t queue_bytes =
        std::clamp<std::uint64_t>(memory_bytes_ / 32, 256 << 10, 16 << 20);
    RHIZOME_ASSIGN_OR_RETURN(
        space_, SpillSpace::Create(store_.fs(), store_.scratch(), "ingest", queue_bytes));
    report.spilled = true;
    RHIZOME_RETURN_IF_ERROR(HoldOut());
    RHIZOME_RETURN_IF_ERROR(Read());
    RHIZOME_ASSIGN_OR_RETURN(GraphInput input, Assemble());
    RHIZOME_ASSIGN_OR_RETURN(const BuildOptions build, Fit(input));
    report.bad_lines = context_.bad_lines();
    report.notes = context_.Notes();
    std::shared_ptr<SpilledGraph> spilled = input.spilled;  // destroyed before the space
    const auto counts = CountTypes(input);
    const Status built =
        BuildGeneration(store_, std::move(input), build, control_, HooksOf(held_out_.get()));
    if (held_out_ != nullptr) report.held_out = held_out_->Report();
    if (held_out_ != nullptr && !built.ok()) held_out_->RemoveFiles();
    if (built.ok())
      for (std::string& note : NotesOnMixedChunks(store_.manifest(), counts))
        report.notes.push_back(std::move(note));
    report.spilled_bytes = space_->bytes_written();
    arrays_.clear();
    return built;
  }

 private:
  std::uint64_t Left() const { return BytesLeft(memory_bytes_, context_.held_bytes()); }

  Status HoldOut() {
    const HeldOutEdges::Spilled spilled{*space_, store_.scratch()};
    RHIZOME_ASSIGN_OR_RETURN(held_out_,
                             HeldOutEdges::Create(store_.fs(), options_, path_, &spilled));
    if (held_out_ == nullptr || options_.hold_out.by != HoldOutOptions::By::kTime)
      return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(EdgeSpool choices,
                             ChooseLatest(store_.fs(), plan_, *space_, Left(), control_));
    return held_out_->SetChoices(std::move(choices));
  }

  Status Read() {
    SpilledIds ids(*space_, options_.id_type, memory_bytes_);
    if (options_.nodes) {
      RHIZOME_ASSIGN_OR_RETURN(nodes_, ReadNodes(context_, ids));
      context_.Hold(nodes_.memory_bytes());
    }
    RHIZOME_ASSIGN_OR_RETURN(edges_, ReadEdges(context_, ids, space_.get(), held_out_.get()));
    if (held_out_ != nullptr) RHIZOME_RETURN_IF_ERROR(held_out_->EndEdges(EdgeTypeNames(edges_)));
    for (const ArrayFile& file : options_.arrays) {
      if (IsSplitOfHomes(file)) {
        RHIZOME_ASSIGN_OR_RETURN(split_, ReadArrayFile(context_, file));
        rows_.push_back(
            {split_->name, split_->path, split_->rows, split_->exact_rows, file.vertex_type});
        continue;
      }
      RHIZOME_ASSIGN_OR_RETURN(auto array,
                               SpilledArray::Open(context_, file, *space_, ArrayBytes()));
      rows_.push_back({array->name, array->path, array->rows, array->exact_rows, file.vertex_type});
      arrays_.push_back(std::move(array));
    }
    RHIZOME_ASSIGN_OR_RETURN(homes_, GivenHomes::Read(context_));
    if (options_.homes_file) rows_.push_back(homes_.rows(options_));
    const ImpliedVertices implied = CountImplied(options_, rows_);
    RHIZOME_RETURN_IF_ERROR(context_.CheckMemory(
        fmt::format("{} vertices", implied.count),
        implied.count > UINT64_MAX / 256 ? UINT64_MAX : implied.count * kBuildBytesPerVertex));
    RHIZOME_ASSIGN_OR_RETURN(vertices_,
                             std::move(ids).Resolve(implied.count, implied.why, control_));
    return CheckVertexBound(options_, vertices_.count);
  }

  /// Returns whether the file is the `split` array and homes are wanted. Homes need the training
  /// vertices before arrays are written, so this array is held in memory.
  bool IsSplitOfHomes(const ArrayFile& file) const {
    return file.name == "split" && options_.build.homes != HomeRule::kNone;
  }

  std::uint64_t ArrayBytes() const { return std::min<std::uint64_t>(Left() / 4, 1 << 30); }

  Result<GraphInput> Assemble() {
    if (vertices_.count == 0)
      return Fail(Status::InvalidArgument("the input has no vertices; nothing was written"));
    const bool nodes = options_.nodes.has_value();
    for (const ArrayRows& array : rows_)
      if (array.vertex_type.empty())
        RHIZOME_RETURN_IF_ERROR(
            CheckArrayRows(array, nodes ? nodes_.lines : vertices_.count, nodes));
    RHIZOME_RETURN_IF_ERROR(CheckChunks());
    GraphInput input;
    input.vertex_count = vertices_.count;
    input.undirected = options_.undirected;
    input.id_kind = vertices_.kind;
    input.edge_type_names = EdgeTypeNames(edges_);
    SetVertexTypes(options_, nodes_, vertices_.nodes, input);
    RHIZOME_RETURN_IF_ERROR(
        SetEndTypes(options_, InputOf(vertices_.count, vertices_.edges), input));
    if (held_out_ != nullptr) {
      RHIZOME_ASSIGN_OR_RETURN(vertices_.edges,
                               held_out_->Remove(vertices_.count, vertices_.edges));
    }
    RHIZOME_ASSIGN_OR_RETURN(input.arrays,
                             NodeArrays(context_, nodes_, vertices_.nodes, vertices_.count));
    RHIZOME_ASSIGN_OR_RETURN(input.homes, std::move(homes_).ByVertex(
                                              options_, nodes_, vertices_.nodes, vertices_.count));
    RHIZOME_RETURN_IF_ERROR(AddArrays(input));
    input.spilled = std::make_shared<SpilledGraph>();
    TakeSpilled(*input.spilled, input.edge_type_names.size() > 1);
    input.attribute_texts = std::move(edges_.texts);
    return input;
  }

  /// Adds the arrays of the files, each mapped to its vertices, in the order of the options, as in
  /// memory, because they are numbered in this order.
  Status AddArrays(GraphInput& input) {
    RHIZOME_ASSIGN_OR_RETURN(const TypedRows typed,
                             TypedRows::Make(options_, vertices_.nodes, input));
    context_.Hold(typed.memory_bytes());
    const bool nodes = options_.nodes.has_value();
    RHIZOME_RETURN_IF_ERROR(typed.CheckRows(rows_, nodes ? nodes_.lines : vertices_.count, nodes));
    const auto row_of_vertex = std::make_shared<const std::vector<std::int64_t>>(
        nodes && split_ ? RowsOfVertices(nodes_, vertices_.nodes, vertices_.count)
                        : std::vector<std::int64_t>());
    context_.Hold(row_of_vertex->size() * sizeof(std::int64_t));
    auto vertex_of_line = std::make_shared<std::vector<VertexId>>();
    if (nodes && !arrays_.empty())
      *vertex_of_line = VerticesOfLines(nodes_, std::move(vertices_.nodes));
    std::vector<VertexId>().swap(vertices_.nodes);
    context_.Hold(vertex_of_line->size() * sizeof(VertexId));
    auto spilled_array = arrays_.begin();
    for (const ArrayFile& file : options_.arrays) {
      const bool bound = typed.Has(file.vertex_type);
      input.arrays.push_back(
          IsSplitOfHomes(file)
              ? BindArray(split_,
                          bound ? typed.RowsOf(file.vertex_type, vertices_.count) : row_of_vertex)
              : BindSpilledArray(*spilled_array++,
                                 bound ? typed.VerticesOf(file.vertex_type) : vertex_of_line));
      if (file.texts) RHIZOME_RETURN_IF_ERROR(SetTexts(file.texts, input.arrays.back()));
    }
    SetLayouts(options_, input);
    BindToTypes(options_, typed, input);
    return Status::Ok();
  }

  /// Checks that whole chunks fit in memory: an array's chunk is held once as rows, and once more
  /// if it is compressed.
  Status CheckChunks() const {
    for (const auto& array : arrays_) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t chosen,
                               DefaultChunkRows(vertices_.count, array->row_bytes()));
      const std::uint64_t rows = options_.chunk_rows != 0 ? options_.chunk_rows : chosen;
      const std::uint64_t held = options_.layout == ArrayLayout::kRow ? 1 : 2;
      RHIZOME_RETURN_IF_ERROR(context_.CheckMemory(
          fmt::format("array '{}', in chunks of {} rows (`chunk_rows`)", array->name, rows),
          vertices_.count * kBuildBytesPerVertex + held * rows * array->row_bytes()));
    }
    return Status::Ok();
  }

  void TakeSpilled(SpilledGraph& spilled, bool typed) {
    spilled.space = space_.get();
    spilled.ends = std::move(vertices_.edges);
    if (edges_.spool) spilled.columns = std::move(*edges_.spool);
    spilled.typed = typed;
    spilled.weighted = HasWeights(options_);
    spilled.attributes = std::move(edges_.columns.attributes);
    if (vertices_.kind != ExternalIdKind::kDense)
      spilled.dictionary = std::move(vertices_.dictionary);
  }

  /// Decides between building in memory and by partition, and chooses the number of partitions.
  Result<BuildOptions> Fit(GraphInput& input) {
    BuildOptions build = options_.build;
    const std::uint64_t vertex_bytes = input.vertex_count * kBuildBytesPerVertex;
    RHIZOME_RETURN_IF_ERROR(context_.CheckMemory(
        fmt::format("the {} vertices alone", input.vertex_count), vertex_bytes));
    SpilledGraph& spilled = *input.spilled;
    const std::uint64_t edges = spilled.ends.edges * (options_.undirected ? 2 : 1);
    const std::uint64_t edge_bytes = kWriteBytesPerEdge + (spilled.typed ? 6 : 0) +
                                     (spilled.weighted ? 16 : 0) + 3 * EdgeAttributeBytes(options_);
    build.memory_bytes = Left();
    spilled.memory_bytes = Left();
    const bool holds =
        HeldBuildBytes(options_, input.vertex_count, spilled.ends.edges, edge_bytes) <= Left();
    if (holds && options_.spill != IngestOptions::Spill::kAlways) {
      RHIZOME_RETURN_IF_ERROR(LoadEdges(input));
      return build;
    }
    if (!options_.choose_partitions || options_.homes_file) return build;
    const std::uint32_t partitions =
        PartitionsThatFit(Left(), input.vertex_count, edges, edge_bytes, build.partition.threads,
                          build.partition.partitions);
    // If no number suffices, the builder reports the reason.
    if (partitions > 0) build.partition.partitions = partitions;
    return build;
  }

  Status LoadEdges(GraphInput& input) {
    SpilledGraph& spilled = *input.spilled;
    EdgeList& edges = input.edges;
    edges.src.reserve(spilled.ends.edges);
    edges.dst.reserve(spilled.ends.edges);
    edges.attributes = spilled.attributes;
    input.weighted = spilled.weighted;
    {
      RHIZOME_ASSIGN_OR_RETURN(SpilledEdgeReader reader, SpilledEdgeReader::Open(spilled));
      EdgeList block;
      while (true) {
        RHIZOME_RETURN_IF_ERROR(control_.Report(
            {.phase = "load edges", .done = edges.size(), .total = spilled.ends.edges}));
        RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
        if (!more) break;
        edges.src.insert(edges.src.end(), block.src.begin(), block.src.end());
        edges.dst.insert(edges.dst.end(), block.dst.begin(), block.dst.end());
        edges.type.insert(edges.type.end(), block.type.begin(), block.type.end());
        edges.weight.insert(edges.weight.end(), block.weight.begin(), block.weight.end());
        for (std::size_t a = 0; a < edges.attributes.size(); ++a)
          RHIZOME_RETURN_IF_ERROR(edges.attributes[a].AddAll(block.attributes[a]));
      }
    }
    spilled.edges_in_memory = true;
    spilled.ends = {};
    spilled.columns.reset();
    return Status::Ok();
  }

  Store& store_;
  const Path& path_;
  const InputPlan& plan_;
  const IngestOptions& options_;
  const JobControl& control_;
  const std::uint64_t memory_bytes_;
  IngestContext context_;
  std::unique_ptr<SpillSpace> space_;
  std::unique_ptr<HeldOutEdges> held_out_;  // null if no edges are held out
  NodeTable nodes_;
  IngestedEdges edges_;
  std::vector<ArrayRows> rows_;
  std::vector<std::shared_ptr<SpilledArray>> arrays_;
  std::shared_ptr<const LoadedArray> split_;  // see IsSplitOfHomes
  GivenHomes homes_;
  SpilledIds::Vertices vertices_;
};

}  // namespace

Result<IngestReport> IngestSpilled(FileSystem& fs, const Path& path, const InputPlan& plan,
                                   const JobControl& control) {
  const auto build = [&](Store& store, IngestReport& report) {
    return SpillingIngest(store, path, plan, control).Run(report);
  };
  return MakeStore(fs, path, plan.options.store_id, control, build,
                   {.scratch = plan.options.scratch});
}

}  // namespace internal
}  // namespace rhizome
