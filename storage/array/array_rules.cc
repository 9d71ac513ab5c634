#include "storage/array/array_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "rhizome/file_system.h"
#include "storage/array/array_versions.h"
#include "storage/array/codec_table.h"
#include "storage/array/coordinate_names.h"
#include "storage/array/fill_value.h"
#include "storage/array/type_names.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/base/utf8.h"
#include "storage/io/files.h"

namespace rhizome {

namespace {

Status Bad(const ArrayEntry& entry, std::string_view why) {
  return Status::InvalidArgument(fmt::format("array '{}': {}", ShownName(entry.name), why));
}

Status CheckCodec(const ArrayEntry& entry) {
  const Codec& codec = entry.codec;
  const CodecEntry* const known = FindCodec(codec.kind);
  if (known == nullptr)
    return Bad(entry, fmt::format("unknown codec {}", static_cast<int>(codec.kind)));
  if (codec.kind == CodecKind::kRaw) return Status::Ok();
  if (codec.kind == CodecKind::kNonzero && (DataTypeBytes(entry.dtype) != 4 || entry.sharded()))
    return Bad(entry, "codec nonzero needs whole chunks of elements of four bytes");
  if (const Status level = CheckCodecLevel(*known, codec.level); !level.ok())
    return Bad(entry, level.message());
  if (entry.layout == ArrayLayout::kRow) return Bad(entry, "layout row cannot be compressed");
  return Status::Ok();
}

// Checks that sizes derived from the shape fit 63 bits, so that no later product overflows.
Status CheckShape(const ArrayEntry& entry) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (entry.dim == 0) return Bad(entry, "dimension 0");
  if (entry.chunk_rows == 0) return Bad(entry, "chunk_rows 0");
  std::uint64_t row_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  if (__builtin_mul_overflow(entry.dim, DataTypeBytes(entry.dtype), &row_bytes) ||
      __builtin_mul_overflow(row_bytes, entry.chunk_rows, &chunk_bytes) ||
      chunk_bytes > kMaxChunkBytes) {
    return Bad(entry, fmt::format("a chunk of {} rows of {} elements is more than {} bytes",
                                  entry.chunk_rows, entry.dim, kMaxChunkBytes));
  }
  std::uint64_t padded_rows = 0;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(entry.rows, entry.chunk_rows, &padded_rows) ||
      __builtin_mul_overflow(row_bytes, padded_rows, &bytes) || bytes > kMax) {
    return Bad(entry, fmt::format("{} rows are more than an array can have", entry.rows));
  }
  return Status::Ok();
}

Status CheckShards(const ArrayEntry& entry) {
  if (!entry.sharded()) return Status::Ok();
  if (entry.layout != ArrayLayout::kChunk)
    return Bad(entry, "only arrays of layout chunk can have shards; layout row stores raw rows");
  if (entry.chunk_rows % entry.inner_rows != 0)
    return Bad(
        entry,
        fmt::format("the {} rows of a chunk are not a multiple of the {} rows of an inner chunk",
                    entry.chunk_rows, entry.inner_rows));
  if (entry.chunk_rows / entry.inner_rows > kMaxInnerChunksOfShard)
    return Bad(entry, fmt::format("{} inner chunks of a chunk are more than {}",
                                  entry.chunk_rows / entry.inner_rows, kMaxInnerChunksOfShard));
  return Status::Ok();
}

Status CheckAttributes(const ArrayEntry& entry) {
  if (entry.attributes.size() > kMaxAttributes) return Bad(entry, "too many attributes");
  for (std::size_t i = 0; i < entry.attributes.size(); ++i) {
    const auto& [key, value] = entry.attributes[i];
    RHIZOME_RETURN_IF_ERROR(CheckName("attribute", key));
    if (i > 0 && entry.attributes[i - 1].first >= key)
      return Bad(entry, fmt::format("attribute '{}' is not sorted or not unique", key));
    if (key == kDimensionAttribute) RHIZOME_RETURN_IF_ERROR(CheckName("dimension", value));
    if (value.size() > kMaxAttributeBytes || !IsUtf8(value))
      return Bad(entry, fmt::format("attribute '{}' is too long or not UTF-8", key));
  }
  return Status::Ok();
}

constexpr std::string_view kZarrJsonName = "zarr.json";
constexpr std::string_view kRowDimension = "row";
constexpr std::string_view kEdgeDimensionPrefix = "edge_p";

