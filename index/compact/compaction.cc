#include "index/compact/compaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "index/compact/compacted_ids.h"
#include "index/compact/compacted_rows.h"
#include "index/delta/graph_texts.h"
#include "index/delta/stale_vertices.h"
#include "index/delta/type_facts.h"
#include "index/generation/graph_builder.h"
#include "index/generation/kept_order.h"
#include "index/generation/read_back.h"
#include "index/generation/spilled_graph.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/text_files.h"
#include "storage/base/mutant.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
inline namespace internal {

namespace {

// Memory for decoded chunks if there is no limit.
constexpr std::uint64_t kArrayMemoryBytes = std::uint64_t{256} << 20;

// Rows are read in batches of this size, so that rows that moved far are not read one by one. If an
// array has less memory than kManyRowsBytes, one thread reads a chunk's rows at a time.
constexpr std::uint64_t kRowsAtOnceBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kManyRowsBytes = std::uint64_t{128} << 20;

// Limit of OrderDrift: above a mean loss of two hits in a hundred, the rows are ordered again.
constexpr double kMaxDrift = 0.02;

// Rows whose owner changed are far from their new neighbours. If they are more than 1 /
// kMovedOfRows of the rows, rows are read in large batches.
constexpr std::uint64_t kMovedOfRows = 100;

// Texts of a dictionary are copied in blocks of this number.
constexpr std::uint64_t kTextsAtOnce = 256;

/// Returns the vertex types by vertex id; empty if there is only one type.
std::vector<TypeId> VertexTypes(const CompactionInput& input) {
  std::vector<TypeId> types;
  if (input.delta->vertex_types().size() == 1) return types;
  const VertexOrder& order = input.parts->order;
  types.reserve(input.delta->vertices());
  for (std::uint64_t v = 0; v < input.delta->vertices(); ++v) {
    types.push_back(TypeOfVertex(order, *input.delta, static_cast<VertexId>(v)));
  }
  return types;
}

/// Removes retained earlier generations. A handle for reading opens the store for writing to do so.
Status RemoveKept(Store& store) {
  if (store.writable()) return store.RemoveKept();
  RHIZOME_ASSIGN_OR_RETURN(const auto writer,
                           Store::Open(store.fs(), store.path(), Store::Mode::kWrite));
  return writer->RemoveKept();
}

// Estimates the size of the next generation: the size of this one, plus the additions of the delta.
// If the disk has less free space, retained earlier generations are removed first.
Status CheckSpace(Store& store, const CompactionInput& input) {
  std::uint64_t needed = 0;
  for (const FileEntry& file : input.store->manifest().files) needed += file.size_bytes;
  needed += needed / 16 + input.delta->entries() * 64 + input.delta->vertices() * 16 +
            input.delta->text_bytes();
  std::uint64_t edge_bytes = input.change.weighted ? 4 : 0;
  for (const EdgeAttributeSchema& attribute : input.change.edge_attributes)
    edge_bytes += attribute.dim * DataTypeBytes(attribute.dtype);
  needed += edge_bytes * input.parts->info().edges;
  RHIZOME_ASSIGN_OR_RETURN(std::uint64_t free, store.fs().FreeBytes(store.path()));
  if (free >= needed) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(RemoveKept(store));
  RHIZOME_ASSIGN_OR_RETURN(free, store.fs().FreeBytes(store.path()));
  if (free >= needed) return Status::Ok();
  return Status::OutOfSpace(
      fmt::format("'{}': the next generation needs about {} MiB on disk in addition to this one, "
                  "but {} MiB are free; nothing was changed; free disk space and compact again",
                  store.path().string(), (needed >> 20) + 1, free >> 20));
}

std::uint64_t ArrayMemoryBytes(const CompactOptions& options) {
  return options.memory_bytes == 0 ? kArrayMemoryBytes : options.memory_bytes / 4;
}

std::uint32_t ReaderCount(const ArrayEntry& entry, std::uint32_t threads,
                          std::uint64_t memory_bytes) {
  // Several readers of encoded chunks would decode the same chunks.
  if (entry.layout != ArrayLayout::kRow || memory_bytes < kManyRowsBytes) return 1;
  return std::max(threads, 1U);
}

/// Returns a function that writes the texts of the codes of `holder`: a copy of its dictionary,
/// followed by the texts that commits added. Codes do not change, because commits that are written
/// during the compaction contain codes, too.
WriteTextsOf CarryTexts(const CompactionInput& input, const ArrayEntry& holder) {
  return [store = input.store, delta = input.delta, holder](
             FileSystem& fs, const Path& root, std::string_view name) -> Result<TextFiles> {
    if (!delta->FirstText(TextsIdOf(store->manifest(), holder)))
      return CopyTexts(fs, store->GenerationFolder(), holder, store->manifest().files, root, name);
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, GraphTexts::Open(*store, holder, delta));
    std::vector<std::string> block;
    std::uint64_t first = 0;
    const auto at = [&](std::uint64_t i) -> Result<std::string_view> {
      if (i < first || i - first >= block.size()) {
        first = i;
        std::vector<std::int64_t> codes(std::min(kTextsAtOnce, texts->size() - i));
        std::iota(codes.begin(), codes.end(), static_cast<std::int64_t>(i));
        RHIZOME_ASSIGN_OR_RETURN(block, texts->TextsOf(codes));
      }
      return std::string_view(block[i - first]);
    };
    return WriteTexts(fs, root, name, {texts->size(), at, texts->added()});
  };
}

/// Returns an array of the graph carried over to the next generation. `*in_place` is whether rows
/// are mostly copied from front to back; it is set once there is an order.
ArrayInput CarryArray(const CompactionInput& input, const ArrayEntry& entry, std::uint32_t threads,
                      std::uint64_t memory_bytes, const std::shared_ptr<const bool>& in_place) {
  ArrayInput array{.name = entry.name,
                   .dim = entry.dim,
                   .dtype = entry.dtype,
                   .layout = entry.layout,
                   .codec = entry.codec,
                   .chunk_rows = entry.chunk_rows,
                   .inner_rows = entry.inner_rows,
                   .array_id = entry.array_id,
                   .attributes = entry.attributes,
                   .read_rows = {}};
  if (memory_bytes >= kManyRowsBytes && entry.row_bytes() > 0)
    array.rows_at_once = [in_place, rows = kRowsAtOnceBytes / entry.row_bytes()] {
      return *in_place ? 0 : rows;
    };
  // The rows are opened only when the array is written, because the sidecar and chunks take memory.
  auto rows = std::make_shared<std::unique_ptr<CompactedRows>>();
  array.begin = [input, entry, memory_bytes, rows,
                 readers = ReaderCount(entry, threads, memory_bytes)](const VertexOrder&,
                                                                      const TypeRows*) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(
        *rows, CompactedRows::Open(input.store, entry, input.parts, *input.delta, memory_bytes,
                                   readers, input.pacer));
    return Status::Ok();
  };
  array.read_rows = [rows](std::span<const VertexId> vertices, std::span<std::byte> out) {
    return (*rows)->Read(vertices, out);
  };
  if (HasTexts(entry)) array.write_texts = CarryTexts(input, entry);
  return array;
}

