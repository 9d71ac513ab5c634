#include "rhizome/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "rhizome/file_system.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/manifest_format.h"
#include "storage/array/text_files.h"
#include "storage/array/type_names.h"
#include "storage/base/bytes.h"
#include "storage/base/hash.h"
#include "storage/base/mutant.h"
#include "storage/io/files.h"

namespace rhizome {

namespace {

constexpr std::string_view kMagic = "RZMANIFE";
constexpr std::uint32_t kVersion = 6;  // the highest that this build reads
constexpr std::uint32_t kVersionOfShards = 2;
constexpr std::uint32_t kVersionOfForms = 3;
constexpr std::uint32_t kVersionOfTypes = 4;  // names of types, texts, element types from 7
constexpr std::uint32_t kVersionOfAddedTexts = 5;
constexpr std::uint32_t kVersionOfEdgeEnds = 6;  // and of arrays bound to a vertex type
constexpr std::size_t kSealBytes = sizeof(std::uint32_t);
constexpr std::size_t kHeadBytes = 8 + 4 + 4 + 16 + 8;  // magic to length; the body follows

// The lengths of the shortest records. They bound the number of records in the rest of a file.
constexpr std::size_t kMinFileBytes = 4 + 1 + 8 + 16 + 4;
constexpr std::size_t kMinArrayBytes = 4 + 1 + 4 * 8 + 4 + 8;
constexpr std::size_t kMinNameBytes = 4 + 1;
constexpr std::size_t kMinAttributeBytes = 4 + 1 + 4;
constexpr std::size_t kMinSeriesBytes = 4 + 1 + 8 + 8;
constexpr std::size_t kMinAliasBytes = 4 + 1 + 8 + 8;

constexpr auto kMaxCount = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

void EncodeNames(ByteWriter& out, const std::vector<std::string>& names) {
  out.Number<std::uint64_t>(names.size());
  for (const std::string& name : names) out.String(name);
}

void EncodeInfo(ByteWriter& out, const GenerationInfo& info, std::uint32_t version) {
  out.Number(info.vertices);
  out.Number(info.edges);
  out.Number(info.partitions);
  out.Number(static_cast<std::uint8_t>(info.id_kind));
  out.Number(static_cast<std::uint8_t>(info.symmetric));
  out.Number(static_cast<std::uint8_t>(info.weighted));
  out.Number(static_cast<std::uint8_t>(info.directions));
  out.Double(info.replication_factor);
  out.Double(info.vertex_balance);
  out.Double(info.edge_balance);
  out.Double(info.interior_share);
  out.String(info.partitioner);
  out.String(info.order);
  EncodeNames(out, info.vertex_types);
  EncodeNames(out, info.edge_types);
  if (version < kVersionOfEdgeEnds) return;
  for (std::size_t type = 0; type < info.edge_types.size(); ++type) {
    const EdgeEnds ends = type < info.edge_ends.size() ? info.edge_ends[type] : EdgeEnds{};
    out.Number(ends.source);
    out.Number(ends.destination);
  }
}

void EncodeFile(ByteWriter& out, const FileEntry& file) {
  out.String(file.path);
  out.Number(file.size_bytes);
  out.Bytes(file.xxh3);
  out.Number(file.crc32c);
}

/// Returns the lowest version that can express the manifest, so that older builds can read it if
/// possible.
std::uint32_t VersionOf(const Manifest& manifest) {
  const bool shards = std::any_of(manifest.arrays.begin(), manifest.arrays.end(),
                                  [](const ArrayEntry& array) { return array.sharded(); });
  const bool forms =
      std::any_of(manifest.arrays.begin(), manifest.arrays.end(),
                  [](const ArrayEntry& array) { return array.form != ArrayForm::kZeroFill; });
  const bool texts =
      std::any_of(manifest.files.begin(), manifest.files.end(),
                  [](const FileEntry& file) { return file.path.starts_with(kTextsPrefix); });
  const bool dtypes =
      std::any_of(manifest.arrays.begin(), manifest.arrays.end(),
                  [](const ArrayEntry& array) { return array.dtype > DataType::kUint8; });
  if (!manifest.info.edge_ends.empty()) return kVersionOfEdgeEnds;
  if (std::any_of(manifest.arrays.begin(), manifest.arrays.end(),
                  [](const ArrayEntry& array) { return !BoundType(array).empty(); }))
    return kVersionOfEdgeEnds;
  if (std::any_of(manifest.arrays.begin(), manifest.arrays.end(), HasAddedTexts))
    return kVersionOfAddedTexts;
  if (texts || dtypes || !ArePlainTypes(manifest.info.vertex_types) ||
      !ArePlainTypes(manifest.info.edge_types))
    return kVersionOfTypes;
  if (forms || manifest.keep != KeepRule{}) return kVersionOfForms;
  return shards ? kVersionOfShards : 1;
}

void EncodeArray(ByteWriter& out, const ArrayEntry& array, std::uint32_t version) {
  out.String(array.name);
  out.Number(array.rows);
  out.Number(array.dim);
  out.Number(array.chunk_rows);
  out.Number(array.array_id);
  out.Number(static_cast<std::uint8_t>(array.dtype));
  out.Number(static_cast<std::uint8_t>(array.layout));
  out.Number(static_cast<std::uint8_t>(array.codec.kind));
  const int level = array.codec.has_level() ? array.codec.level : 0;
  out.Number(static_cast<std::uint8_t>(level));
  out.Number<std::uint64_t>(array.attributes.size());
  for (const auto& [key, value] : array.attributes) {
    out.String(key);
    out.String(value);
  }
  if (version >= kVersionOfShards) out.Number(array.inner_rows);
  if (version >= kVersionOfForms) out.Number(static_cast<std::uint8_t>(array.form));
}

void EncodeSeries(ByteWriter& out, const ArraySeries& series) {
  out.String(series.name);
  out.Number(series.last_version);
  out.Number<std::uint64_t>(series.aliases.size());
  for (const ArrayAlias& alias : series.aliases) {
    out.String(alias.name);
    out.Number<std::uint64_t>(alias.history.size());
    for (const std::uint64_t version : alias.history) out.Number(version);
  }
}

bool DecodeFlag(ByteReader& in, std::string_view field) {
  const auto value = in.Number<std::uint8_t>(field);
  if (value > 1) in.Refuse(field, "is neither 0 nor 1");
  return value == 1;
}

void RefuseIf(ByteReader& in, std::string_view field, const Status& status) {
  if (!status.ok()) in.Refuse(field, status.message());
}

std::vector<std::string> DecodeNames(ByteReader& in, std::string_view field) {
  const std::size_t count = in.Count(field, kMinNameBytes, kMaxTypes);
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  names.reserve(count);  // keeps the views in `seen` valid
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    names.push_back(in.String(field, kMaxTypeNameBytes));
    if (in.ok()) RefuseIf(in, field, CheckTypeName(field, names.back()));
    if (!seen.insert(names.back()).second) in.Refuse(field, "is repeated");
  }
  return names;
}

std::string DecodeWord(ByteReader& in, std::string_view field) {
  std::string word = in.String(field, kMaxNameBytes);
  if (in.ok() && !word.empty()) RefuseIf(in, field, CheckName(field, word));
  return word;
}

std::uint64_t DecodeCount(ByteReader& in, std::string_view field) {
  const auto value = in.Number<std::uint64_t>(field);
  if (value > kMaxCount) in.Refuse(field, fmt::format("is {}, more than 2^63 - 1", value));
  return value;
}

TypeId DecodeEnd(ByteReader& in, std::size_t vertex_types) {
  const auto type = in.Number<TypeId>("end of an edge type");
  if (type != kSeveralTypes && type >= vertex_types)
    in.Refuse("end of an edge type",
              fmt::format("is {}, but there are {} vertex types", type, vertex_types));
  return type;
}

/// Reads the ends of the edge types. With one vertex type, which an array of a later type requires,
/// they say nothing, and the result is empty.
std::vector<EdgeEnds> DecodeEnds(ByteReader& in, const GenerationInfo& info) {
  std::vector<EdgeEnds> ends;
  for (std::size_t type = 0; type < info.edge_types.size() && in.ok(); ++type) {
    const TypeId source = DecodeEnd(in, info.vertex_types.size());
    ends.push_back({source, DecodeEnd(in, info.vertex_types.size())});
  }
  if (info.vertex_types.size() > 1) return ends;
  if (std::any_of(ends.begin(), ends.end(), [](const EdgeEnds& one) { return one != EdgeEnds(); }))
    in.Refuse("end of an edge type", "is set, but there is only one vertex type");
  return {};
}

GenerationInfo DecodeInfo(ByteReader& in, std::uint32_t version) {
  GenerationInfo info;
  info.vertices = DecodeCount(in, "vertices");
  info.edges = DecodeCount(in, "edges");
  info.partitions = in.Number<std::uint32_t>("partitions");
  if (info.partitions > kMaxPartitions) in.Refuse("partitions", "has too many entries");
  const auto id_kind = in.Number<std::uint8_t>("kind of external id");
  if (id_kind < 1 || id_kind > 3) in.Refuse("kind of external id", "is unknown");
  info.id_kind = static_cast<ExternalIdKind>(id_kind);
  info.symmetric = DecodeFlag(in, "symmetric");
  info.weighted = DecodeFlag(in, "weighted");
  const auto directions = in.Number<std::uint8_t>("directions");
  if (directions < 1 || directions > 3) in.Refuse("directions", "is unknown");
  info.directions = static_cast<Direction>(directions);
  info.replication_factor = in.Double("replication factor");
  info.vertex_balance = in.Double("vertex balance");
  info.edge_balance = in.Double("edge balance");
  info.interior_share = in.Double("interior share");
  info.partitioner = DecodeWord(in, "partitioner");
  info.order = DecodeWord(in, "order");
  info.vertex_types = DecodeNames(in, "vertex type");
  info.edge_types = DecodeNames(in, "edge type");
  if (version >= kVersionOfEdgeEnds) info.edge_ends = DecodeEnds(in, info);
  return info;
}

FileEntry DecodeFile(ByteReader& in) {
  FileEntry file;
  file.path = in.String("path of a file", kMaxPathBytes);
  if (in.ok()) RefuseIf(in, "path of a file", CheckRelativePath(file.path));
  file.size_bytes = DecodeCount(in, "length of a file");
  const auto hash = in.Bytes("hash of a file", file.xxh3.size());
  std::copy(hash.begin(), hash.end(), file.xxh3.begin());
  file.crc32c = in.Number<std::uint32_t>("checksum of a file");
  return file;
}

ArrayEntry DecodeArray(ByteReader& in, std::uint32_t version) {
  ArrayEntry array;
  array.name = in.String("name of an array", kMaxNameBytes);
  array.rows = in.Number<std::uint64_t>("rows");
  array.dim = in.Number<std::uint64_t>("dimension");
  array.chunk_rows = in.Number<std::uint64_t>("chunk_rows");
  array.array_id = in.Number<std::uint64_t>("array id");
  array.dtype = static_cast<DataType>(in.Number<std::uint8_t>("element type"));
  array.layout = static_cast<ArrayLayout>(in.Number<std::uint8_t>("layout"));
  array.codec.kind = static_cast<CodecKind>(in.Number<std::uint8_t>("codec"));
  array.codec.level = in.Number<std::uint8_t>("level");
  const std::size_t count = in.Count("attributes", kMinAttributeBytes, kMaxAttributes);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    std::string key = in.String("attribute", kMaxNameBytes);
    array.attributes.emplace_back(std::move(key), in.String("attribute", kMaxAttributeBytes));
  }
  if (version >= kVersionOfShards) array.inner_rows = in.Number<std::uint64_t>("inner_rows");
  array.form = version >= kVersionOfForms ? static_cast<ArrayForm>(in.Number<std::uint8_t>("form"))
                                          : ArrayForm::kZeroFill;
  if (!in.ok()) return array;
  RefuseIf(in, "array", CheckStoredArray(array));
  if (in.ok()) array.codec.element_bytes = DataTypeBytes(array.dtype);
  if (!array.codec.has_level() && array.codec.level != 0)
    in.Refuse("level", "is not zero for codec raw");
  return array;
}

