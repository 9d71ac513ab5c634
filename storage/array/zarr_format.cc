#include "storage/array/zarr_format.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "storage/array/array_rules.h"
#include "storage/array/codec_table.h"
#include "storage/array/fill_value.h"
#include "storage/array/zarr_json.h"

namespace rhizome {
inline namespace internal {

namespace {

using Json = ZarrJson;

Json Named(std::string_view name, Json configuration) {
  Json out = Json::Object().With("name", name);
  if (!configuration.empty()) out.Set("configuration", std::move(configuration));
  return out;
}

/// Creates the JSON object of a codec that has a name in Zarr.
Json CodecJson(const CodecEntry& known, const Codec& codec) {
  return Named(known.zarr_name, known.zarr_configuration(codec));
}

/// Creates the codecs of a chunk, or of an inner chunk, which ends in its CRC-32C with every codec.
Json ChunkCodecsJson(const ArrayEntry& entry) {
  const std::size_t element_bytes = DataTypeBytes(entry.dtype);
  // Single bytes have no byte order: zarr-python omits the configuration, and TensorStore accepts
  // that.
  Json codecs = Json::Array();
  codecs.Add(
      Named("bytes", element_bytes > 1 ? Json::Object().With("endian", "little") : Json::Object()));
  Codec codec = entry.codec;
  codec.element_bytes = element_bytes;
  if (codec.kind == CodecKind::kRaw && !entry.sharded()) return codecs;
  const CodecEntry* const known = FindCodec(codec.kind);
  // The raw codec has no object: elements are directly followed by their checksum.
  if (known != nullptr && !known->zarr_name.empty()) codecs.Add(CodecJson(*known, codec));
  codecs.Add(Named("crc32c", Json::Object()));
  return codecs;
}

Json CodecsJson(const ArrayEntry& entry) {
  Json codecs = ChunkCodecsJson(entry);
  if (!entry.sharded()) return codecs;
  Json index = Json::Array();
  index.Add(Named("bytes", Json::Object().With("endian", "little")));
  index.Add(Named("crc32c", Json::Object()));
  Json sharding = Json::Object();
  sharding.Set("chunk_shape", Json::Array(entry.inner_rows, entry.dim));
  sharding.Set("codecs", std::move(codecs));
  sharding.Set("index_codecs", std::move(index));
  sharding.Set("index_location", "end");
  return Json::Array(Named("sharding_indexed", std::move(sharding)));
}

Json AttributesJson(const ArrayEntry& entry) {
  Json free = Json::Object();
  for (const auto& [key, value] : entry.attributes) free.Set(key, value);
  // array_id is a string, because many readers store JSON numbers as doubles.
  Json ours = Json::Object();
  ours.Set("layout", ArrayLayoutName(entry.layout));
  ours.Set("array_id", std::to_string(entry.array_id));
  ours.Set("attributes", std::move(free));
  return Json::Object().With("rhizome", std::move(ours));
}

/// Returns the fill value, as which Zarr reads a missing chunk. FillOtherRows writes it, too.
Json FillValue(const ArrayEntry& entry) {
  if (entry.form == ArrayForm::kZeroFill) return 0;
  return VisitFillValue(entry.dtype, [](auto value) -> Json {
    if constexpr (requires { value.bits; })
      return "NaN";
    else
      return value;
  });
}

Json ArrayJson(const ArrayEntry& entry) {
  const Json chunk_shape = Json::Array(entry.chunk_rows, entry.dim);
  Json json = Json::Object();
  json.Set("zarr_format", 3);
  json.Set("node_type", "array");
  json.Set("shape", Json::Array(entry.rows, entry.dim));
  json.Set("data_type", DataTypeName(entry.dtype));
  json.Set("chunk_grid", Named("regular", Json::Object().With("chunk_shape", chunk_shape)));
  json.Set("chunk_key_encoding", Named("default", Json::Object().With("separator", ".")));
  json.Set("fill_value", FillValue(entry));
  json.Set("codecs", CodecsJson(entry));
  json.Set("dimension_names", Json::Array(FirstDimension(entry), entry.name + "_dim"));
  json.Set("attributes", AttributesJson(entry));
  return json;
}

Result<Codec> DecodeCodec(const Json& codecs, bool sharded, std::size_t element_bytes) {
  if (!codecs.is_array() || codecs.empty() || codecs.size() > 3)
    return Fail(BadZarrJson("/codecs", "not a list of one to three codecs"));
  Codec codec{.kind = CodecKind::kRaw, .level = 0, .element_bytes = element_bytes};
  if (codecs.size() == 1) return codec;
  RHIZOME_ASSIGN_OR_RETURN(const std::string name, ZarrTextAt(codecs, "/1/name"));
  if (sharded && name == "crc32c") return codec;
  const Json& stated = ZarrAt(codecs, "/1");
  for (const CodecEntry& known : AllCodecs()) {
    if (known.zarr_name != name) continue;
    codec.kind = known.kind;
    if (known.highest_level > 0) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t level, ZarrNumberAt(stated, known.zarr_level));
      if (level > static_cast<std::uint64_t>(known.highest_level))
        return Fail(
            BadZarrJson("/codecs/1", fmt::format("has a level above {}", known.highest_level)));
      codec.level = static_cast<int>(level);
    }
    if (CodecJson(known, codec) == stated) return codec;
  }
  return Fail(BadZarrJson("/codecs/1", "is not a codec that Rhizome writes"));
}

Result<std::uint64_t> DecodeArrayId(const Json& json) {
  RHIZOME_ASSIGN_OR_RETURN(const std::string text,
                           ZarrTextAt(json, "/attributes/rhizome/array_id"));
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size())
    return Fail(BadZarrJson("/attributes/rhizome/array_id", "not a number"));
  return id;
}