/// Returns the bound of the ids of the vertices that have rows in an array.
std::uint64_t EndOfRows(const CompactionInput& input, const ArrayEntry& entry) {
  std::uint64_t end = input.delta->vertices();
  const auto type = TypeNamed(input.delta->vertex_types(), BoundType(entry));
  if (!type) return end;
  const VertexOrder& order = input.parts->order;
  const auto type_of = [&](std::uint64_t v) {
    return TypeOfVertex(order, *input.delta, static_cast<VertexId>(v));
  };
  while (end > 0 && type_of(end - 1) != *type) --end;
  return end;
}

/// Records the first vertex from which an array has no rows, including new vertices.
void MarkRowsGiven(const CompactionInput& input, const ArrayEntry& entry, ArrayInput& array) {
  std::uint64_t given = RowsGiven(entry);
  if (const auto merged = input.delta->Merged()) {
    for (const DeltaRowRef& row : merged->rows)
      if (row.array_id == entry.array_id)
        given = std::max(given, static_cast<std::uint64_t>(row.vertex) + 1);
  }
  std::erase_if(array.attributes,
                [](const auto& fact) { return fact.first == kRowsGivenAttribute; });
  if (given < EndOfRows(input, entry))
    array.attributes.emplace_back(kRowsGivenAttribute, std::to_string(given));
}