/// Returns whether `name` is "row" or of the form "edge_p0003".
bool IsDimensionName(std::string_view name) {
  if (!name.starts_with(kEdgeDimensionPrefix)) return name == kRowDimension;
  name.remove_prefix(kEdgeDimensionPrefix.size());
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

/// Checks the rules for an array that is bound to a vertex type.
Status CheckBound(const ArrayEntry& entry) {
  const auto is = [](std::string_view key) {
    return [key](const auto& fact) { return fact.first == key; };
  };
  if (std::ranges::none_of(entry.attributes, is(kVertexTypeAttribute))) return Status::Ok();
  if (const Status name = CheckTypeName("vertex type", BoundType(entry)); !name.ok())
    return Bad(entry, name.message());
  if (std::ranges::any_of(entry.attributes, is(kDimensionAttribute)))
    return Bad(entry,
               "the attribute 'vertex_type' is for arrays of vertices, but this one has the "
               "attribute 'dimension', so it has a row for each edge");
  if (entry.form == ArrayForm::kZeroFill)
    return Bad(entry, "an array of form 1 cannot have the attribute 'vertex_type'");
  return Status::Ok();
}

bool IsPathCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool IsPathName(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), IsPathCharacter);
}

}  // namespace

/// Checks in this order:
///   1. The name is valid, and the element type, the layout and the form are known.
///   2. The codec has a valid level and fits the layout.
///   3. The shape has chunks of at most kMaxChunkBytes, and sizes that do not overflow.
///   4. A shard consists of whole inner chunks, at most kMaxInnerChunksOfShard.
///   5. Attributes are sorted, short and UTF-8.
///   6. An array that is bound to a vertex type has a valid one, and rows of vertices.
Status internal::CheckArrayEntry(const ArrayEntry& entry) {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", entry.name));
  if (DataTypeBytes(entry.dtype) == 0)
    return Bad(entry, fmt::format("unknown element type {}", static_cast<int>(entry.dtype)));
  if (entry.layout != ArrayLayout::kRow && entry.layout != ArrayLayout::kChunk)
    return Bad(entry, fmt::format("unknown layout {}", static_cast<int>(entry.layout)));
  if (entry.form != ArrayForm::kZeroFill && entry.form != ArrayForm::kMarkedFill)
    return Bad(entry, fmt::format("unknown form {}", static_cast<int>(entry.form)));
  RHIZOME_RETURN_IF_ERROR(CheckCodec(entry));
  RHIZOME_RETURN_IF_ERROR(CheckShape(entry));
  RHIZOME_RETURN_IF_ERROR(CheckShards(entry));
  RHIZOME_RETURN_IF_ERROR(CheckAttributes(entry));
  return CheckBound(entry);
}

Status internal::CheckStoredArray(const ArrayEntry& entry) {
  RHIZOME_RETURN_IF_ERROR(CheckArrayEntry(entry));
  const CodecEntry* const known = FindCodec(entry.codec.kind);
  if (known != nullptr && known->published) return Status::Ok();
  return Bad(entry, fmt::format("codec {} is internal to jobs, because other programs cannot read "
                                "it; choose another codec",
                                CodecName(entry.codec.kind)));
}

std::string_view FirstDimension(const ArrayEntry& entry) {
  for (const auto& [key, value] : entry.attributes)
    if (key == kDimensionAttribute) return value;
  return kRowDimension;
}

bool IsOfEdges(const ArrayEntry& entry) {
  return FirstDimension(entry).starts_with(kEdgeDimensionPrefix);
}

std::string_view BoundType(ArrayAttributes attributes) {
  for (const auto& [key, value] : attributes)
    if (key == kVertexTypeAttribute) return value;
  return {};
}

std::string_view BoundType(const ArrayEntry& entry) { return BoundType(entry.attributes); }

bool HasTexts(const ArrayEntry& entry) {
  return std::any_of(entry.attributes.begin(), entry.attributes.end(), [](const auto& fact) {
    return fact.first == kTypeAttribute && fact.second == kTypeText;
  });
}

Status CheckNewArrayName(std::string_view name) {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", name));
  const auto taken = [&](std::string_view for_what) {
    return Status::InvalidArgument(fmt::format(
        "an array cannot be named '{}': the store reserves such names for {}; choose another name",
        name, for_what));
  };
  if (name.size() > kMaxNewArrayNameBytes)
    return Status::InvalidArgument(
        fmt::format("an array cannot be named '{}': the store appends suffixes to it, so it may "
                    "have at most {} characters, but has {}",
                    name, kMaxNewArrayNameBytes, name.size()));
  if (RHIZOME_MUTANT("names that the store reserves can be used")) return Status::Ok();
  if (name == kZarrJsonName) return taken("the description of a Zarr group");
  if (name.ends_with(kSidecarSuffix)) return taken("checksums of rows");
  if (name.ends_with(kStaleSuffix)) return taken("the marks of stale rows");
  if (SplitVersion(name)) return taken("the versions of an array");
  if (CoordinateKindOf(name)) return taken("the coordinate that names the vertex of each row");
  if (IsDimensionName(name)) return taken("a dimension of arrays");
  return Status::Ok();
}

