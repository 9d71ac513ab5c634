#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "storage/array/zarr_json.h"
#include "storage/array/zarr_source.h"
#include "storage/base/escaped_text.h"
#include "storage/base/half.h"

namespace rhizome {
inline namespace internal {
namespace {

using Compressor = ZarrSourceFormat::Compressor;

// A limit of this reader, not of Zarr.
constexpr std::size_t kMaxCodecs = 8;

Status BadSource(std::string_view field, std::string_view why) {
  return Status::InvalidArgument(BadZarrJson(field, why).message());
}

/// Returns the name of a codec, grid or encoding: the value itself, or its member "name".
std::string NameOf(const ZarrJson& json) {
  if (json.is_string()) return json.text();
  const ZarrJson& name = ZarrAt(json, "/name");
  return name.is_string() ? name.text() : std::string();
}

std::string TextOr(const ZarrJson& json, const char* pointer, const char* otherwise) {
  const ZarrJson& value = ZarrAt(json, pointer);
  return value.is_string() ? value.text() : otherwise;
}

Status CheckKnownFields(const ZarrJson& json) {
  constexpr std::array<std::string_view, 11> kKnown = {
      "zarr_format",          "node_type",  "shape",          "data_type",
      "chunk_grid",           "fill_value", "codecs",         "chunk_key_encoding",
      "storage_transformers", "attributes", "dimension_names"};
  for (const auto& [key, value] : json.members()) {
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    const bool optional = value.is_object() && ZarrAt(value, "/must_understand") == ZarrJson(false);
    if (!optional) return BadSource(fmt::format("/{}", key), "an extension that is not supported");
  }
  if (ZarrAt(json, "/zarr_format") != ZarrJson(3)) return BadSource("/zarr_format", "not 3");
  if (TextOr(json, "/node_type", "") != "array")
    return BadSource("/node_type", "not an array; give the folder of one array, not of a group");
  const ZarrJson& transformers = ZarrAt(json, "/storage_transformers");
  if (!transformers.is_null() && !transformers.empty())
    return BadSource("/storage_transformers", "not supported");
  return Status::Ok();
}

Result<std::pair<std::uint64_t, std::uint64_t>> Extents(const ZarrJson& list, const char* field,
                                                        std::size_t dimensions) {
  if (!list.is_array() || list.size() != dimensions)
    return Fail(BadSource(field, "does not have one entry per dimension of the shape"));
  std::array<std::uint64_t, 2> extents = {1, 1};
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (!list[i].is_unsigned()) return Fail(BadSource(field, "not unsigned numbers"));
    extents[i] = list[i].unsigned_number();
  }
  return std::pair(extents[0], extents[1]);
}

Status ParseShape(const ZarrJson& json, ZarrSourceFormat& format) {
  const ZarrJson& shape = ZarrAt(json, "/shape");
  if (!shape.is_array() || shape.empty() || shape.size() > 2)
    return BadSource("/shape", "an array of one or two dimensions is expected");
  format.two_dimensional = shape.size() == 2;
  RHIZOME_ASSIGN_OR_RETURN(const auto extents, Extents(shape, "/shape", shape.size()));
  std::tie(format.rows, format.dim) = extents;
  if (NameOf(ZarrAt(json, "/chunk_grid")) != "regular") return BadSource("/chunk_grid", "not regular");
  const char* chunk_shape = "/chunk_grid/configuration/chunk_shape";
  RHIZOME_ASSIGN_OR_RETURN(const auto chunk,
                           Extents(ZarrAt(json, chunk_shape), chunk_shape, shape.size()));
  std::tie(format.chunk_rows, format.chunk_dim) = chunk;
  if (format.dim == 0) return BadSource("/shape", "the array has no columns");
  if (format.chunk_rows == 0 || format.chunk_dim == 0) return BadSource(chunk_shape, "an extent is 0");
  std::uint64_t bytes = 8;
  if (__builtin_mul_overflow(bytes, format.rows, &bytes) ||
      __builtin_mul_overflow(bytes, format.dim, &bytes) || (bytes >> 62) != 0)
    return BadSource("/shape", "too large");
  std::tie(format.shard_rows, format.shard_dim) = chunk;
  return Status::Ok();
}

/// Checks the size of a chunk (in a sharded array: of an inner chunk).
Status CheckChunkBytes(const ZarrSourceFormat& format) {
  std::uint64_t chunk_bytes = format.element_bytes();
  if (!__builtin_mul_overflow(chunk_bytes, format.chunk_rows, &chunk_bytes) &&
      !__builtin_mul_overflow(chunk_bytes, format.chunk_dim, &chunk_bytes) &&
      chunk_bytes <= kMaxSourceChunkBytes)
    return Status::Ok();
  return BadSource("/chunk_grid/configuration/chunk_shape",
             "a chunk is larger than 1 GiB; write the array with smaller chunks");
}

Status ParseType(const ZarrJson& json, ZarrSourceFormat& format) {
  const std::string name = NameOf(ZarrAt(json, "/data_type"));
  format.uint64 = name == "uint64";
  const auto dtype = ParseDataType(format.uint64 ? "int64" : name);
  if (!dtype)
    return BadSource("/data_type",
               fmt::format("'{}' is not one of bool, int8, int16, int32, int64, uint8, uint32, "
                           "uint64, float16, bfloat16, float32, float64",
                           name));
  format.dtype = *dtype;
  return Status::Ok();
}

template <typename T>
bool PutInteger(const ZarrJson& value, std::array<std::byte, 8>& fill) {
  T number = 0;
  if (value.is_unsigned()) {
    const auto given = value.unsigned_number();
    if (given > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
    number = static_cast<T>(given);
  } else if (value.is_integer()) {
    const auto given = value.integer();
    if (given < static_cast<std::int64_t>(std::numeric_limits<T>::min())) return false;
    number = static_cast<T>(given);
  } else {
    return false;
  }
  std::memcpy(fill.data(), &number, sizeof(number));
  return true;
}

/// Parses a float that is specified by its bits, such as "0x7fc00001", with all digits of its
/// width.
std::optional<double> FloatOfBits(std::string_view text, const ZarrSourceFormat& format) {
  const std::size_t digits = 2 * format.element_bytes();
  if (!text.starts_with("0x") || text.size() != 2 + digits) return std::nullopt;
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + 2, end, bits, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  switch (format.dtype) {
    case DataType::kFloat64:
      return std::bit_cast<double>(bits);
    case DataType::kFloat32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DataType::kFloat16:
      return HalfToFloat(static_cast<std::uint16_t>(bits));
    default:
      return BfloatToFloat(static_cast<std::uint16_t>(bits));
  }
}

template <typename T>
bool PutFill(T number, ZarrSourceFormat& format) {
  std::memcpy(format.fill.data(), &number, sizeof(number));
  return true;
}

bool PutFloat(const ZarrJson& value, ZarrSourceFormat& format) {
  double wide = 0;
  const std::string text = value.is_string() ? value.text() : std::string();
  if (const auto number = FloatOfBits(text, format)) {
    wide = *number;
  } else if (value.is_number()) {
    wide = value.number();
  } else if (value == ZarrJson("NaN")) {
    wide = std::numeric_limits<double>::quiet_NaN();
  } else if (value == ZarrJson("Infinity") || value == ZarrJson("-Infinity")) {
    wide = std::numeric_limits<double>::infinity();
    if (value == ZarrJson("-Infinity")) wide = -wide;
  } else {
    return false;
  }
  if (format.dtype == DataType::kFloat64) return PutFill(wide, format);
  const auto number = static_cast<float>(wide);
  if (std::isfinite(wide) && !std::isfinite(number)) return false;
  if (format.dtype == DataType::kFloat32) return PutFill(number, format);
  return PutFill(format.dtype == DataType::kFloat16 ? FloatToHalf(number) : FloatToBfloat(number),
                 format);
}

Status ParseFill(const ZarrJson& json, ZarrSourceFormat& format) {
  const ZarrJson& value = ZarrAt(json, "/fill_value");
  bool understood = false;
  switch (format.dtype) {
    case DataType::kInt64:
      understood = PutInteger<std::int64_t>(value, format.fill);
      break;
    case DataType::kInt32:
      understood = PutInteger<std::int32_t>(value, format.fill);
      break;
    case DataType::kUint32:
      understood = PutInteger<std::uint32_t>(value, format.fill);
      break;
    case DataType::kUint8:
      understood = PutInteger<std::uint8_t>(value, format.fill);
      break;
    case DataType::kInt16:
      understood = PutInteger<std::int16_t>(value, format.fill);
      break;
    case DataType::kInt8:
      understood = PutInteger<std::int8_t>(value, format.fill);
      break;
    case DataType::kBool:
      understood = (value == ZarrJson(true) || value == ZarrJson(false)) &&
                   PutFill(value == ZarrJson(true), format);
      break;
    default:
      understood = PutFloat(value, format);
  }
  if (understood) return Status::Ok();
  return BadSource("/fill_value", fmt::format("{} is not a supported value of {}", Excerpt(value.Dump()),
                                        DataTypeName(format.dtype)));
}

Status ParseKeys(const ZarrJson& json, ZarrSourceFormat& format) {
  const ZarrJson& encoding = ZarrAt(json, "/chunk_key_encoding");
  const std::string name = NameOf(encoding);
  if (name != "default" && name != "v2")
    return BadSource("/chunk_key_encoding", "neither default nor v2");
  if (name == "default") format.key_prefix.push_back('c');
  const std::string separator =
      TextOr(encoding, "/configuration/separator", name == "default" ? "/" : ".");
  if (separator != "/" && separator != ".")
    return BadSource("/chunk_key_encoding/configuration/separator", "neither / nor a period");
  format.key_separator = separator[0];
  return Status::Ok();
}

Status ParseBlosc(const ZarrJson& codec, ZarrSourceFormat& format) {
  const std::string name = TextOr(codec, "/configuration/cname", "");
  if (name == "lz4" || name == "lz4hc") {
    format.blosc = CodecKind::kBloscLz4;
  } else if (name == "zstd") {
    format.blosc = CodecKind::kBloscZstd;
  } else {
    return BadSource(
        "/codecs",
        fmt::format("compressor '{}' of blosc is not supported; use lz4, lz4hc or zstd", name));
  }
  return Status::Ok();
}

Status CheckCodecList(const ZarrJson& codecs, const char* field) {
  if (codecs.is_array() && !codecs.empty() && codecs.size() <= kMaxCodecs) return Status::Ok();
  return BadSource(field, "not a list of one to eight codecs");
}

/// Parses the codec `bytes`, which every array has, and returns whether it is big-endian.
Result<bool> ParseBytes(const ZarrJson& codec, const char* field) {
  const std::string name = NameOf(codec);
  if (name == "sharding_indexed") return Fail(BadSource(field, "shards within shards are not supported"));
  if (name != "bytes") return Fail(BadSource(field, fmt::format("the first is '{}', not bytes", name)));
  const std::string endian = TextOr(codec, "/configuration/endian", "little");
  if (endian != "little" && endian != "big") return Fail(BadSource(field, "neither little nor big"));
  return endian == "big";
}

/// Parses the codecs of a chunk (in a sharded array: of an inner chunk).
Status ParseChunkCodecs(const ZarrJson& codecs, const char* field, ZarrSourceFormat& format) {
  RHIZOME_RETURN_IF_ERROR(CheckCodecList(codecs, field));
  RHIZOME_ASSIGN_OR_RETURN(const bool big_endian, ParseBytes(codecs[0], field));
  format.big_endian = big_endian && format.element_bytes() > 1;
  for (std::size_t i = 1; i < codecs.size(); ++i) {
    const std::string name = NameOf(codecs[i]);
    const bool compressed = format.compressor != Compressor::kNone;
    if (name == "crc32c") {
      ++(compressed ? format.outer_checksums : format.inner_checksums);
      continue;
    }
    if (compressed) return BadSource(field, "more than one compressor");
    if (name == "zstd") {
      format.compressor = Compressor::kZstd;
    } else if (name == "gzip") {
      format.compressor = Compressor::kGzip;
    } else if (name == "blosc") {
      format.compressor = Compressor::kBlosc;
      RHIZOME_RETURN_IF_ERROR(ParseBlosc(codecs[i], format));
    } else {
      return BadSource(field, fmt::format("'{}' is not one of bytes, zstd, blosc, gzip, crc32c", name));
    }
  }
  return Status::Ok();
}

/// Parses the codecs of a shard's index. Only codecs that keep its length fixed are accepted,
/// because its position must be known.
Status ParseIndexCodecs(const ZarrJson& codecs, ShardIndexFormat& index) {
  constexpr const char* kField = "/codecs/0/configuration/index_codecs";
  RHIZOME_RETURN_IF_ERROR(CheckCodecList(codecs, kField));
  RHIZOME_ASSIGN_OR_RETURN(index.big_endian, ParseBytes(codecs[0], kField));
  for (std::size_t i = 1; i < codecs.size(); ++i)
    if (NameOf(codecs[i]) != "crc32c")
      return BadSource(kField, fmt::format("'{}' is not bytes or crc32c", NameOf(codecs[i])));
  index.checksums = static_cast<std::uint32_t>(codecs.size() - 1);
  return Status::Ok();
}

/// Computes the number of chunks in a shard, and checks that the indexes of a row of the shard grid
/// fit in memory.
Status CountInnerChunks(ZarrSourceFormat& format) {
  constexpr const char* kField = "/codecs/0/configuration/chunk_shape";
  if (format.chunk_rows == 0 || format.chunk_dim == 0) return BadSource(kField, "an extent is 0");
  if (format.shard_rows % format.chunk_rows != 0 || format.shard_dim % format.chunk_dim != 0)
    return BadSource(kField, "the shard is not a multiple of it");
  std::uint64_t& count = format.index.inner_chunks;
  if (__builtin_mul_overflow(format.shard_rows / format.chunk_rows,
                             format.shard_dim / format.chunk_dim, &count) ||
      count > kMaxInnerChunks || format.shards_across() > kMaxSourceIndexBytes ||
      format.index_bytes() > kMaxSourceIndexBytes)
    return BadSource(kField, "too many inner chunks; write the array with larger inner chunks");
  return Status::Ok();
}

Status ParseShards(const ZarrJson& codecs, ZarrSourceFormat& format) {
  if (codecs.size() != 1) return BadSource("/codecs", "codecs after sharding_indexed are not supported");
  const ZarrJson& configuration = ZarrAt(codecs[0], "/configuration");
  constexpr const char* kShape = "/codecs/0/configuration/chunk_shape";
  format.sharded = true;
  RHIZOME_ASSIGN_OR_RETURN(const auto chunk, Extents(ZarrAt(configuration, "/chunk_shape"), kShape,
                                                     format.two_dimensional ? 2 : 1));
  std::tie(format.chunk_rows, format.chunk_dim) = chunk;
  RHIZOME_RETURN_IF_ERROR(ParseIndexCodecs(ZarrAt(configuration, "/index_codecs"), format.index));
  const std::string location = TextOr(configuration, "/index_location", "end");
  if (location != "start" && location != "end")
    return BadSource("/codecs/0/configuration/index_location", "neither start nor end");
  format.index.at_start = location == "start";
  RHIZOME_RETURN_IF_ERROR(CountInnerChunks(format));
  return ParseChunkCodecs(ZarrAt(configuration, "/codecs"), "/codecs/0/configuration/codecs",
                          format);
}

Status ParseCodecs(const ZarrJson& codecs, ZarrSourceFormat& format) {
  RHIZOME_RETURN_IF_ERROR(CheckCodecList(codecs, "/codecs"));
  RHIZOME_RETURN_IF_ERROR(NameOf(codecs[0]) == "sharding_indexed"
                              ? ParseShards(codecs, format)
                              : ParseChunkCodecs(codecs, "/codecs", format));
  return CheckChunkBytes(format);
}

}  // namespace

/// Parses a zarr.json in this order: JSON; unknown fields are refused; element type; shape and
/// grid; fill value; chunk keys; codecs, which may replace the grid's chunks by those inside
/// shards. The order matters: the fill value needs the type, and the codecs need type and shape.
Result<ZarrSourceFormat> ParseZarrSource(std::string_view text) {
  const auto parsed = ParseZarrJson(text);
  if (!parsed) return Fail(Status::InvalidArgument(parsed.error().message()));
  ZarrSourceFormat format;
  RHIZOME_RETURN_IF_ERROR(CheckKnownFields(*parsed));
  RHIZOME_RETURN_IF_ERROR(ParseType(*parsed, format));
  RHIZOME_RETURN_IF_ERROR(ParseShape(*parsed, format));
  RHIZOME_RETURN_IF_ERROR(ParseFill(*parsed, format));
  RHIZOME_RETURN_IF_ERROR(ParseKeys(*parsed, format));
  RHIZOME_RETURN_IF_ERROR(ParseCodecs(ZarrAt(*parsed, "/codecs"), format));
  return format;
}

}  // namespace internal
}  // namespace rhizome
