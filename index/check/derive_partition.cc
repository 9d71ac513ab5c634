#include "index/check/derive_partition.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "index/base/memory_sink.h"
#include "index/check/derive_columns.h"
#include "index/delta/graph_parse.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/column.h"
#include "index/topology/section_struct.h"
#include "storage/base/little_endian.h"
#include "storage/section/section_salvage.h"

namespace rhizome {
inline namespace internal {
namespace {

using S = PartitionSection;

std::uint64_t Count(const SectionSalvage& file, S kind) {
  const SectionEntry* entry = file.Find(Kind(kind));
  return entry == nullptr ? 0 : entry->element_count;
}

/// Returns the numbers of a column.
std::vector<std::uint64_t> Numbers(const SectionSalvage& file, S kind) {
  std::vector<std::uint64_t> numbers(Count(file, kind));
  for (std::uint64_t i = 0; i < numbers.size(); ++i)
    numbers[i] = LoadElement(file.Bytes(Kind(kind)), file.Find(Kind(kind))->element_bytes, i);
  return numbers;
}

/// Writes a partition file with only one direction of a damaged one, and no boundary vertices, so
/// that the parser can check it and return its edges.
class OneSide {
 public:
  OneSide(const SectionSalvage& file, const SideKinds& kinds, const VertexOrder& order,
          const GenerationInfo& info, std::uint32_t partition)
      : file_(file), kinds_(kinds), order_(order), info_(info), partition_(partition) {}

  /// Returns whether all sections exist, sound or not. A section may share a damaged block with
  /// another and still be sound; the final comparison of hashes decides that.
  bool Complete() const;

  /// Returns nullopt if the parts contradict each other.
  std::optional<std::vector<std::byte>> Write(const StoreId& store_id,
                                              std::span<const std::uint64_t> mirrors) const;

 private:
  bool out() const { return &kinds_ == &kOutKinds; }
  bool typed() const { return info_.edge_types.size() > 1; }
  bool compressed() const { return file_.Find(Kind(kinds_.lists)) != nullptr; }
  bool AllThere(std::initializer_list<std::uint32_t> kinds) const {
    return std::all_of(kinds.begin(), kinds.end(),
                       [&](std::uint32_t kind) { return file_.Find(kind) != nullptr; });
  }
  std::uint64_t Edges() const;
  Status WriteAll(SectionFileWriter& writer, std::span<const std::uint64_t> mirrors) const;
  Status WriteHeader(SectionFileWriter& writer, std::uint64_t mirrors) const;
  Status WriteRows(SectionFileWriter& writer, std::span<const std::uint64_t> mirrors) const;
  Status WriteTypeLists(SectionFileWriter& writer) const;
  Status WriteWeights(SectionFileWriter& writer) const;
  Status WriteNoBoundary(SectionFileWriter& writer, std::span<const std::uint64_t> mirrors) const;
  Status Copy(SectionFileWriter& writer, std::uint32_t kind) const {
    RHIZOME_RETURN_IF_ERROR(writer.BeginSection(kind, file_.Find(kind)->element_bytes));
    return writer.Append(file_.Bytes(kind));
  }

  const SectionSalvage& file_;
  const SideKinds& kinds_;
  const VertexOrder& order_;
  const GenerationInfo& info_;
  const std::uint32_t partition_;
};

bool OneSide::Complete() const {
  const auto& [bases, steps, wide] = kinds_.offsets;
  const auto& lists = kinds_.list_offsets;
  const bool neighbors = compressed() ? AllThere({lists.bases, lists.steps, lists.wide})
                                      : AllThere({Kind(kinds_.neighbors)});
  const bool types = !typed() || AllThere({Kind(kinds_.type_lists), Kind(S::kTypeListOffsets),
                                           Kind(S::kTypes), Kind(S::kTypeEnds)});
  const bool weights = !info_.weighted || AllThere({Kind(S::kWeights)});
  return AllThere({bases, steps, wide}) && neighbors && types && weights && Edges() != UINT64_MAX;
}

std::uint64_t OneSide::Edges() const {
  if (!compressed()) return Count(file_, kinds_.neighbors);
  for (const S kind : {S::kWeights, S::kInEdges})
    if (file_.Find(Kind(kind)) != nullptr) return Count(file_, kind);
  if (Count(file_, S::kHeader) != sizeof(PartitionHeader)) return UINT64_MAX;
  PartitionHeader header;
  std::memcpy(&header, file_.Bytes(Kind(S::kHeader)).data(), sizeof(header));
  if (header.vertices == info_.vertices && header.partition == partition_) return header.edges;
  return UINT64_MAX;
}

Status OneSide::WriteHeader(SectionFileWriter& writer, std::uint64_t mirrors) const {
  const PartitionHeader header{
      .vertices = info_.vertices,
      .edges = Edges(),
      .owned = order_.owned_count(partition_),
      .mirrors = mirrors,
      .first_row =
          order_.grouped() ? static_cast<std::uint64_t>(order_.owner_begin(partition_)) : 0,
      .boundary_owned = 0,
      .partition = partition_,
      .partitions = info_.partitions,
      .edge_types = static_cast<std::uint32_t>(info_.edge_types.size()),
      .flags = (out() ? kPartitionOut : kPartitionIn) |
               (out() && info_.symmetric ? kPartitionSymmetric : 0) |
               (order_.grouped() ? kPartitionGrouped : 0) |
               (info_.weighted ? kPartitionWeighted : 0) |
               (compressed() ? kPartitionCompressed : 0)};
  return WriteStructs<PartitionHeader>(writer, Kind(S::kHeader), std::span(&header, 1));
}

Status OneSide::WriteRows(SectionFileWriter& writer, std::span<const std::uint64_t> mirrors) const {
  if (!order_.grouped()) {
    std::vector<std::uint64_t> owned;
    for (std::uint64_t row = 0; row < info_.vertices; ++row)
      if (order_.OwnerOf(static_cast<Row>(row)) == partition_) owned.push_back(row);
    RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(S::kOwnedRows), owned));
  }
  return WriteColumn(writer, Kind(S::kMirrors), mirrors);
}

// Both directions share the type lists, which are numbered by first use. Without the other
// direction, the remaining ones get new numbers.
Status OneSide::WriteTypeLists(SectionFileWriter& writer) const {
  std::vector<std::uint64_t> of_vertex = Numbers(file_, kinds_.type_lists);
  const auto offsets = Numbers(file_, S::kTypeListOffsets);
  const auto types = Numbers(file_, S::kTypes);
  const auto ends = Numbers(file_, S::kTypeEnds);
  std::vector<std::uint64_t> new_offsets = {0};
  std::vector<std::uint64_t> new_types;
  std::vector<std::uint64_t> new_ends;
  std::vector<std::uint64_t> number(offsets.size(), UINT64_MAX);
  for (std::uint64_t& list : of_vertex) {
    if (list + 1 >= offsets.size() || offsets[list] > offsets[list + 1] ||
        offsets[list + 1] > std::min(types.size(), ends.size()))
      return Status::Corruption("type lists");
    if (number[list] == UINT64_MAX) {
      number[list] = new_offsets.size() - 1;
      for (std::uint64_t k = offsets[list]; k < offsets[list + 1]; ++k) {
        new_types.push_back(types[k]);
        new_ends.push_back(ends[k]);
      }
      new_offsets.push_back(new_types.size());
    }
    list = number[list];
  }
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(kinds_.type_lists), of_vertex));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(S::kTypeListOffsets), new_offsets));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, Kind(S::kTypes), new_types));
  return WriteColumn(writer, Kind(S::kTypeEnds), new_ends);
}