Status internal::CheckRelativePath(std::string_view path) {
  const auto bad = [&](std::string_view why) {
    return Status::InvalidArgument(fmt::format("path '{}' {}", path, why));
  };
  if (path.empty() || path.size() > kMaxPathBytes) return bad("is empty or too long");
  if (path == kPinName || path.starts_with(kManifestPrefix)) return bad("is reserved");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (!IsPathName(path.substr(begin, end - begin)))
      return bad(
          "must be names of [A-Za-z0-9_.-] joined by '/', none empty or with a dot in front");
    begin = end + 1;
  }
  return Status::Ok();
}

namespace {

/// Returns whether -1 can mean "none" in this type.
bool IsWhole(DataType dtype) {
  return dtype == DataType::kInt64 || dtype == DataType::kInt32 || dtype == DataType::kInt16 ||
         dtype == DataType::kInt8;
}

MissingRow MissingRowOfName(std::string_view name, DataType dtype) {
  const auto is = [&](std::string_view wanted) {
    return name == wanted ||
           (name.starts_with(wanted) && name.substr(wanted.size()).starts_with(".v"));
  };
  if (is("label") && IsWhole(dtype)) return MissingRow::kNoLabel;
  if (is("split") && dtype == DataType::kUint8) return MissingRow::kNoSplit;
  return MissingRow::kZeros;
}

MissingRow MissingRowOfAttribute(std::string_view value, DataType dtype) {
  if (value == kMissingNoLabel && IsWhole(dtype)) return MissingRow::kNoLabel;
  if (value == kMissingNoSplit && dtype == DataType::kUint8) return MissingRow::kNoSplit;
  return MissingRow::kZeros;
}

}  // namespace

// In each type that has a value for "none", that value has all bits set.
void FillMissingRows(MissingRow missing, std::span<std::byte> out) {
  const bool none = missing != MissingRow::kZeros &&
                    !RHIZOME_MUTANT("vertices that a file does not name have a class");
  std::fill(out.begin(), out.end(), none ? std::byte{0xFF} : std::byte{0});
}

void FillOtherRows(const ArrayEntry& entry, std::span<std::byte> out) {
  const auto fill = [&](auto value) {
    for (std::size_t at = 0; at + sizeof(value) <= out.size(); at += sizeof(value))
      StoreLittle(out.data() + at, value);
  };
  VisitFillValue(entry.dtype, [&](auto value) {
    if constexpr (requires { value.bits; })
      fill(value.bits);
    else
      fill(value);
  });
}

void FillMissingRows(const ArrayEntry& entry, std::span<std::byte> out) {
  FillMissingRows(MissingRowOf(entry), out);
}

void FillLostRows(const ArrayEntry& entry, std::span<std::byte> out) {
  if (!IsOfEdges(entry)) return FillMissingRows(entry, out);
  const auto null = NullOf(entry.attributes);
  if (entry.dtype == DataType::kInt64)
    for (std::size_t at = 0; at + sizeof(std::int64_t) <= out.size(); at += sizeof(std::int64_t))
      StoreLittle(out.data() + at, null.value_or(0));
  else
    FillOtherRows(entry, out);
}

MissingRow MissingRowOf(const ArrayEntry& entry) {
  for (const auto& [key, value] : entry.attributes)
    if (key == kMissingAttribute) return MissingRowOfAttribute(value, entry.dtype);
  return MissingRowOfName(entry.name, entry.dtype);
}

std::optional<std::int64_t> NullOf(ArrayAttributes attributes) {
  for (const auto& [key, value] : attributes) {
    if (key != kNullAttribute) continue;
    std::int64_t null = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, null);
    if (error == std::errc() && rest == end) return null;
  }
  return std::nullopt;
}

std::string_view TypeOf(ArrayAttributes attributes) {
  for (const auto& [key, value] : attributes)
    if (key == kTypeAttribute) return value;
  return {};
}

std::optional<std::string_view> MissingOfNewArray(std::string_view name, DataType dtype,
                                                  std::uint64_t dim) {
  if (dim != 1 || MissingRowOfName(name, dtype) != MissingRow::kZeros) return std::nullopt;
  if (IsWhole(dtype)) return kMissingNoLabel;
  if (dtype == DataType::kUint8) return kMissingNoSplit;
  return std::nullopt;
}

MissingRow MissingRowOfNewArray(std::string_view name, DataType dtype, std::uint64_t dim) {
  const auto missing = MissingOfNewArray(name, dtype, dim);
  return missing ? MissingRowOfAttribute(*missing, dtype) : MissingRowOfName(name, dtype);
}

}  // namespace rhizome
