// Verification of the delta and of the arrays. GraphVerifier reports the findings on the topology,
// replays the delta's records, and checks the row counts, homes and row checksums of every array,
// and which chunks of bound arrays are stored.
// VerifyGraph opens the store and runs CheckTopology first.

#include "index/check/verify_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "index/check/bound_chunks.h"
#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/graph_texts.h"
#include "index/generation/graph_builder.h"
#include "index/homes/home_array.h"
#include "index/topology/type_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/text_files.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/store/text_dictionary.h"

namespace rhizome {
namespace {

Status CheckDeltaCode(std::int64_t code, std::string_view array, std::uint64_t texts) {
  if (code >= -1 && code < static_cast<std::int64_t>(texts)) return Status::Ok();
  return Status::Corruption(
      fmt::format("delta, '{}': code {} has no text; there are {}", array, code, texts));
}

/// Checks the delta and the arrays, and reports the findings on the topology.
class GraphVerifier {
 public:
  GraphVerifier(const Store& store, const TopologyFindings& topology, const JobControl& control,
                VerifyReport& report)
      : store_(store),
        info_(store.manifest().info),
        topology_(topology),
        control_(control),
        report_(report) {}

  Status Run();

 private:
  Status CheckDelta();
  Status CheckDeltaRows(const Delta& delta);
  Status CheckDeltaTexts(const std::shared_ptr<const Delta>& delta);
  Status CheckDeltaCodes(const DeltaRun& merged, const ArrayEntry& array,
                         const GraphTexts& texts) const;
  Status CheckArrays();
  Status CheckHomes(const ArrayEntry& entry);
  Status CheckTexts(const ArrayEntry& entry);
  Status CheckDictionary(const ArrayEntry& holder, const TextDictionary& texts);
  void CheckRowCount(const ArrayEntry& entry);
  Result<const TypeRows*> RowsOfType(const ArrayEntry& entry);
  Status CheckBoundChunks(const ArrayEntry& entry);
  Status CheckRowSums(const ArrayEntry& entry);
  Status CompareChunk(const ChunkArray& rows, const ChunkArray& sums, std::uint64_t chunk);

  /// Adds a finding unless the file already has one, for example from VerifyFiles.
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
  /// Records damage; any other failure ends the run.
  Status Note(const std::string& relative_path, const Status& status) {
    if (!ProvesDamage(status)) return status;
    AddDamage(relative_path, status.message());
    return Status::Ok();
  }

  const Store& store_;
  const GenerationInfo& info_;
  const TopologyFindings& topology_;
  const JobControl& control_;
  VerifyReport& report_;
  std::vector<std::string> known_types_;       // also of the delta; empty: it is damaged
  std::optional<VertexOrder> order_;           // loaded if an array is bound
  std::map<std::string, TypeRows> type_rows_;  // by name of the type
};

Status GraphVerifier::Run() {
  for (const auto& [file, what] : topology_.damaged) AddDamage(file, what);
  RHIZOME_RETURN_IF_ERROR(CheckDelta());
  return CheckArrays();
}

// Checks that every record decodes and follows its predecessor, and that every row that it names
// exists.
Status GraphVerifier::CheckDelta() {
  RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "verify delta"}));
  const std::uint64_t values =
      std::min(EdgeValueCount(EdgeAttributesOf(store_.manifest())), kMaxEdgeValues);
  const auto delta =
      Delta::Load(Delta::Empty({.symmetric = info_.symmetric,
                                .string_ids = info_.id_kind == ExternalIdKind::kString,
                                .attribute_count = static_cast<std::uint32_t>(values),
                                .vertices = info_.vertices,
                                .vertex_types = info_.vertex_types,
                                .edge_types = info_.edge_types,
                                .sequence = store_.base_sequence()}),
                  store_);
  if (delta) known_types_ = (*delta)->vertex_types();
  Status status = delta ? CheckDeltaRows(**delta) : delta.error();
  if (status.ok()) status = CheckDeltaTexts(*delta);
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
  std::map<std::uint64_t, std::uint64_t> row_bytes;  // arrays that still exist
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

