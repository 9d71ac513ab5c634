// Repair with knowledge of the graph. GraphDeriver derives a damaged file from the other files of
// the generation: order, external ids, coordinates, or a partition; and it compares the manifest
// with order and topology (FindFaults). RepairGraph passes it to RepairStore.

#include <utility>

#include "index/check/bound_chunks.h"
#include "index/check/derive_columns.h"
#include "index/check/derive_partition.h"
#include "index/check/verify_ends.h"
#include "index/delta/graph_parse.h"
#include "index/generation/row_coordinates.h"
#include "index/topology/type_rows.h"
#include "rhizome/maintenance.h"
#include "storage/array/array_facts.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "storage/maintenance/repair_store.h"
#include "storage/section/section_salvage.h"

// From intact data, GraphDeriver derives: one direction of the order from the other, entry by
// entry; the sorted side of the external ids from the ids; the chunks of coordinates from the order
// and the ids; the lists of one direction of a partition, with their edge types and edge ids, from
// the other direction; and a partition's data on boundary vertices from the other partitions.

namespace rhizome {
namespace {

using Answer = std::optional<FileDeriver::Derived>;

bool Fits(std::span<const std::byte> bytes, const FileEntry& entry) {
  return bytes.size() == entry.size_bytes && Xxh3(bytes) == entry.xxh3;
}

/// Derives files of one generation from each other.
class GraphDeriver : public FileDeriver {
 public:
  explicit GraphDeriver(const JobControl& control) : control_(control) {}

  Result<Answer> Derive(const Source& source, const FileEntry& file,
                        std::vector<std::byte> left) override {
    if (file.path == kOrderPath) return DeriveOrderFile(source, file, left);
    if (file.path == kVertexIdsPath)
      return Patch(source, file, left, FileKind::kVertexIds, "the external ids",
                   [&](const SectionSalvage& salvage, std::span<std::byte> image) {
                     return DeriveVertexIds(salvage, source.manifest.info, image);
                   });
    for (std::uint32_t p = 0; p < source.manifest.info.partitions; ++p) {
      if (file.path != PartitionPath(p)) continue;
      fault_ = Status::Ok();
      auto answer = DerivePartition(source, p, left);
      // If the result is missing only because other files could not be read, that error is
      // reported.
      if (answer && !*answer && !fault_.ok()) return Fail(fault_);
      return answer;
    }
    for (const Coordinate& coordinate : CoordinatesOf(source.manifest))
      if (const auto chunk = ParseCoordinateChunk(coordinate, file.path))
        return DeriveCoordinate(source, coordinate, *chunk);
    return Answer();
  }

  Result<ManifestFaults> FindFaults(const Source& source) override {
    fault_ = Status::Ok();
    ManifestFaults faults;
    if (source.manifest.info.vertex_types.size() < 2) return faults;
    const auto order = ReadOrder(source);
    if (order) {
      FindWrongChunks(source, *order, faults);
      RHIZOME_RETURN_IF_ERROR(FindWrongEnds(source, *order, faults));
    }
    if (!fault_.ok()) return Fail(fault_);
    return faults;
  }

 private:
  static void FindWrongChunks(const Source& source, const VertexOrder& order,
                              ManifestFaults& faults) {
    const Manifest& manifest = source.manifest;
    for (const ArrayEntry& entry : manifest.arrays) {
      const auto type = TypeNamed(manifest.info.vertex_types, BoundType(entry));
      if (!type || entry.rows != order.size()) continue;
      const auto wrong = WrongChunksOf(entry, TypeRows(order, *type), manifest.files);
      faults.chunks.insert(faults.chunks.end(), wrong.begin(), wrong.end());
    }
  }

  Status FindWrongEnds(const Source& source, const VertexOrder& order, ManifestFaults& faults) {
    const GenerationInfo& info = source.manifest.info;
    if (!ClaimsEnds(info)) return Status::Ok();
    EndsOfEdges ends(info.edge_types.size());
    for (std::uint32_t p = 0; p < info.partitions; ++p) {
      RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
      auto bytes = ReadImage(source, PartitionPath(p));
      if (!bytes) return Status::Ok();
      auto file =
          SectionFile::Parse(*std::move(bytes), PartitionPath(p), FileKind::kPartition, source.id);
      if (!file) return Status::Ok();
      const auto adjacency = ParsePartition(*std::move(file), info, order, p);
      if (!adjacency) return Status::Ok();
      ends.AddAll(EndsIn(*adjacency, order, info));
    }
    faults.what_ends = WrongEnds(info, ends);
    if (!faults.what_ends.empty()) faults.ends = ends.ByType();
    return Status::Ok();
  }