/// Checks an array that is bound to a vertex type against the rest of the manifest. Only the delta
/// may have the type; then no chunk is stored.
Status CheckBinding(const ArrayEntry& array, const Manifest& manifest, std::uint32_t version) {
  const std::string_view type = BoundType(array);
  if (type.empty()) return Status::Ok();
  const auto bad = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("of array '{}' {}", ShownName(array.name), why));
  };
  if (version < kVersionOfEdgeEnds)
    return bad(fmt::format("requires version {}, but the manifest has version {}",
                           kVersionOfEdgeEnds, version));
  const auto& types = manifest.info.vertex_types;
  const bool known = std::find(types.begin(), types.end(), type) != types.end();
  if (known && types.size() < 2) return bad("is set, but there is only one vertex type");
  if (!known && !ListedChunks(array, manifest.files).empty())
    return bad(fmt::format("is '{}', which is not a vertex type: {}; but chunks are stored", type,
                           ListOfNames(types)));
  if (array.rows != manifest.info.vertices)
    return bad(fmt::format("is set, but it has {} rows, and there are {} vertices", array.rows,
                           manifest.info.vertices));
  return Status::Ok();
}

ArrayAlias DecodeAlias(ByteReader& in) {
  ArrayAlias alias;
  alias.name = in.String("alias", kMaxNameBytes);
  const std::size_t count = in.Count("history", sizeof(std::uint64_t), kMaxAliasHistory);
  for (std::size_t i = 0; i < count && in.ok(); ++i)
    alias.history.push_back(in.Number<std::uint64_t>("history"));
  return alias;
}