// Checks that the texts of the delta continue the dictionaries, and that every code in its rows and
// edges has a text.
Status GraphVerifier::CheckDeltaTexts(const std::shared_ptr<const Delta>& delta) {
  const auto merged = delta->Merged();
  if (merged == nullptr) return Status::Ok();
  const auto attributes = EdgeAttributesOf(store_.manifest());
  for (const ArrayEntry& array : store_.manifest().arrays) {
    if (HolderOfTexts(store_.manifest(), array) != &array) continue;
    auto dictionary = TextDictionary::Open(store_, array);
    if (!dictionary) continue;  // CheckTexts reports it
    RHIZOME_ASSIGN_OR_RETURN(const auto texts,
                             GraphTexts::Open(store_, array, delta, *std::move(dictionary)));
    if (!IsOfEdges(array)) {
      RHIZOME_RETURN_IF_ERROR(CheckDeltaCodes(*merged, array, *texts));
      continue;
    }
    const auto number = TextsIdOf(store_.manifest(), array) - kEdgeTexts;
    if (number >= attributes.size()) continue;
    for (std::size_t at = attributes[number].first_value; at < merged->attributes.size();
         at += merged->attribute_count)
      RHIZOME_RETURN_IF_ERROR(
          CheckDeltaCode(merged->attributes[at], attributes[number].name, texts->size()));
  }
  return Status::Ok();
}

Status GraphVerifier::CheckDeltaCodes(const DeltaRun& merged, const ArrayEntry& array,
                                      const GraphTexts& texts) const {
  std::vector<std::int64_t> codes(array.dim);
  for (const DeltaRowRef& ref : merged.rows) {
    if (ref.array_id != array.array_id) continue;
    RHIZOME_RETURN_IF_ERROR(store_.ReadDeltaRow(ref.sequence, ref.array_id, ref.vertex,
                                                std::as_writable_bytes(std::span(codes))));
    for (const std::int64_t code : codes)
      RHIZOME_RETURN_IF_ERROR(CheckDeltaCode(code, ShownName(array.name), texts.size()));
  }
  return Status::Ok();
}

// Checks that an array has one row for each vertex, or for each edge of the partition that its
// dimension names; a sidecar has the rows of its array.
void GraphVerifier::CheckRowCount(const ArrayEntry& entry) {
  const ArrayEntry* about = &entry;
  if (entry.name.ends_with(kSidecarSuffix)) {
    const std::string_view name = entry.name;
    about = store_.manifest().FindArray(name.substr(0, name.size() - kSidecarSuffix.size()));
  }
  const std::string_view dimension = about == nullptr ? "row" : FirstDimension(*about);
  for (std::uint32_t p = 0; p < info_.partitions; ++p) {
    if (dimension != EdgeDimension(p)) continue;
    const auto edges = p < topology_.edges.size() ? topology_.edges[p] : std::nullopt;
    if (edges && entry.rows != *edges)
      AddDamage(ArrayFolder(entry.name, entry.form),
                fmt::format("{} rows, but partition {} has {} edges", entry.rows, p, *edges));
    return;
  }
  if (entry.rows != info_.vertices)
    AddDamage(ArrayFolder(entry.name, entry.form),
              fmt::format("{} rows, but the graph has {} vertices", entry.rows, info_.vertices));
}

/// Returns the rows of the type that an array is bound to; null if it is not bound, or if the order
/// is damaged, which is reported with the order.
Result<const TypeRows*> GraphVerifier::RowsOfType(const ArrayEntry& entry) {
  const std::string name(BoundType(entry));
  const auto type = TypeNamed(info_.vertex_types, name);
  if (!type) return nullptr;
  if (const auto known = type_rows_.find(name); known != type_rows_.end()) return &known->second;
  if (!order_) {
    auto order = LoadOrder(store_);
    if (!order && !ProvesDamage(order.error())) return Fail(order.error());
    if (!order) return nullptr;
    order_ = *std::move(order);
  }
  return &type_rows_.emplace(name, TypeRows(*order_, *type)).first->second;
}