  template <typename Fill>
  static Answer Patch(const Source& source, const FileEntry& file,
                      const std::vector<std::byte>& left, FileKind kind, const char* from,
                      const Fill& fill) {
    std::vector<std::byte> image = left;
    const auto salvage = SectionSalvage::Read(left, kind, source.id);
    if (!salvage || !fill(*salvage, image)) return Answer();
    if (!ResealSections(image, kind, source.id) || !Fits(image, file)) return Answer();
    return Answer({std::move(image), from});
  }

  static Answer DeriveOrderFile(const Source& source, const FileEntry& file,
                                const std::vector<std::byte>& left) {
    for (const OrderSource believed :
         {OrderSource::kSoundBlocks, OrderSource::kRowOfVertex, OrderSource::kVertexOfRow}) {
      Answer answer = Patch(source, file, left, FileKind::kOrder, "its other direction",
                            [&](const SectionSalvage& salvage, std::span<std::byte> image) {
                              return DeriveOrder(salvage, source.manifest.info, believed, image);
                            });
      if (answer) return answer;
    }
    return Answer();
  }

  std::optional<std::vector<std::byte>> ReadImage(const Source& source, const std::string& path) {
    const FileEntry* entry = source.manifest.FindFile(path);
    if (entry == nullptr) return std::nullopt;
    auto bytes = ReadWholeFile(source.fs, source.folder / path, entry->size_bytes);
    if (!bytes && !ProvesDamage(bytes.error())) fault_ = bytes.error();
    if (!bytes || bytes->size() != entry->size_bytes) return std::nullopt;
    return *std::move(bytes);
  }

  std::optional<VertexOrder> ReadOrder(const Source& source) {
    auto bytes = ReadImage(source, kOrderPath);
    if (!bytes) return std::nullopt;
    auto file = SectionFile::Parse(*std::move(bytes), kOrderPath, FileKind::kOrder, source.id);
    if (!file) return std::nullopt;
    auto order = ParseOrder(*std::move(file), source.manifest.info);
    if (!order) return std::nullopt;
    return *std::move(order);
  }

  std::optional<VertexIds> ReadIds(const Source& source) {
    const GenerationInfo& info = source.manifest.info;
    if (info.id_kind == ExternalIdKind::kDense) return VertexIds::Dense(info.vertices);
    auto bytes = ReadImage(source, kVertexIdsPath);
    if (!bytes) return std::nullopt;
    auto file =
        SectionFile::Parse(*std::move(bytes), kVertexIdsPath, FileKind::kVertexIds, source.id);
    if (!file) return std::nullopt;
    auto ids = ParseVertexIds(*std::move(file), info);
    if (!ids) return std::nullopt;
    return *std::move(ids);
  }

  Result<Answer> DeriveCoordinate(const Source& source, const Coordinate& coordinate,
                                  std::uint64_t chunk) {
    fault_ = Status::Ok();
    const auto order = ReadOrder(source);
    const auto ids = ReadIds(source);
    if (!fault_.ok()) return Fail(fault_);
    if (!order || !ids || chunk >= CoordinateChunks(order->size())) return Answer();
    RHIZOME_ASSIGN_OR_RETURN(auto bytes,
                             EncodeCoordinate(coordinate, chunk, *order, RowIdsOf(*ids)));
    return Answer({std::move(bytes), "the order and the external ids"});
  }

  Result<Answer> DerivePartition(const Source& source, std::uint32_t partition,
                                 const std::vector<std::byte>& left) {
    const GenerationInfo& info = source.manifest.info;
    const auto order = ReadOrder(source);
    if (!order) return Answer();
    PartitionDeriver deriver(
        *order, info, source.id,
        // The damaged file may no longer be in its place.
        [&](std::uint32_t p) {
          return p == partition ? std::optional(left) : ReadImage(source, PartitionPath(p));
        },
        [&](std::uint32_t p, std::span<const std::byte> out) {
          const FileEntry* entry = source.manifest.FindFile(PartitionPath(p));
          return entry != nullptr && Fits(out, *entry);
        },
        control_);
    RHIZOME_ASSIGN_OR_RETURN(auto derived, deriver.Derive(partition));
    if (!derived) return Answer();
    return Answer({std::move(derived->bytes), derived->from});
  }

  const JobControl& control_;
  Status fault_;  // first error of reading other files
};

}  // namespace

Result<RepairReport> RepairGraph(FileSystem& fs, const Path& store, RepairOptions options,
                                 const JobControl& control) try {
  GraphDeriver deriver(control);
  options.deriver = &deriver;
  return RepairStore(fs, store, options, control);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