Result<ArrayLayout> DecodeLayout(const Json& json) {
  RHIZOME_ASSIGN_OR_RETURN(const std::string text, ZarrTextAt(json, "/attributes/rhizome/layout"));
  if (text == ArrayLayoutName(ArrayLayout::kRow)) return ArrayLayout::kRow;
  if (text == ArrayLayoutName(ArrayLayout::kChunk)) return ArrayLayout::kChunk;
  return Fail(BadZarrJson("/attributes/rhizome/layout", "is neither row nor chunk"));
}

Status DecodeFreeAttributes(const Json& json, ArrayEntry& entry) {
  const Json& free = ZarrAt(json, "/attributes/rhizome/attributes");
  if (!free.is_object()) return BadZarrJson("/attributes/rhizome/attributes", "not an object");
  for (const auto& [key, value] : free.members()) {
    if (!value.is_string())
      return BadZarrJson("/attributes/rhizome/attributes", "not all are strings");
    entry.attributes.emplace_back(key, value.text());
  }
  return Status::Ok();
}

Result<ArrayEntry> DecodeEntry(const Json& json, std::string_view name) {
  ArrayEntry entry;
  entry.name = name;
  RHIZOME_ASSIGN_OR_RETURN(entry.rows, ZarrNumberAt(json, "/shape/0"));
  RHIZOME_ASSIGN_OR_RETURN(entry.dim, ZarrNumberAt(json, "/shape/1"));
  RHIZOME_ASSIGN_OR_RETURN(entry.chunk_rows,
                           ZarrNumberAt(json, "/chunk_grid/configuration/chunk_shape/0"));
  RHIZOME_ASSIGN_OR_RETURN(const std::string dtype, ZarrTextAt(json, "/data_type"));
  const auto type = ParseDataType(dtype);
  if (!type) return Fail(BadZarrJson("/data_type", "not supported"));
  entry.dtype = *type;
  const bool sharded = ZarrAt(json, "/codecs/0/name") == Json("sharding_indexed");
  const char* codecs = sharded ? "/codecs/0/configuration/codecs" : "/codecs";
  RHIZOME_ASSIGN_OR_RETURN(entry.codec,
                           DecodeCodec(ZarrAt(json, codecs), sharded, DataTypeBytes(entry.dtype)));
  if (sharded) {
    RHIZOME_ASSIGN_OR_RETURN(entry.inner_rows,
                             ZarrNumberAt(json, "/codecs/0/configuration/chunk_shape/0"));
  }
  if (ZarrAt(json, "/fill_value") == Json(0)) entry.form = ArrayForm::kZeroFill;
  RHIZOME_ASSIGN_OR_RETURN(entry.layout, DecodeLayout(json));
  RHIZOME_ASSIGN_OR_RETURN(entry.array_id, DecodeArrayId(json));
  RHIZOME_RETURN_IF_ERROR(DecodeFreeAttributes(json, entry));
  return entry;
}

}  // namespace

std::string EncodeArrayJson(const ArrayEntry& entry) { return ArrayJson(entry).Dump(2) + "\n"; }

/// Decodes in these steps:
///   1. Parses the JSON, with bounds on length and depth.
///   2. DecodeEntry reads the fields that make up an entry.
///   3. The entry must pass CheckArrayEntry.
///   4. The document must equal the one that this engine would write for the entry.
Result<ArrayEntry> DecodeArrayJson(std::string_view text, std::string_view name) {
  RHIZOME_ASSIGN_OR_RETURN(const Json json, ParseZarrJson(text));
  RHIZOME_ASSIGN_OR_RETURN(ArrayEntry entry, DecodeEntry(json, name));
  if (const Status rules = CheckArrayEntry(entry); !rules.ok())
    return Fail(Status::Corruption("zarr.json: " + rules.message()));
  // If it differs, the document contains something that this build does not understand.
  const Json expected = ArrayJson(entry);
  if (json == expected) return entry;
  for (const auto& [key, value] : expected.members()) {
    const Json* const found = json.Find(key);
    if (found == nullptr) return Fail(BadZarrJson("/" + key, "is missing"));
    if (*found != value) return Fail(BadZarrJson("/" + key, "is not what Rhizome writes"));
  }
  return Fail(BadZarrJson("fields", "has an unknown member"));
}

}  // namespace internal
}  // namespace rhizome