// Checks that the type of a bound array exists, and that the array, or its sidecar, has the files
// of exactly those chunks that have a vertex of the type. A file that the manifest lacks is not
// seen by other checks.
Status GraphVerifier::CheckBoundChunks(const ArrayEntry& entry) {
  const std::string_view bound = BoundType(entry);
  if (!bound.empty() && !known_types_.empty() && !TypeNamed(known_types_, bound))
    AddDamage(ArrayFolder(entry.name, entry.form),
              fmt::format("is bound to the vertex type '{}', which does not exist; drop the array",
                          bound));
  RHIZOME_ASSIGN_OR_RETURN(const TypeRows* const of_type, RowsOfType(entry));
  if (of_type == nullptr || entry.rows != info_.vertices) return Status::Ok();
  for (const ChunkFault& fault : WrongChunksOf(entry, *of_type, store_.manifest().files))
    AddDamage(fault.file, fault.what);
  return Status::Ok();
}

Status GraphVerifier::CheckArrays() {
  const Manifest& manifest = store_.manifest();
  for (const ArrayEntry& entry : manifest.arrays) {
    CheckRowCount(entry);
    RHIZOME_RETURN_IF_ERROR(CheckBoundChunks(entry));
    RHIZOME_RETURN_IF_ERROR(CheckHomes(entry));
    RHIZOME_RETURN_IF_ERROR(CheckTexts(entry));
    const bool sidecar = entry.name.ends_with(".crc32c");
    if (entry.layout != ArrayLayout::kRow || sidecar) continue;
    if (manifest.FindArray(SidecarName(entry.name)) == nullptr) {
      AddDamage(ArrayFolder(entry.name), "its file of row checksums is missing");
      continue;
    }
    RHIZOME_RETURN_IF_ERROR(CheckRowSums(entry));
  }
  return Status::Ok();
}

// Checks that every home is in the range that the array declares, or none.
Status GraphVerifier::CheckHomes(const ArrayEntry& entry) {
  const auto homes = HomesOfArray(entry);
  if (!homes) return Note(ArrayFolder(entry.name, entry.form), homes.error());
  if (!*homes || topology_.homes_seen.contains(entry.name)) return Status::Ok();
  const auto array = store_.OpenArray(entry.name);
  if (!array) return Note(ArrayFolder(entry.name, entry.form), array.error());
  std::vector<std::int32_t> values;
  for (const std::uint64_t chunk : ListedChunks(entry, store_.manifest().files)) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = "verify homes", .done = chunk, .total = entry.chunk_count()}));
    values.resize((*array)->RowsInChunk(chunk));
    const auto read = (*array)->ReadChunk(chunk, std::as_writable_bytes(std::span(values)));
    if (!read) {
      RHIZOME_RETURN_IF_ERROR(Note(ChunkPath(entry.name, chunk), read.error()));
      continue;
    }
    const auto beyond = std::find_if(values.begin(), values.end(),
                                     [&](std::int32_t home) { return !(*homes)->Allows(home); });
    if (beyond == values.end()) continue;
    const std::uint64_t row =
        chunk * entry.chunk_rows + static_cast<std::uint64_t>(beyond - values.begin());
    AddDamage(ChunkPath(entry.name, chunk), WrongHome(row, *beyond, (*homes)->homes));
  }
  return Status::Ok();
}

// Checks that the texts of an array can be read and ascend, and that every code has a text.
Status GraphVerifier::CheckTexts(const ArrayEntry& entry) {
  if (!HasTexts(entry)) return Status::Ok();
  const std::string folder = ArrayFolder(entry.name, entry.form);
  const auto texts = TextDictionary::Open(store_, entry);
  if (!texts) return Note(folder, texts.error());
  if (HolderOfTexts(store_.manifest(), entry) == &entry)
    RHIZOME_RETURN_IF_ERROR(CheckDictionary(entry, **texts));
  const auto array = store_.OpenArray(entry.name);
  if (!array) return Note(folder, array.error());
  const auto size = static_cast<std::int64_t>((*texts)->size());
  RHIZOME_ASSIGN_OR_RETURN(const TypeRows* const of_type, RowsOfType(entry));
  std::vector<std::int64_t> codes;
  for (const std::uint64_t chunk : ListedChunks(entry, store_.manifest().files)) {
    RHIZOME_RETURN_IF_ERROR(
        control_.Report({.phase = "verify texts", .done = chunk, .total = entry.chunk_count()}));
    codes.resize((*array)->RowsInChunk(chunk) * entry.dim);
    const auto read = (*array)->ReadChunk(chunk, std::as_writable_bytes(std::span(codes)));
    if (!read) {
      RHIZOME_RETURN_IF_ERROR(Note(ChunkPath(entry.name, chunk), read.error()));
      continue;
    }
    const std::uint64_t first_row = chunk * entry.chunk_rows;
    const auto beyond = std::find_if(codes.begin(), codes.end(), [&](const std::int64_t& code) {
      const auto row = first_row + static_cast<std::uint64_t>(&code - codes.data()) / entry.dim;
      return (code < -1 || code >= size) && (of_type == nullptr || of_type->Has(row));
    });
    if (beyond != codes.end())
      AddDamage(ChunkPath(entry.name, chunk),
                fmt::format("code {} has no text; there are {}", *beyond, size));
  }
  return Status::Ok();
}