/// Marks the rows of a computed array that updates have overwritten. Rows of vertices that are not
/// in the files were computed (PublishMade).
void MarkOverwritten(const CompactionInput& input, const ArrayEntry& entry,
                     std::vector<std::uint8_t>& stale) {
  const auto merged = input.delta->Merged();
  if (merged == nullptr) return;
  for (const DeltaRowRef& row : merged->rows)
    if (row.array_id == entry.array_id &&
        static_cast<std::uint64_t>(row.vertex) < input.parts->order.size())
      stale[static_cast<std::size_t>(row.vertex)] = 1;
}

/// Marks the rows of a computed array that may differ from a new computation.
Status MarkStale(const CompactionInput& input, const ArrayEntry& entry, GraphInput& graph) {
  const auto origin = OriginOf(entry);
  if (!origin) return Status::Ok();
  const Manifest& manifest = input.store->manifest();
  RHIZOME_ASSIGN_OR_RETURN(const auto changes,
                           ChangesAfter(*input.store, input.parts->DeltaBase(), origin->sequence,
                                        input.delta->sequence()));
  // New vertices that the array has seen have their rows in the delta (PublishMade).
  const std::uint64_t first_new = changes == nullptr
                                      ? input.delta->vertices()
                                      : static_cast<std::uint64_t>(changes->first_vertex);
  RHIZOME_ASSIGN_OR_RETURN(auto stale,
                           StaleVertices({.parts = *input.parts,
                                          .view = input.view.get(),
                                          .changes = changes.get(),
                                          .first_new = first_new,
                                          .features_ids = FeatureIdsOf(*origin, manifest),
                                          .layers = origin->layers,
                                          .direction = origin->direction}));
  if (const ArrayEntry* before = manifest.FindArray(StaleName(entry.name))) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, input.store->OpenArray(before->name));
    if (before->rows != input.parts->order.size() || before->row_bytes() != 1)
      return Status::Corruption(fmt::format("array '{}' does not have one byte for each vertex",
                                            ShownName(before->name)));
    std::vector<std::uint8_t> rows(before->rows);
    RHIZOME_RETURN_IF_ERROR(
        array->ReadRows(0, before->rows, std::as_writable_bytes(std::span(rows))));
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (rows[row] != 0)
        stale[static_cast<std::size_t>(input.parts->order.VertexAt(static_cast<Row>(row)))] = 1;
  }
  MarkOverwritten(input, entry, stale);
  const auto count = static_cast<std::uint64_t>(std::count(stale.begin(), stale.end(), 1));
  if (count == 0) return Status::Ok();
  auto& facts = graph.arrays.back().attributes;
  std::erase_if(facts, [](const auto& fact) { return fact.first == kStaleRowsAttribute; });
  facts.emplace_back(kStaleRowsAttribute, std::to_string(count));
  ArrayInput flags = StaleArray(StaleName(entry.name));
  flags.read_rows = [stale = std::move(stale)](std::span<const VertexId> vertices,
                                               std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i)
      out[i] = std::byte{stale[static_cast<std::size_t>(vertices[i])]};
    return Status::Ok();
  };
  graph.arrays.push_back(std::move(flags));
  return Status::Ok();
}

/// Carries over the vertex arrays, with the delta's rows. Edge arrays are written with the edges.
Status CarryArrays(const CompactionInput& input, const CompactOptions& options,
                   const std::shared_ptr<const bool>& in_place, GraphInput& graph) {
  const std::uint64_t memory_bytes = ArrayMemoryBytes(options);
  const Manifest& manifest = input.store->manifest();
  for (const ArrayEntry& array : manifest.arrays) {
    if (array.name.ends_with(kSidecarSuffix)) continue;
    if (IsOfEdges(array)) {
      graph.attribute_layout = array.layout;
      graph.attribute_codec = array.codec;
      graph.attribute_chunk_rows = array.chunk_rows;
      if (HolderOfTexts(manifest, array) == &array)
        graph.attribute_texts[array.name.substr(0, array.name.rfind('.'))] = {
            CarryTexts(input, array)};
      continue;
    }
    const bool flags =
        std::any_of(manifest.arrays.begin(), manifest.arrays.end(), [&](const ArrayEntry& other) {
          return array.name == StaleName(other.name) && OriginOf(other);
        });
    if (flags) continue;
    // The order was parsed, so its number of vertices can be trusted; the manifest may have any
    // number of rows.
    if (array.rows != input.parts->order.size())
      return Status::Corruption(fmt::format("array '{}' has {} rows, but there are {} vertices",
                                            ShownName(array.name), array.rows,
                                            input.parts->order.size()));
    graph.arrays.push_back(CarryArray(input, array, options.threads, memory_bytes, in_place));
    MarkRowsGiven(input, array, graph.arrays.back());
    RHIZOME_RETURN_IF_ERROR(MarkStale(input, array, graph));
  }
  return Status::Ok();
}