// Weights are keyed by edge id, which without out-lists is the position in the in-lists.
Status OneSide::WriteWeights(SectionFileWriter& writer) const {
  if (out() || file_.Find(Kind(S::kInEdges)) == nullptr) return Copy(writer, Kind(S::kWeights));
  const auto weights = file_.Bytes(Kind(S::kWeights));
  const auto edges = Numbers(file_, S::kInEdges);
  std::vector<float> by_entry(edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] >= weights.size() / sizeof(float)) return Status::Corruption("in edges");
    by_entry[i] =
        std::bit_cast<float>(LoadLittle<std::uint32_t>(weights.data() + edges[i] * sizeof(float)));
  }
  return writer.AddSection(Kind(S::kWeights), std::span<const float>(by_entry));
}

// Declares that no owned vertex is a boundary vertex. The parser requires that a mirror's owner
// holds edges of it, so the sets include the owner.
Status OneSide::WriteNoBoundary(SectionFileWriter& writer,
                                std::span<const std::uint64_t> mirrors) const {
  const std::vector<std::uint64_t> words((order_.owned_count(partition_) + 63) / 64, 0);
  RHIZOME_RETURN_IF_ERROR(
      writer.AddSection(Kind(S::kBoundaryOwned), std::span<const std::uint64_t>(words)));
  RHIZOME_RETURN_IF_ERROR(
      WritePatched(writer, kinds_.degrees, std::vector<std::uint64_t>(mirrors.size(), 0)));
  const std::size_t set_bytes = (info_.partitions + std::size_t{7}) / 8;
  std::vector<std::uint8_t> sets(mirrors.size() * set_bytes, 0);
  for (std::size_t i = 0; i < mirrors.size(); ++i) {
    for (const std::uint32_t p :
         {partition_, std::uint32_t{order_.OwnerOf(static_cast<Row>(mirrors[i]))}})
      sets[i * set_bytes + p / 8] |= static_cast<std::uint8_t>(1U << (p % 8));
  }
  return writer.AddSection(Kind(S::kPartitionSets), std::span<const std::uint8_t>(sets));
}

