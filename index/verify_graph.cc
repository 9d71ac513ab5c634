#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/delta.h"
#include "rhizome/index/graph.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

/// A number that two multisets of edges share only if they are equal, but for a chance of 2^-64:
/// the sum of a mix of each edge (the finaliser of splitmix64 over its fields).
class EdgeMultiset {
 public:
  void Add(std::uint64_t src, std::uint64_t dst, TypeId type, float weight) {
    std::uint64_t mixed = Mix(src);
    mixed = Mix(mixed ^ dst);
    mixed = Mix(mixed ^ type);
    sum_ += Mix(mixed ^ std::bit_cast<std::uint32_t>(weight));
  }
  friend bool operator==(const EdgeMultiset&, const EdgeMultiset&) = default;

 private:
  static std::uint64_t Mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::uint64_t sum_ = 0;
};

/// Calls visit(vertex, neighbour, type, weight), by local id, for each entry of one direction.
template <typename Visit>
void ForEachEntry(const Adjacency& adjacency, Direction direction, Visit visit) {
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const std::uint64_t first = adjacency.Entries(local, direction).first;
    const auto list = adjacency.ReadList(local, direction, scratch);
    for (std::size_t i = 0; i < list.size(); ++i)
      visit(local, list[i], adjacency.TypeOfEntry(local, direction, i),
            adjacency.Weight(direction, first + i));
  }
}

/// Sums over all partitions, by row: what the partition files claim of boundary vertices is held
/// against it. Memory: 8 or 16 bytes a vertex, and the partition sets.
class GraphVerifier {
 public:
  GraphVerifier(const Store& store, const JobControl& control, VerifyReport& report)
      : store_(store), info_(store.manifest().info), control_(control), report_(report) {}

  Status Run();

 private:
  Status LoadTopology();
  void CheckSides(std::uint32_t partition);
  void SumReality();
  void CheckClaims(std::uint32_t partition);
  std::string WrongClaim(const Adjacency& adjacency, LocalId local) const;
  Status CheckDelta();
  Status CheckDeltaRows(const Delta& delta);
  Status CheckArrays();
  void CheckRowCount(const ArrayEntry& entry);
  Status CheckRowSums(const ArrayEntry& entry);
  Status CompareChunk(const ChunkArray& rows, const ChunkArray& sums, std::uint64_t chunk);
  std::vector<Direction> StoredLists() const;

  /// One finding a file names it; what VerifyFiles has found there is not repeated.
  void AddDamage(const std::string& relative_path, std::string what) {
    const Path folder = Store::GenerationFolder(store_.path(), store_.manifest().generation);
    const std::string file =
        (folder / relative_path).lexically_relative(store_.path()).generic_string();
    const bool known =
        std::any_of(report_.damaged.begin(), report_.damaged.end(), [&](const Damage& damage) {
          return damage.file == file || damage.file.starts_with(file + "/");
        });
    if (!known) report_.damaged.push_back({file, 0, std::move(what)});
  }
  /// Takes note of damage; another kind of failure ends the run.
  Status Note(const std::string& relative_path, const Status& status) {
    const bool damage =
        status.code() == StatusCode::kCorruption || status.code() == StatusCode::kNotFound ||
        status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kIoError;
    if (!damage) return status;
    AddDamage(relative_path, status.message());
    return Status::Ok();
  }

  const Store& store_;
  const GenerationInfo& info_;
  const JobControl& control_;
  VerifyReport& report_;
  std::optional<VertexOrder> order_;
  std::vector<std::optional<Adjacency>> partitions_;
  std::vector<std::uint64_t> out_degree_;  // by row, where out-lists are kept
  std::vector<std::uint64_t> in_degree_;
  std::vector<std::uint8_t> sets_;  // by row, set_bytes_ each
  std::size_t set_bytes_ = 1;
};

Status GraphVerifier::Run() {
  const auto ids = LoadVertexIds(store_);
  if (!ids) RHIZOME_RETURN_IF_ERROR(Note(kVertexIdsPath, ids.error()));
  auto order = LoadOrder(store_);
  if (order) {
    order_.emplace(*std::move(order));
    RHIZOME_RETURN_IF_ERROR(LoadTopology());
  } else {
    // Partitions cannot be understood without it; VerifyFiles has read their bytes.
    RHIZOME_RETURN_IF_ERROR(Note(kOrderPath, order.error()));
  }
  RHIZOME_RETURN_IF_ERROR(CheckDelta());
  return CheckArrays();
}

std::vector<Direction> GraphVerifier::StoredLists() const {
  if (info_.symmetric) return {Direction::kOut};
  if (info_.directions == Direction::kBoth) return {Direction::kOut, Direction::kIn};
  return {info_.directions};
}