/// Chooses the order of the next generation: old rows keep their order while it is still close to
/// PDS. Sets `in_place` if nearly all rows then keep their neighbours.
Result<VertexColumn> ChooseOrder(const ReorderInput& input, const VertexOrder& before,
                                 bool& in_place) {
  RHIZOME_ASSIGN_OR_RETURN(auto sorted, OrderVertices(input, OrderKind::kPds, 0));
  auto order = KeepOrder(input, before);
  if (OrderDrift(input, order, sorted) > kMaxDrift) return sorted;
  std::uint64_t moved = 0;
  for (std::uint64_t v = 0; v < before.size(); ++v)
    if (before.OwnerOf(before.RowOf(static_cast<VertexId>(v))) != input.owner[v]) ++moved;
  in_place = moved <= before.size() / kMovedOfRows;
  return order;
}

/// Returns whether all edges fit in memory while they are partitioned and written.
bool EdgesFit(const CompactionInput& input, const BuildOptions& build) {
  if (build.memory_bytes == 0) return true;
  const GenerationInfo& info = input.parts->info();
  const std::uint64_t edge_bytes =
      kWriteBytesPerEdge + kHeldBytesPerEdge + (input.delta->edge_types().size() > 1 ? 6 : 0) +
      (info.weighted || input.change.weighted ? 16 : 0) +
      24 * (input.parts->edge_attributes.size() + input.change.edge_attributes.size());
  const std::uint64_t edges = info.edges + input.delta->entries();
  const std::uint64_t vertices = input.delta->vertices();
  return BuildVertexBytes(vertices, build.partition.partitions) +
             WritePartitionBytes(edges, edge_bytes, vertices, vertices) <=
         build.memory_bytes;
}

std::uint64_t SpillQueueBytes(std::uint64_t memory_bytes) {
  return std::clamp<std::uint64_t>(memory_bytes / 32, 256 << 10, 16 << 20);
}

Status CheckOptions(const CompactionInput& input, const CompactOptions& options) {
  if (!options.expire_attribute.empty()) {
    const auto& attributes = input.parts->edge_attributes;
    const auto at = std::find_if(
        attributes.begin(), attributes.end(),
        [&](const EdgeAttributeInfo& about) { return about.name == options.expire_attribute; });
    if (at == attributes.end() || at->dtype != DataType::kInt64 || at->dim != 1)
      return Status::InvalidArgument(fmt::format(
          "'{}' is not an integer attribute of this store's edges", options.expire_attribute));
  }
  return Status::Ok();
}

}  // namespace

KeepRule RuleOf(const CompactOptions& options, KeepRule rule) {
  rule.generations = options.keep_generations.value_or(rule.generations);
  rule.bytes = options.keep_bytes.value_or(rule.bytes);
  return rule;
}