Status OneSide::WriteAll(SectionFileWriter& writer, std::span<const std::uint64_t> mirrors) const {
  RHIZOME_RETURN_IF_ERROR(WriteHeader(writer, mirrors.size()));
  RHIZOME_RETURN_IF_ERROR(WriteRows(writer, mirrors));
  const auto copy_offsets = [&](const OffsetKinds& kinds) -> Status {
    RHIZOME_RETURN_IF_ERROR(Copy(writer, kinds.bases));
    RHIZOME_RETURN_IF_ERROR(Copy(writer, kinds.steps));
    return Copy(writer, kinds.wide);
  };
  RHIZOME_RETURN_IF_ERROR(copy_offsets(kinds_.offsets));
  if (compressed()) RHIZOME_RETURN_IF_ERROR(copy_offsets(kinds_.list_offsets));
  RHIZOME_RETURN_IF_ERROR(Copy(writer, compressed() ? Kind(kinds_.lists) : Kind(kinds_.neighbors)));
  if (typed()) RHIZOME_RETURN_IF_ERROR(WriteTypeLists(writer));
  if (info_.weighted) RHIZOME_RETURN_IF_ERROR(WriteWeights(writer));
  RHIZOME_RETURN_IF_ERROR(WriteNoBoundary(writer, mirrors));
  return writer.Finish();
}

std::optional<std::vector<std::byte>> OneSide::Write(const StoreId& store_id,
                                                     std::span<const std::uint64_t> mirrors) const {
  for (const std::uint64_t row : mirrors)
    if (row >= info_.vertices) return std::nullopt;
  MemorySink sink;
  SectionFileWriter writer(sink, FileKind::kPartition, store_id);
  if (!WriteAll(writer, mirrors).ok()) return std::nullopt;
  return sink.Take();
}