// Reads all texts, chunk by chunk; reading a chunk checks that its texts ascend.
Status GraphVerifier::CheckDictionary(const ArrayEntry& holder, const TextDictionary& texts) {
  RHIZOME_ASSIGN_OR_RETURN(const TextsShape shape, ShapeOfTexts(holder));
  std::string last;
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const auto first = static_cast<std::int64_t>(chunk * shape.per_chunk);
    const std::array<std::int64_t, 2> ends = {
        first, first + static_cast<std::int64_t>(shape.InChunk(chunk)) - 1};
    const auto read = texts.TextsOf(ends);
    if (!read) {
      RHIZOME_RETURN_IF_ERROR(Note(TextChunkPath(holder.name, chunk), read.error()));
      continue;
    }
    if (chunk > 0 && shape.SortedInChunk(chunk) > 0 && read->front() <= last)
      AddDamage(TextChunkPath(holder.name, chunk),
                "its texts do not follow the texts of the chunk before");
    last = read->back();
  }
  return Status::Ok();
}

Status GraphVerifier::CheckRowSums(const ArrayEntry& entry) {
  const auto rows = store_.OpenArray(entry.name);
  if (!rows) return Note(ArrayFolder(entry.name), rows.error());
  const auto sums = store_.OpenArray(SidecarName(entry.name));
  if (!sums) return Note(ArrayFolder(SidecarName(entry.name), entry.form), sums.error());
  const ArrayEntry& sidecar = (*sums)->entry();
  if (sidecar.rows != entry.rows || sidecar.row_bytes() != sizeof(std::uint32_t)) {
    AddDamage(ArrayFolder(sidecar.name, sidecar.form),
              "is not one uint32 for each row of its array");
    return Status::Ok();
  }
  if (report_.rows_checked) return Status::Ok();  // VerifyFiles checked them when it read the bytes
  for (const std::uint64_t chunk : ListedChunks(entry, store_.manifest().files)) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "verify rows",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = ShownName(entry.name)}));
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
    return Note(ArrayFolder(sums.entry().name, sums.entry().form), read);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto row = std::span(bytes).subspan(i * entry.row_bytes(), entry.row_bytes());
    if (RowCrc(entry.array_id, first + i, row) == expected[i]) continue;
    AddDamage(ChunkPath(entry.name, chunk),
              fmt::format("row {} does not match its checksum", first + i));
    break;
  }
  return Status::Ok();
}

}  // namespace

Status internal::VerifyOpened(const Store& store, const TopologyFindings& topology,
                              const JobControl& control, VerifyReport& report) {
  return GraphVerifier(store, topology, control, report).Run();
}

Status VerifyGraph(FileSystem& fs, const Path& store, const JobControl& control,
                   VerifyReport& report) try {
  const auto opened = Store::Open(fs, store, Store::Mode::kRead);
  if (opened) {
    StoredFiles files(**opened);
    RHIZOME_ASSIGN_OR_RETURN(const TopologyFindings topology,
                             CheckTopology((*opened)->manifest(), files, control));
    return VerifyOpened(**opened, topology, control, report);
  }
  const StatusCode code = opened.error().code();
  if (code != StatusCode::kCorruption && code != StatusCode::kUnsupported) return opened.error();
  // VerifyFiles names the file; this is for callers that did not run it.
  if (report.ok()) report.damaged.push_back({"", 0, opened.error().message()});
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