// Compacts a graph:
// 1. checks the options and the free space on disk;
// 2. chooses the settings of the build from the generation and the options;
// 3. collects the edges: in their existing partitions, or, to repartition, all of them in memory or
//    in spill files;
// 4. sets up the carried arrays, with their stale marks;
// 5. runs BuildGeneration, which writes the files and calls the commit hook: it reads the files
//    back, loads the new generation and switches to it.
Status CompactGeneration(Store& store, const CompactionInput& input, const CompactOptions& options,
                         const JobControl& control, const SwitchGeneration& switch_to) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(input, options));
  RHIZOME_RETURN_IF_ERROR(CheckSpace(store, input));
  const GenerationInfo& info = input.parts->info();

  BuildOptions build;
  build.partition = options.partition;
  build.partition.threads = options.threads;
  if (!options.repartition) {
    build.partition.kind =
        ParseStoredPartitioner(info.partitioner).value_or(PartitionerKind::kRefined);
    build.partition.partitions = info.partitions;
  } else if (options.partition.partitions == 0) {
    build.partition.partitions = info.partitions;
  }
  build.order = options.order ? *options.order : ParseOrder(info.order).value_or(OrderKind::kPds);
  build.directions = info.directions;
  build.topology_codec = input.parts->partitions.front().codec();
  build.memory_bytes = options.memory_bytes;

  const auto in_place = std::make_shared<bool>(false);
  std::optional<ExpiredEdges> expired;
  if (!options.expire_attribute.empty())
    expired = {options.expire_attribute, options.expire_before};
  auto edges = std::make_shared<CompactedEdges>(input.parts, input.delta, input.view,
                                                std::move(expired), input.change, control);
  const CompactedIds ids(*input.parts, *input.delta);
  GraphInput graph;
  graph.vertex_count = input.delta->vertices();
  graph.undirected = info.symmetric;
  graph.vertex_type = VertexTypes(input);
  graph.vertex_type_names = input.delta->vertex_types();
  graph.edge_type_names = input.delta->edge_types();
  graph.id_kind = ids.kind();
  graph.write_ids = [&ids](ByteSink& sink, const StoreId& store_id) {
    return ids.Write(sink, store_id);
  };
  graph.id_of = [&ids](VertexId vertex) { return ids.IdOf(vertex); };
  graph.is_deleted = [&ids](VertexId vertex) { return ids.IsDeleted(vertex); };
  std::unique_ptr<SpillSpace> space;  // must outlive the graph's spill files
  if (!options.repartition) {
    graph.divided = edges;
  } else if (EdgesFit(input, build)) {
    RHIZOME_ASSIGN_OR_RETURN(graph.edges, edges->TakeAll());
    graph.weighted = edges->columns().weighted;
  } else {
    RHIZOME_ASSIGN_OR_RETURN(space, SpillSpace::Create(store.fs(), store.scratch(), "compact",
                                                       SpillQueueBytes(build.memory_bytes)));
    graph.spilled = std::make_shared<SpilledGraph>();
    graph.spilled->space = space.get();
    graph.spilled->memory_bytes = build.memory_bytes;
    RHIZOME_RETURN_IF_ERROR(edges->Spill(*graph.spilled));
  }
  edges.reset();
  RHIZOME_RETURN_IF_ERROR(CarryArrays(input, options, in_place, graph));

  ReadBack read_back(store.fs(), input.pacer, control);
  BuildHooks hooks;
  hooks.pacer = input.pacer;
  const Path next = Store::GenerationFolder(store.path(), input.store->manifest().generation + 1);
  if (options.threads > 1) {
    // The checksums of old and new rows are in memory along with the rows.
    hooks.array_bytes =
        ArrayMemoryBytes(options) + options.memory_bytes / 16 + 8 * input.delta->vertices();
    hooks.chunk_written = [&](const FileEntry& chunk) { read_back.Add(next, chunk); };
  }
  if (!options.repartition && !options.order && build.order == OrderKind::kPds)
    hooks.order_rows = [&](const ReorderInput& rows) {
      return ChooseOrder(rows, input.parts->order, *in_place);
    };
  hooks.commit = [&](GenerationWriter& writer, const GenerationInfo& made) -> Status {
    const bool again = RHIZOME_MUTANT("compaction leaves a commit in the delta");
    const std::uint64_t base = input.delta->sequence() - (again ? 1 : 0);
    writer.set_keep(RuleOf(options, store.Snapshot()->manifest().keep));
    RHIZOME_ASSIGN_OR_RETURN(const auto written, writer.Preview(made, base));
    RHIZOME_RETURN_IF_ERROR(read_back.Finish(next, written->manifest().files, options.threads));
    // All partitions are loaded now, even if GraphOptions::partitions listed them. The next
    // generation may have another number of partitions, so all of its partitions are loaded as
    // well.
    GraphOptions loading = input.parts->options;
    loading.partitions.clear();
    RHIZOME_ASSIGN_OR_RETURN(auto parts, GraphParts::Load(written, loading));
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    return switch_to(std::move(parts),
                     [&](Store& into) { return writer.CommitInto(into, made, base); });
  };
  return BuildGeneration(store, std::move(graph), build, control, hooks);
}

}  // namespace internal
}  // namespace rhizome