EdgesOfPartition EdgesOf(const Adjacency& adjacency, const GenerationInfo& info) {
  const Direction direction = adjacency.has(Direction::kOut) ? Direction::kOut : Direction::kIn;
  EdgesOfPartition edges;
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const std::uint64_t first = adjacency.Entries(local, direction).first;
    const auto list = adjacency.ReadList(local, direction, scratch);
    for (std::size_t i = 0; i < list.size(); ++i) {
      edges.src.push_back(adjacency.RowOf(direction == Direction::kOut ? local : list[i]));
      edges.dst.push_back(adjacency.RowOf(direction == Direction::kOut ? list[i] : local));
      if (info.edge_types.size() > 1)
        edges.type.push_back(adjacency.TypeOfEntry(local, direction, i));
      if (info.weighted) edges.weight.push_back(adjacency.Weight(direction, first + i));
    }
  }
  return edges;
}

}  // namespace

/// A damaged partition, reconstructed from one of its directions.
struct PartitionDeriver::View {
  Adjacency adjacency;
  const char* from = "";
  bool compressed = false;
  bool attributed = false;
};

std::optional<Adjacency> PartitionDeriver::Sound(std::uint32_t partition) const {
  auto image = read_(partition);
  if (!image) return std::nullopt;
  auto file = SectionFile::Parse(*std::move(image), PartitionPath(partition), FileKind::kPartition,
                                 store_id_);
  if (!file) return std::nullopt;
  auto adjacency = ParsePartition(*std::move(file), info_, order_, partition);
  return adjacency ? std::optional(*std::move(adjacency)) : std::nullopt;
}

// A mirror's owner also holds edges of it, and stores the other partitions that do.
std::optional<std::vector<std::uint64_t>> PartitionDeriver::MirrorsOf(std::uint32_t partition) {
  std::vector<std::uint64_t> mirrors;
  for (std::uint32_t q = 0; q < info_.partitions; ++q) {
    if (q == partition) continue;
    const auto other = Sound(q);
    if (!other) return std::nullopt;
    for (std::uint64_t v = 0; v < other->owned_count(); ++v) {
      const auto set = other->PartitionSet(static_cast<LocalId>(v));
      if (!set.empty() && (set[partition / 8] >> (partition % 8) & 1) != 0)
        mirrors.push_back(static_cast<std::uint64_t>(other->RowOf(static_cast<LocalId>(v))));
    }
  }
  std::sort(mirrors.begin(), mirrors.end());
  return mirrors;
}

/// Reconstructs one direction of a damaged partition, with its own mirrors or with the mirrors that
/// the other partitions imply; nullopt if the parser finds a contradiction.
std::optional<PartitionDeriver::View> PartitionDeriver::ViewOf(std::uint32_t partition,
                                                               const SectionSalvage& file, bool out,
                                                               bool own_mirrors) {
  const SideKinds& kinds = out ? kOutKinds : kInKinds;
  const OneSide side(file, kinds, order_, info_, partition);
  if (!side.Complete()) return std::nullopt;
  const auto mirrors =
      own_mirrors ? std::optional(Numbers(file, S::kMirrors)) : MirrorsOf(partition);
  auto bytes = mirrors ? side.Write(store_id_, *mirrors) : std::nullopt;
  if (!bytes) return std::nullopt;
  auto sections = SectionFile::Parse(*std::move(bytes), PartitionPath(partition),
                                     FileKind::kPartition, store_id_);
  if (!sections) return std::nullopt;
  auto adjacency = Adjacency::Parse(*std::move(sections), order_, partition, info_.partitions,
                                    static_cast<std::uint32_t>(info_.edge_types.size()));
  if (!adjacency) return std::nullopt;
  return View{
      *std::move(adjacency),
      out ? "its out-lists and the other partitions" : "its in-lists and the other partitions",
      file.Find(Kind(kinds.lists)) != nullptr,
      // Without weights, in-entries have edge ids only if edges have attributes.
      !info_.weighted && file.Find(Kind(S::kInEdges)) != nullptr};
}