Status GraphVerifier::LoadTopology() {
  bool complete = true;
  std::uint64_t edges = 0;
  for (std::uint32_t p = 0; p < info_.partitions; ++p) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = "verify topology", .done = p, .total = info_.partitions}));
    auto partition = LoadPartition(store_, *order_, p);
    partitions_.emplace_back();
    if (partition) {
      edges += partition->edge_count();
      partitions_.back().emplace(*std::move(partition));
      CheckSides(p);
      continue;
    }
    complete = false;
    RHIZOME_RETURN_IF_ERROR(Note(PartitionPath(p), partition.error()));
  }
  if (!complete) return Status::Ok();  // sums over the rest would blame sound files
  if (edges != info_.edges)
    AddDamage("topology", fmt::format("the partitions hold {} edges, but the manifest says {}",
                                      edges, info_.edges));
  SumReality();
  for (std::uint32_t p = 0; p < info_.partitions; ++p) CheckClaims(p);
  return control_.CheckCancelled();
}

// The in-lists hold the very edges of the out-lists; a symmetric partition, each edge both ways.
void GraphVerifier::CheckSides(std::uint32_t partition) {
  const Adjacency& adjacency = *partitions_[partition];
  if (StoredLists().size() != 2 && !info_.symmetric) return;
  EdgeMultiset there;
  EdgeMultiset back;
  ForEachEntry(adjacency, Direction::kOut,
               [&](LocalId src, LocalId dst, TypeId type, float weight) {
                 there.Add(src, dst, type, weight);
               });
  ForEachEntry(adjacency, Direction::kIn, [&](LocalId dst, LocalId src, TypeId type, float weight) {
    back.Add(src, dst, type, weight);
  });
  if (there == back) return;
  AddDamage(PartitionPath(partition), "in-lists: not the same edges as in the out-lists");
}

void GraphVerifier::SumReality() {
  set_bytes_ = (info_.partitions + 7) / 8;
  sets_.assign(info_.vertices * set_bytes_, 0);
  for (const Direction direction : StoredLists())
    (direction == Direction::kOut ? out_degree_ : in_degree_).assign(info_.vertices, 0);
  for (std::uint32_t p = 0; p < info_.partitions; ++p) {
    const Adjacency& adjacency = *partitions_[p];
    for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
      const auto local = static_cast<LocalId>(v);
      const auto row = static_cast<std::size_t>(adjacency.RowOf(local));
      sets_[row * set_bytes_ + p / 8] |= static_cast<std::uint8_t>(1U << (p % 8));
      for (const Direction direction : StoredLists())
        (direction == Direction::kOut ? out_degree_ : in_degree_)[row] +=
            adjacency.Entries(local, direction).count;
    }
  }
}

void GraphVerifier::CheckClaims(std::uint32_t partition) {
  const Adjacency& adjacency = *partitions_[partition];
  for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const std::string wrong = WrongClaim(adjacency, local);
    if (wrong.empty()) continue;
    AddDamage(PartitionPath(partition),
              fmt::format("{} of row {} does not fit the other partitions", wrong,
                          adjacency.RowOf(local)));
    return;
  }
}

std::string GraphVerifier::WrongClaim(const Adjacency& adjacency, LocalId local) const {
  const auto row = static_cast<std::size_t>(adjacency.RowOf(local));
  const auto real = std::span(sets_).subspan(row * set_bytes_, set_bytes_);
  if (adjacency.interior(local)) {
    int partitions = 0;
    for (const std::uint8_t byte : real) partitions += std::popcount(byte);
    if (partitions != 1) return "the partition set";
  } else if (const auto claimed = adjacency.PartitionSet(local);
             !std::equal(claimed.begin(), claimed.end(), real.begin(), real.end())) {
    return "the partition set";
  }
  for (const Direction direction : StoredLists()) {
    const auto& degrees = direction == Direction::kOut ? out_degree_ : in_degree_;
    if (adjacency.GlobalDegree(local, direction) != degrees[row])
      return direction == Direction::kOut ? "the out-degree" : "the in-degree";
  }
  return {};
}

// Every record decodes and follows the one before it; every row that it names is there.
Status GraphVerifier::CheckDelta() {
  RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "verify delta"}));
  const auto& arrays = store_.manifest().arrays;
  const auto attributes = std::count_if(arrays.begin(), arrays.end(), [](const ArrayEntry& array) {
    return FirstDimension(array) == EdgeDimension(0) && !array.name.ends_with(kSidecarSuffix);
  });
  const auto delta =
      Delta::Load(Delta::Empty({.symmetric = info_.symmetric,
                                .string_ids = info_.id_kind == ExternalIdKind::kString,
                                .attribute_count = static_cast<std::uint32_t>(attributes),
                                .vertices = info_.vertices,
                                .vertex_types = info_.vertex_types,
                                .edge_types = info_.edge_types,
                                .sequence = store_.base_sequence()}),
                  store_);
  const Status status = delta ? CheckDeltaRows(**delta) : delta.error();
  const bool damage =
      status.code() == StatusCode::kCorruption || status.code() == StatusCode::kUnsupported;
  if (!damage) return status;
  const bool known = std::any_of(
      report_.damaged.begin(), report_.damaged.end(),
      [](const Damage& damage) { return std::string_view(damage.file).starts_with("catalog"); });
  if (!known) report_.damaged.push_back({"catalog", 0, status.message()});
  return Status::Ok();
}

