// Loads the files of a generation: order, dictionary and partitions. Each is loaded, parsed and
// compared with the manifest; only the sections that the options leave on disk are not read. With
// TopologyPlace::kLazy, the files are opened as paged files, which are read when they are used.

#include "index/delta/graph_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "index/base/parallel.h"
#include "index/delta/graph_parse.h"
#include "index/generation/graph_builder.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/block_cache.h"
#include "index/topology/file_rows.h"
#include "index/topology/section_struct.h"
#include "index/topology/vertex_ids_format.h"
#include "storage/array/array_rules.h"
#include "storage/section/section_file.h"
#include "storage/section/section_format.h"
#include "storage/store/paged_file.h"

namespace rhizome {
namespace {

// The sections left on disk with TopologyPlace::kDirect.
constexpr std::array<std::uint32_t, 4> kLists = {
    Kind(PartitionSection::kOutNeighbors), Kind(PartitionSection::kOutLists),
    Kind(PartitionSection::kInNeighbors), Kind(PartitionSection::kInLists)};

// The sections left on disk if only the numbers of vertices are needed.
constexpr std::array<std::uint32_t, 3> kExternalIds = {
    static_cast<std::uint32_t>(IdsSection::kIntegers),
    static_cast<std::uint32_t>(IdsSection::kOffsets),
    static_cast<std::uint32_t>(IdsSection::kBytes)};

std::string_view DirectionName(Direction direction) {
  switch (direction) {
    case Direction::kOut:
      return "out";
    case Direction::kIn:
      return "in";
    default:
      return "both";
  }
}

// Returns for each partition whether it must be loaded: the partitions that the options name, or
// all.
Result<std::vector<bool>> WantedPartitions(const Store& store, const GraphOptions& options) {
  const std::uint32_t count = store.manifest().info.partitions;
  std::vector<bool> wanted(count, options.partitions.empty());
  for (const PartitionId partition : options.partitions) {
    if (partition >= count)
      return Fail(Status::InvalidArgument(
          fmt::format("{}: there is no partition {} to load; the store has {}, counted from 0",
                      store.path().string(), partition, count)));
    wanted[partition] = true;
  }
  return wanted;
}

// Loads the partitions in parallel and returns the error of the lowest failed partition.
Result<std::vector<Adjacency>> LoadPartitions(const Store& store, const VertexOrder& order,
                                              const GraphOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<bool> wanted, WantedPartitions(store, options));
  std::vector<std::optional<Result<Adjacency>>> loaded(wanted.size());
  ParallelFor(loaded.size(), [&](std::size_t i) {
    const auto p = static_cast<std::uint32_t>(i);
    loaded[i].emplace(wanted[i] ? LoadPartition(store, order, p, options.topology)
                                : LoadPartitionHeader(store, order, p, options.topology));
  });
  std::vector<Adjacency> partitions;
  partitions.reserve(loaded.size());
  std::uint64_t edges = 0;
  for (auto& result : loaded) {
    if (!*result) return Fail(result->error());
    edges += (*result)->edge_count();
    partitions.push_back(*std::move(*result));
  }
  const std::uint64_t expected = store.manifest().info.edges;
  if (edges != expected)
    return Fail(Status::Corruption(
        fmt::format("{}: the partitions hold {} edges, but the manifest says {}",
                    (store.GenerationFolder() / "topology").string(), edges, expected)));
  return partitions;
}

// Creates one cache for the blocks of all partitions.
std::shared_ptr<BlockCache> KeepBlocks(std::vector<Adjacency>& partitions,
                                       const GraphOptions& options, Metrics* metrics) {
  if (options.topology == TopologyPlace::kMemory || options.list_cache_bytes == 0) return nullptr;
  std::uint64_t blocks = 0;
  for (const Adjacency& partition : partitions)
    if (partition.loaded()) blocks += partition.block_count();
  auto cache =
      std::make_shared<BlockCache>(BlockCache::Options{.block_count = blocks,
                                                       .block_bytes = kSectionBlockBytes,
                                                       .memory_bytes = options.list_cache_bytes,
                                                       .metrics = metrics,
                                                       .evictions = Counter::kListCacheEvictions});
  std::uint64_t first = 0;
  for (Adjacency& partition : partitions) {
    if (!partition.loaded()) continue;
    if (!partition.resident()) partition.KeepBlocks(cache, first);
    first += partition.block_count();
  }
  return cache;
}

}  // namespace

std::vector<EdgeAttributeInfo> internal::EdgeAttributesOf(const Manifest& manifest) {
  const std::string suffix = EdgeArrayName("", 0);
  std::vector<EdgeAttributeInfo> attributes;
  for (const ArrayEntry& array : manifest.arrays) {
    if (FirstDimension(array) != EdgeDimension(0) || !array.name.ends_with(suffix)) continue;
    attributes.push_back({.name = array.name.substr(0, array.name.size() - suffix.size()),
                          .dtype = array.dtype,
                          .dim = array.dim,
                          .first_value = EdgeValueCount(attributes),
                          .attributes = array.attributes});
    std::erase_if(attributes.back().attributes,
                  [](const auto& fact) { return fact.first == kDimensionAttribute; });
  }
  return attributes;
}