ArraySeries DecodeSeries(ByteReader& in) {
  ArraySeries series;
  series.name = in.String("name of a series", kMaxNameBytes);
  series.last_version = in.Number<std::uint64_t>("last version");
  const std::size_t count = in.Count("aliases", kMinAliasBytes, kMaxAliases);
  for (std::size_t i = 0; i < count && in.ok(); ++i) series.aliases.push_back(DecodeAlias(in));
  return series;
}

Status CheckSeal(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes + kSealBytes)
    return Status::Corruption(
        fmt::format("offset 0, length: {} bytes are too few for a manifest", bytes.size()));
  if (!std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic))))
    return Status::Corruption("offset 0, magic: not a manifest");
  const std::size_t end = bytes.size() - kSealBytes;
  const auto seal = LoadLittle<std::uint32_t>(bytes.data() + end);
  const std::uint32_t real = Crc32c(bytes.first(end));
  if (seal == real || RHIZOME_MUTANT("manifest is not checked")) return Status::Ok();
  return Status::Corruption(
      fmt::format("offset {}, seal: {:08x} does not fit the bytes ({:08x})", end, seal, real));
}

// Seal and magic keep their offsets in every later version, so a manifest that passed CheckSeal and
// has another version was really written in that version.
Status CheckHead(ByteReader& in, std::size_t file_bytes, const StoreId& store_id,
                 std::uint32_t& version) {
  (void)in.Bytes("magic", kMagic.size());
  version = in.Number<std::uint32_t>("version");
  if (version > kVersion)
    return Status::Unsupported(fmt::format(
        "manifest format {} is newer than this build's {}; use a newer version of Rhizome", version,
        kVersion));
  if (version == 0) in.Refuse("version", "is 0");
  if (in.Number<std::uint32_t>("reserved") != 0) in.Refuse("reserved", "is not zero");
  StoreId found;
  const auto id = in.Bytes("store id", found.bytes.size());
  std::copy(id.begin(), id.end(), found.bytes.begin());
  if (found != store_id)
    in.Refuse("store id",
              fmt::format("is {}, but the store's is {}", found.ToString(), store_id.ToString()));
  if (in.Number<std::uint64_t>("length") != file_bytes)
    in.Refuse("length", fmt::format("is not the length of the file, {} bytes", file_bytes));
  return in.status();
}

}  // namespace