Status GraphVerifier::CheckDeltaRows(const Delta& delta) {
  const auto merged = delta.Merged();
  if (merged == nullptr) return Status::Ok();
  std::map<std::uint64_t, std::uint64_t> row_bytes;  // of the arrays that are still there
  for (const ArrayEntry& array : store_.manifest().arrays)
    if (!array.name.ends_with(kSidecarSuffix)) row_bytes[array.array_id] = array.row_bytes();
  std::vector<std::byte> row;
  for (const DeltaRowRef& ref : merged->rows) {
    const auto bytes = row_bytes.find(ref.array_id);
    if (bytes == row_bytes.end()) continue;
    row.resize(bytes->second);
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(store_.ReadDeltaRow(ref.sequence, ref.array_id, ref.vertex, row));
  }
  return Status::Ok();
}

// An array has a row for each vertex, or for each edge of the partition that its dimension names;
// a sidecar goes with its array.
void GraphVerifier::CheckRowCount(const ArrayEntry& entry) {
  const ArrayEntry* about = &entry;
  if (entry.name.ends_with(kSidecarSuffix)) {
    const std::string_view name = entry.name;
    about = store_.manifest().FindArray(name.substr(0, name.size() - kSidecarSuffix.size()));
  }
  const std::string_view dimension = about == nullptr ? "row" : FirstDimension(*about);
  for (std::uint32_t p = 0; p < info_.partitions; ++p) {
    if (dimension != EdgeDimension(p)) continue;
    const bool known = p < partitions_.size() && partitions_[p];
    if (known && entry.rows != partitions_[p]->edge_count())
      AddDamage(ArrayFolder(entry.name), fmt::format("{} rows, but partition {} has {} edges",
                                                     entry.rows, p, partitions_[p]->edge_count()));
    return;
  }
  if (entry.rows != info_.vertices)
    AddDamage(ArrayFolder(entry.name),
              fmt::format("{} rows, but the graph has {} vertices", entry.rows, info_.vertices));
}

Status GraphVerifier::CheckArrays() {
  const Manifest& manifest = store_.manifest();
  for (const ArrayEntry& entry : manifest.arrays) {
    CheckRowCount(entry);
    const bool sidecar = entry.name.ends_with(".crc32c");
    if (entry.layout != ArrayLayout::kRow || sidecar) continue;
    if (manifest.FindArray(SidecarName(entry.name)) == nullptr) {
      AddDamage(ArrayFolder(entry.name), "its sidecar of row checksums is missing");
      continue;
    }
    RHIZOME_RETURN_IF_ERROR(CheckRowSums(entry));
  }
  return Status::Ok();
}

Status GraphVerifier::CheckRowSums(const ArrayEntry& entry) {
  const auto rows = store_.OpenArray(entry.name);
  if (!rows) return Note(ArrayFolder(entry.name), rows.error());
  const auto sums = store_.OpenArray(SidecarName(entry.name));
  if (!sums) return Note(ArrayFolder(SidecarName(entry.name)), sums.error());
  const ArrayEntry& sidecar = (*sums)->entry();
  if (sidecar.rows != entry.rows || sidecar.row_bytes() != sizeof(std::uint32_t)) {
    AddDamage(ArrayFolder(sidecar.name), "not one uint32 for each row of its array");
    return Status::Ok();
  }
  if (report_.rows_checked) return Status::Ok();  // as the bytes were read
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "verify rows",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = entry.name}));
    RHIZOME_RETURN_IF_ERROR(CompareChunk(**rows, **sums, chunk));
  }
  return Status::Ok();
}

Status GraphVerifier::CompareChunk(const ChunkArray& rows, const ChunkArray& sums,
                                   std::uint64_t chunk) {
  const ArrayEntry& entry = rows.entry();
  const std::uint64_t count = rows.RowsInChunk(chunk);
  const std::uint64_t first = chunk * entry.chunk_rows;
  std::vector<std::byte> bytes(count * entry.row_bytes());
  std::vector<std::uint32_t> expected(count);
  if (const auto read = rows.ReadChunk(chunk, bytes); !read)
    return Note(ChunkPath(entry.name, chunk), read.error());
  if (const Status read = sums.ReadRows(first, count, std::as_writable_bytes(std::span(expected)));
      !read.ok())
    return Note(ArrayFolder(sums.entry().name), read);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span(bytes).subspan(i * entry.row_bytes(), entry.row_bytes());
    if (RowCrc(entry.array_id, first + i, row) == expected[i]) continue;
    AddDamage(ChunkPath(entry.name, chunk),
              fmt::format("row {} does not have the checksum of the sidecar", first + i));
    break;
  }
  return Status::Ok();
}

}  // namespace

Status VerifyGraph(FileSystem& fs, const Path& store, const JobControl& control,
                   VerifyReport& report) {
  const auto opened = Store::Open(fs, store, Store::Mode::kRead);
  if (opened) return GraphVerifier(**opened, control, report).Run();
  const StatusCode code = opened.error().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kUnsupported) return opened.error();
  // VerifyFiles names the file; this is for callers that have not asked it.
  if (report.ok()) report.damaged.push_back({"", 0, opened.error().message()});
  return Status::Ok();
}

}  // namespace rhizome