std::uint64_t internal::EdgeValueCount(std::span<const EdgeAttributeInfo> attributes) {
  return attributes.empty() ? 0 : attributes.back().first_value + attributes.back().dim;
}

// Loads a generation: first the order, because the partitions are checked against it, then the ids
// and all partitions.
Result<std::shared_ptr<const GraphParts>> GraphParts::Load(std::shared_ptr<const Store> store,
                                                           const GraphOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto order, LoadOrder(*store, options.topology));
  RHIZOME_ASSIGN_OR_RETURN(auto ids, LoadVertexIds(*store, options.topology));
  RHIZOME_ASSIGN_OR_RETURN(auto partitions, LoadPartitions(*store, order, options));
  auto list_cache = KeepBlocks(partitions, options, store->metrics());
  auto attributes = EdgeAttributesOf(store->manifest());
  if (EdgeValueCount(attributes) > kMaxEdgeValues)
    return Fail(Status::Corruption(
        fmt::format("the manifest has {} values per edge, but at most {} are possible",
                    EdgeValueCount(attributes), kMaxEdgeValues)));
  return std::shared_ptr<const GraphParts>(
      new GraphParts{.store = std::move(store),
                     .options = options,
                     .list_cache = std::move(list_cache),
                     .arrays = std::make_shared<OpenArrays>(),
                     .order = std::move(order),
                     .ids = std::move(ids),
                     .partitions = std::move(partitions),
                     .edge_attributes = std::move(attributes)});
}

Delta::Base GraphParts::DeltaBase() const {
  return {.symmetric = info().symmetric,
          .string_ids = info().id_kind == ExternalIdKind::kString,
          .attribute_count = static_cast<std::uint32_t>(EdgeValueCount(edge_attributes)),
          .vertices = info().vertices,
          .vertex_types = info().vertex_types,
          .edge_types = info().edge_types,
          .sequence = store->base_sequence()};
}

std::optional<ExternalId> GraphParts::OwnKind(const ExternalId& id) const {
  const bool strings = info().id_kind == ExternalIdKind::kString;
  if (strings == std::holds_alternative<std::string>(id)) return id;
  if (strings) return ExternalId(ToString(id));
  if (const auto integer = ParseCanonicalInteger(std::get<std::string>(id))) return *integer;
  return std::nullopt;
}

std::optional<VertexId> GraphParts::Find(const ExternalId& id, const Delta& delta) const {
  if (delta.empty()) return ids.Find(id);
  if (const auto own = OwnKind(id)) {
    if (const auto vertex = delta.Find(*own)) return vertex;
  }
  const auto vertex = ids.Find(id);
  return vertex && !delta.IsDeleted(*vertex) ? vertex : std::nullopt;
}

Status GraphParts::NotLoaded(PartitionId partition, std::string_view what,
                             std::optional<Row> row) const {
  std::string named;
  for (std::size_t p = 0; p < partitions.size(); ++p)
    if (partitions[p].loaded()) named += fmt::format("{}{}", named.empty() ? "" : ", ", p);
  return Status::InvalidArgument(
      fmt::format("{}: partition {} is not loaded, but {}{} needs it: this graph was opened with "
                  "partitions {} of {}; add it to GraphOptions::partitions",
                  store->path().string(), partition, what,
                  row ? fmt::format(" {}", *row) : std::string(), named, partitions.size()));
}

Status GraphParts::CheckDirection(Direction direction) const {
  if (partitions.front().has(direction)) return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "{}: {}-lists were requested, but this store keeps only {}-lists; ingest it again with "
      "`directions=both`",
      store->path().string(), DirectionName(direction), DirectionName(info().directions)));
}

Status GraphParts::CheckWhole(std::string_view what) const {
  if (options.topology == TopologyPlace::kLazy)
    return Status::InvalidArgument(fmt::format(
        "{}: this graph was opened with `topology=lazy`, for look-ups of a few vertices, "
        "but {} may need all lists; open it with another `topology`",
        store->path().string(), what));
  return CheckComplete(what);
}

Status GraphParts::CheckComplete(std::string_view what) const {
  for (std::size_t p = 0; p < partitions.size(); ++p)
    RHIZOME_RETURN_IF_ERROR(CheckLoaded(static_cast<PartitionId>(p), what));
  return Status::Ok();
}

Status GraphParts::MissingRow(Row row, PartitionId owner, PartitionId partition) const {
  return Status::Corruption(
      fmt::format("{}: row {} is missing, but partition {} has edges of it",
                  (store->GenerationFolder() / PartitionPath(partition)).string(), row, owner));
}

Result<VertexOrder> internal::ParseOrder(SectionFile file, const GenerationInfo& info) {
  return VertexOrder::Parse(std::move(file), info.vertices, info.partitions,
                            static_cast<std::uint32_t>(info.vertex_types.size()));
}

Result<VertexIds> internal::ParseVertexIds(SectionFile file, const GenerationInfo& info) {
  return VertexIds::Parse(std::move(file), info.id_kind, info.vertices);
}