std::string_view ArrayLayoutName(ArrayLayout layout) {
  switch (layout) {
    case ArrayLayout::kRow:
      return "row";
    case ArrayLayout::kChunk:
      return "chunk";
    default:
      return "invalid";
  }
}

bool operator==(const ArrayEntry& a, const ArrayEntry& b) {
  const bool same_codec =
      a.codec.kind == b.codec.kind && (!a.codec.has_level() || a.codec.level == b.codec.level);
  return same_codec && a.name == b.name && a.rows == b.rows && a.dim == b.dim &&
         a.dtype == b.dtype && a.layout == b.layout && a.chunk_rows == b.chunk_rows &&
         a.array_id == b.array_id && a.attributes == b.attributes && a.inner_rows == b.inner_rows &&
         a.form == b.form;
}

const FileEntry* Manifest::FindFile(std::string_view path) const {
  const auto at =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const FileEntry& file, std::string_view p) { return file.path < p; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

const ArrayEntry* Manifest::FindArray(std::string_view name) const {
  const ArrayEntry* exact = FindStoredArray(arrays, name);
  return exact != nullptr ? exact : FindVersion(*this, name);
}

const ArraySeries* Manifest::FindSeries(std::string_view name) const {
  const auto at =
      std::lower_bound(series.begin(), series.end(), name,
                       [](const ArraySeries& one, std::string_view n) { return one.name < n; });
  return at != series.end() && at->name == name ? &*at : nullptr;
}

std::vector<std::byte> EncodeManifest(const Manifest& manifest, const StoreId& store_id) {
  const std::uint32_t format = VersionOf(manifest);
  ByteWriter body;
  body.Number(manifest.generation);
  body.Number(manifest.version);
  EncodeInfo(body, manifest.info, format);
  body.Number<std::uint64_t>(manifest.files.size());
  for (const FileEntry& file : manifest.files) EncodeFile(body, file);
  body.Number<std::uint64_t>(manifest.arrays.size());
  for (const ArrayEntry& array : manifest.arrays) EncodeArray(body, array, format);
  body.Number<std::uint64_t>(manifest.series.size());
  for (const ArraySeries& series : manifest.series) EncodeSeries(body, series);
  if (format >= kVersionOfForms) {
    body.Number(manifest.keep.generations);
    body.Number(manifest.keep.bytes);
  }

  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kMagic)));
  out.Number(format);
  out.Number(std::uint32_t{0});
  out.Bytes(store_id.bytes);
  out.Number<std::uint64_t>(kHeadBytes + body.bytes().size() + kSealBytes);
  out.Bytes(body.bytes());
  out.Number(Crc32c(out.bytes()));
  return out.Take();
}