/// Visits the views of a damaged partition, the most likely first, until one is accepted.
template <typename Visit>
bool PartitionDeriver::AnyView(std::uint32_t partition, const Visit& take) {
  const auto image = read_(partition);
  if (!image) return false;
  const auto file = SectionSalvage::Read(*image, FileKind::kPartition, store_id_);
  if (!file) return false;
  for (const bool own_mirrors : {true, false}) {
    for (const bool out : {true, false}) {
      const auto view = ViewOf(partition, *file, out, own_mirrors);
      if (view && take(*view)) return true;
    }
  }
  return false;
}

void PartitionDeriver::Sum(const EdgesOfPartition& edges, std::uint32_t partition) {
  const std::size_t bytes = PartitionSetBytes(info_.partitions);
  const auto mark = [&](Row row) {
    sets_[static_cast<std::size_t>(row) * bytes + partition / 8] |=
        static_cast<std::uint8_t>(1U << (partition % 8));
  };
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    out_degree_.Increment(static_cast<std::uint64_t>(edges.src[e]));
    in_degree_.Increment(static_cast<std::uint64_t>(edges.dst[e]));
    mark(edges.src[e]);
    mark(edges.dst[e]);
  }
}

/// Sums the degrees and sets of all partitions except `but`. Returns false if a partition cannot be
/// read.
Result<bool> PartitionDeriver::SumOthers(std::uint32_t but) {
  out_degree_ = Degrees(info_.vertices);
  in_degree_ = Degrees(info_.vertices);
  sets_.assign(info_.vertices * PartitionSetBytes(info_.partitions), 0);
  for (std::uint32_t q = 0; q < info_.partitions; ++q) {
    if (q == but) continue;
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    if (const auto sound = Sound(q)) {
      Sum(EdgesOf(*sound, info_), q);
      continue;
    }
    const bool summed = AnyView(q, [&](const View& view) {
      Sum(EdgesOf(view.adjacency, info_), q);
      return true;
    });
    if (!summed) return false;
  }
  return true;
}

/// Writes the whole file that follows from a view; nullopt if it differs from the committed one.
std::optional<std::vector<std::byte>> PartitionDeriver::WriteWhole(std::uint32_t partition,
                                                                   const View& view) {
  const EdgesOfPartition edges = EdgesOf(view.adjacency, info_);
  // In a weighted graph no other section shows whether edges have attributes, so both are tried.
  for (const bool attributed : {view.attributed, !view.attributed}) {
    const PartitionContext context{
        .partition = partition,
        .partitions = info_.partitions,
        .edge_types = static_cast<std::uint32_t>(info_.edge_types.size()),
        .symmetric = info_.symmetric,
        .weighted = info_.weighted,
        .attributed = attributed,
        .directions = info_.directions,
        .codec = view.compressed ? TopologyCodec::kEliasFano : TopologyCodec::kNone,
        .out_degree = &out_degree_,
        .in_degree = &in_degree_,
        .partition_set = sets_};
    MemorySink sink;
    if (!Adjacency::Write(sink, store_id_, order_, context, edges).ok()) return std::nullopt;
    if (accept_(partition, sink.bytes())) return sink.Take();
  }
  return std::nullopt;
}

// Derives a partition:
// 1. sums the degrees and partition sets of all other partitions (SumOthers);
// 2. tries each view of the damaged partition (AnyView) until the file that follows from it has the
//    committed hash.
Result<std::optional<PartitionDeriver::Derived>> PartitionDeriver::Derive(std::uint32_t partition) {
  std::optional<Derived> derived;
  RHIZOME_ASSIGN_OR_RETURN(const bool others, SumOthers(partition));
  if (!others) return derived;
  const auto of_others = std::tuple(out_degree_, in_degree_, sets_);
  AnyView(partition, [&](const View& view) {
    std::tie(out_degree_, in_degree_, sets_) = of_others;
    Sum(EdgesOf(view.adjacency, info_), partition);
    auto bytes = WriteWhole(partition, view);
    if (bytes) derived = Derived{*std::move(bytes), view.from};
    return derived.has_value();
  });
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  return derived;
}

}  // namespace internal
}  // namespace rhizome