namespace {

// Loads a file; with kDirect, without the sections `lists`.
Result<SectionFile> OpenFile(const Store& store, std::string_view path, FileKind kind,
                             TopologyPlace place, std::span<const std::uint32_t> lists = {}) {
  if (place == TopologyPlace::kLazy) return OpenPagedFile(store, path, kind);
  return store.LoadSectionFile(
      path, kind, place == TopologyPlace::kDirect ? lists : std::span<const std::uint32_t>());
}

Result<Adjacency> FitsManifest(Adjacency adjacency, const GenerationInfo& info) {
  const bool out = info.symmetric || info.directions != Direction::kIn;
  const bool in = info.symmetric || info.directions != Direction::kOut;
  if (adjacency.symmetric() != info.symmetric || adjacency.weighted() != info.weighted ||
      adjacency.has(Direction::kOut) != out || adjacency.has(Direction::kIn) != in) {
    return Fail(Status::Corruption(
        fmt::format("{}: header: directions, symmetry or weights differ from the manifest",
                    adjacency.file().path().string())));
  }
  return adjacency;
}

}  // namespace

Result<Adjacency> internal::ParsePartition(SectionFile file, const GenerationInfo& info,
                                           const VertexOrder& order, std::uint32_t partition) {
  RHIZOME_ASSIGN_OR_RETURN(auto adjacency,
                           Adjacency::Parse(std::move(file), order, partition, info.partitions,
                                            static_cast<std::uint32_t>(info.edge_types.size())));
  return FitsManifest(std::move(adjacency), info);
}

Result<VertexOrder> internal::LoadOrder(const Store& store, TopologyPlace place) {
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenFile(store, kOrderPath, FileKind::kOrder, place));
  return ParseOrder(std::move(file), store.manifest().info);
}

Result<VertexIds> internal::LoadVertexIds(const Store& store, TopologyPlace place) {
  const GenerationInfo& info = store.manifest().info;
  if (info.id_kind == ExternalIdKind::kDense) return VertexIds::Dense(info.vertices);
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenFile(store, kVertexIdsPath, FileKind::kVertexIds, place));
  return ParseVertexIds(std::move(file), info);
}

Result<std::vector<VertexId>> internal::LoadDeletedVertices(const Store& store) {
  const GenerationInfo& info = store.manifest().info;
  if (info.id_kind == ExternalIdKind::kDense) return std::vector<VertexId>();
  RHIZOME_ASSIGN_OR_RETURN(
      const auto file, store.LoadSectionFile(kVertexIdsPath, FileKind::kVertexIds, kExternalIds));
  return VertexIds::ParseDeleted(file, info.vertices);
}

Result<std::uint64_t> internal::CountDeletedVertices(const Store& store) {
  const GenerationInfo& info = store.manifest().info;
  if (info.id_kind == ExternalIdKind::kDense) return 0;
  const auto kind = [](IdsSection section) { return static_cast<std::uint32_t>(section); };
  const std::array columns = {kind(IdsSection::kIntegers), kind(IdsSection::kOffsets),
                              kind(IdsSection::kBytes), kind(IdsSection::kSorted)};
  RHIZOME_ASSIGN_OR_RETURN(const SectionFile file,
                           store.LoadSectionFile(kVertexIdsPath, FileKind::kVertexIds, columns));
  RHIZOME_ASSIGN_OR_RETURN(const auto headers,
                           ReadStructs<IdsHeader>(file, kind(IdsSection::kHeader), 1));
  if (headers.front().deleted > info.vertices)
    return Fail(Status::Corruption(
        fmt::format("{}: there are more deleted vertices than vertices", file.path().string())));
  return headers.front().deleted;
}

Result<Adjacency> internal::LoadPartition(const Store& store, const VertexOrder& order,
                                          std::uint32_t partition, TopologyPlace place) {
  RHIZOME_ASSIGN_OR_RETURN(
      auto file, OpenFile(store, PartitionPath(partition), FileKind::kPartition, place, kLists));
  return ParsePartition(std::move(file), store.manifest().info, order, partition);
}

Result<Adjacency> internal::LoadPartitionHeader(const Store& store, const VertexOrder& order,
                                                std::uint32_t partition, TopologyPlace place) {
  std::vector<std::uint32_t> all_but_header;
  for (std::uint32_t kind = Kind(PartitionSection::kHeader) + 1;
       kind <= Kind(PartitionSection::kPartitionSets); ++kind)
    all_but_header.push_back(kind);
  RHIZOME_ASSIGN_OR_RETURN(auto file, store.LoadSectionFile(PartitionPath(partition),
                                                            FileKind::kPartition, all_but_header));
  const GenerationInfo& info = store.manifest().info;
  RHIZOME_ASSIGN_OR_RETURN(
      auto adjacency, Adjacency::ParseHeader(std::move(file), order, partition, info.partitions,
                                             static_cast<std::uint32_t>(info.edge_types.size()),
                                             /*resident=*/place == TopologyPlace::kMemory));
  return FitsManifest(std::move(adjacency), info);
}

}  // namespace rhizome