/// Decodes in these steps:
///   1. Checks magic and seal, then version, store id and length.
///   2. Reads generation, version and info.
///   3. Reads the lists of files, arrays and series; each must be sorted, and every record must
///      satisfy its rules.
///   4. Reads the rule on what to keep (version 3).
///   5. Checks that the version is the lowest possible and that no byte is left.
/// The reader remembers the first error; it is returned at the end.
Result<Manifest> DecodeManifest(std::span<const std::byte> bytes, const StoreId& store_id) {
  RHIZOME_RETURN_IF_ERROR(CheckSeal(bytes));
  ByteReader in(bytes.first(bytes.size() - kSealBytes));
  std::uint32_t format = 0;
  RHIZOME_RETURN_IF_ERROR(CheckHead(in, bytes.size(), store_id, format));

  Manifest manifest;
  manifest.generation = in.Number<std::uint64_t>("generation");
  if (manifest.generation == 0) in.Refuse("generation", "is 0");
  manifest.version = in.Number<std::uint64_t>("manifest version");
  if (manifest.version == 0) in.Refuse("manifest version", "is 0");
  manifest.info = DecodeInfo(in, format);
  if (manifest.info.vertex_types.empty()) in.Refuse("vertex types", "are missing");

  const std::size_t files = in.Count("files", kMinFileBytes, kMaxManifestBytes);
  manifest.files.reserve(files);
  for (std::size_t i = 0; i < files && in.ok(); ++i) {
    manifest.files.push_back(DecodeFile(in));
    if (i > 0 && manifest.files[i - 1].path >= manifest.files[i].path)
      in.Refuse("path of a file", "is not sorted or not unique");
  }
  const std::size_t arrays = in.Count("arrays", kMinArrayBytes, kMaxManifestBytes);
  manifest.arrays.reserve(arrays);
  for (std::size_t i = 0; i < arrays && in.ok(); ++i) {
    manifest.arrays.push_back(DecodeArray(in, format));
    if (i > 0 && manifest.arrays[i - 1].name >= manifest.arrays[i].name)
      in.Refuse("name of an array", "is not sorted or not unique");
    if (in.ok())
      RefuseIf(in, "vertex_type", CheckBinding(manifest.arrays.back(), manifest, format));
  }
  const std::size_t series = in.Count("series", kMinSeriesBytes, kMaxManifestBytes);
  manifest.series.reserve(series);
  for (std::size_t i = 0; i < series && in.ok(); ++i) {
    manifest.series.push_back(DecodeSeries(in));
    if (i > 0 && manifest.series[i - 1].name >= manifest.series[i].name)
      in.Refuse("name of a series", "is not sorted or not unique");
    if (in.ok()) RefuseIf(in, "series", CheckSeries(manifest.series.back(), manifest.arrays));
  }
  if (format >= kVersionOfForms) {
    manifest.keep.generations = in.Number<std::uint32_t>("generations to keep");
    manifest.keep.bytes = in.Number<std::uint64_t>("bytes to keep");
  }
  if (in.ok() && VersionOf(manifest) != format)
    in.Refuse("version", "is higher than the content of the manifest requires");
  if (in.left() > 0) in.Refuse("end", fmt::format("{} extra bytes", in.left()));
  RHIZOME_RETURN_IF_ERROR(in.status());
  return manifest;
}

}  // namespace rhizome
