// The dictionary of an array of texts is a one-dimensional Zarr array of strings. WriteTexts
// chooses the texts of a chunk (ChooseShape), then writes zarr.json and the chunks. A reader takes
// the shape from the array's attributes and decodes single chunks (DecodeTextChunk).

#include "storage/array/text_files.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/codec.h"
#include "storage/array/zarr_json.h"
#include "storage/base/bytes.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/utf8.h"
#include "storage/io/files.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {
namespace {

using Json = ZarrJson;

constexpr Codec kTextCodec{.kind = CodecKind::kZstd, .level = 3, .element_bytes = 1};
constexpr std::uint64_t kChunkTextBytes = std::uint64_t{256} << 10;  // wanted, and at least
constexpr std::uint64_t kMaxChunks = 4096;                           // wanted
constexpr std::uint64_t kMaxTextsPerChunk = 65'536;
constexpr std::uint64_t kHeadBytes = sizeof(std::uint32_t);  // before each text, and at the front

std::string_view AttributeOf(const ArrayEntry& entry, std::string_view key) {
  for (const auto& [name, value] : entry.attributes)
    if (name == key) return value;
  return {};
}

bool IsOfTexts(std::string_view key) {
  return key == kTypeAttribute || key == kTextsAttribute || key == kTextsPerChunkAttribute ||
         key == kTextsAddedAttribute;
}

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

FileEntry EntryOf(std::string path, std::span<const std::byte> bytes) {
  return {std::move(path), bytes.size(), Xxh3(bytes), Crc32c(bytes)};
}

/// Returns the largest size of a chunk, raw.
std::uint64_t LargestChunk(const std::vector<std::uint32_t>& sizes, std::uint64_t per_chunk) {
  std::uint64_t largest = 0;
  for (std::uint64_t first = 0; first < sizes.size(); first += per_chunk) {
    std::uint64_t bytes = kHeadBytes * (per_chunk + 1);
    for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + per_chunk, sizes.size()); ++i)
      bytes += sizes[i];
    largest = std::max(largest, bytes);
  }
  return largest;
}

/// Chooses the number of texts in a chunk: about kChunkTextBytes, or more if there would be too
/// many chunks. A run of long texts must still fit in a chunk.
Result<TextsShape> ChooseShape(const TextList& texts) {
  std::vector<std::uint32_t> sizes;
  sizes.reserve(texts.count);
  std::uint64_t bytes = 0;
  std::string last;
  for (std::uint64_t i = 0; i < texts.count; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const std::string_view text, texts.at(i));
    RHIZOME_RETURN_IF_ERROR(CheckText(fmt::format("text {}", i), text));
    if (text <= last && i < texts.count - texts.added)
      return Fail(Status::InvalidArgument(
          fmt::format("text {} is not above the text before it; sort the texts", i)));
    last = text;
    sizes.push_back(static_cast<std::uint32_t>(text.size()));
    bytes += text.size() + kHeadBytes;
  }
  TextsShape shape{.texts = texts.count, .added = texts.added};
  const std::uint64_t wanted = std::max(kChunkTextBytes, bytes / kMaxChunks);
  const std::uint64_t mean =
      std::max<std::uint64_t>(bytes / std::max<std::uint64_t>(texts.count, 1), 1);
  shape.per_chunk = std::clamp<std::uint64_t>(
      wanted / mean, 1, std::min(kMaxTextsPerChunk, std::max<std::uint64_t>(texts.count, 1)));
  while (shape.per_chunk > 1 && LargestChunk(sizes, shape.per_chunk) > kMaxChunkBytes / 2)
    shape.per_chunk = (shape.per_chunk + 1) / 2;
  return shape;
}

Result<std::vector<std::byte>> Decompress(std::span<const std::byte> encoded) {
  const auto bad = [](std::string_view why) {
    return Fail(Status::Corruption(fmt::format("chunk of texts: {}", why)));
  };
  const auto size = ZSTD_getFrameContentSize(encoded.data(), encoded.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMaxChunkBytes)
    return bad("its zstd frame does not state a possible size");
  std::vector<std::byte> raw(size);
  RHIZOME_RETURN_IF_ERROR(DecodeChunk(kTextCodec, encoded, raw));
  return raw;
}

}  // namespace

const ArrayEntry* HolderOfTexts(const Manifest& manifest, const ArrayEntry& array) {
  if (!HasTexts(array)) return nullptr;
  if (!IsOfEdges(array)) return &array;
  const std::string first = array.name.substr(0, array.name.rfind('.')) + ".p0000";
  return FindStoredArray(manifest.arrays, first);
}

bool HasAddedTexts(const ArrayEntry& array) {
  return HasTexts(array) && !AttributeOf(array, kTextsAddedAttribute).empty();
}

std::uint64_t TextsShape::InChunk(std::uint64_t chunk) const {
  return chunk >= chunks() ? 0 : std::min(per_chunk, texts - chunk * per_chunk);
}

std::uint64_t TextsShape::SortedInChunk(std::uint64_t chunk) const {
  const std::uint64_t first = std::min(chunk, chunks()) * per_chunk;
  return std::min(InChunk(chunk), sorted() > first ? sorted() - first : 0);
}

Result<TextsShape> ShapeOfTexts(const ArrayEntry& holder) {
  const auto texts = ParseCount(AttributeOf(holder, kTextsAttribute));
  const auto per_chunk = ParseCount(AttributeOf(holder, kTextsPerChunkAttribute));
  const std::string_view last = AttributeOf(holder, kTextsAddedAttribute);
  const auto added = last.empty() ? std::optional<std::uint64_t>(0) : ParseCount(last);
  if (texts && per_chunk && *per_chunk > 0 && *per_chunk <= kMaxTextsPerChunk && added &&
      *added <= *texts)
    return TextsShape{*texts, *per_chunk, *added};
  return Fail(Status::Corruption(fmt::format(
      "array '{}': its attributes '{}', '{}' and '{}' do not describe its texts",
      ShownName(holder.name), kTextsAttribute, kTextsPerChunkAttribute, kTextsAddedAttribute)));
}

Status CheckText(std::string_view what, std::string_view text) {
  if (text.empty()) return Status::InvalidArgument(fmt::format("{} is empty", what));
  if (text.size() > kMaxCodedTextBytes)
    return Status::InvalidArgument(fmt::format("{} has {} bytes, but at most {} are possible", what,
                                               text.size(), kMaxCodedTextBytes));
  if (!IsUtf8(text))
    return Status::InvalidArgument(
        fmt::format("{} is not valid UTF-8; convert the input to UTF-8", what));
  return Status::Ok();
}

std::string TextsFolder(std::string_view array) { return fmt::format("{}{}", kTextsPrefix, array); }

std::string TextsJsonPath(std::string_view array) { return TextsFolder(array) + "/zarr.json"; }

std::string TextChunkPath(std::string_view array, std::uint64_t chunk) {
  return fmt::format("{}/c.{}", TextsFolder(array), chunk);
}

std::optional<std::uint64_t> ParseTextChunk(std::string_view path) {
  if (!path.starts_with(kTextsPrefix)) return std::nullopt;
  path.remove_prefix(path.rfind('/') + 1);
  if (!path.starts_with("c.")) return std::nullopt;
  return ParseCount(path.substr(2));
}

std::string EncodeTextsJson(const TextsShape& shape) {
  const auto named = [](const char* name, Json configuration) {
    return Json::Object().With("name", name).With("configuration", std::move(configuration));
  };
  const Json chunk_shape = Json::Array(shape.per_chunk);
  Json json = Json::Object();
  json.Set("zarr_format", 3);
  json.Set("node_type", "array");
  json.Set("shape", Json::Array(shape.texts));
  json.Set("data_type", "string");
  json.Set("chunk_grid", named("regular", Json::Object().With("chunk_shape", chunk_shape)));
  json.Set("chunk_key_encoding", named("default", Json::Object().With("separator", ".")));
  json.Set("fill_value", "");
  json.Set("codecs",
           Json::Array(Json::Object().With("name", "vlen-utf8"),
                       named("zstd", Json::Object()
                                         .With("level", static_cast<std::int64_t>(kTextCodec.level))
                                         .With("checksum", false)),
                       Json::Object().With("name", "crc32c")));
  json.Set("dimension_names", Json::Array("code"));
  json.Set("attributes",
           Json::Object().With("long_name", "text of each code of the array of the same name"));
  return json.Dump(2) + "\n";
}

Result<std::vector<std::byte>> EncodeTextChunk(std::span<const std::string_view> texts,
                                               std::uint64_t per_chunk) {
  ByteWriter raw;
  raw.Number(static_cast<std::uint32_t>(per_chunk));
  for (std::uint64_t i = 0; i < per_chunk; ++i)
    raw.String(i < texts.size() ? texts[i] : std::string_view());
  return EncodeChunk(kTextCodec, raw.bytes());
}

Result<TextChunk> DecodeTextChunk(std::span<const std::byte> encoded, const TextsShape& shape,
                                  std::uint64_t number) {
  const std::uint64_t count = shape.InChunk(number);
  const std::uint64_t sorted = shape.SortedInChunk(number);
  const auto bad = [](std::string why) {
    return Fail(Status::Corruption(fmt::format("chunk of texts: {}", why)));
  };
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> raw, Decompress(encoded));
  ByteReader reader(raw);
  if (reader.Number<std::uint32_t>("count") != shape.per_chunk)
    return bad(fmt::format("it does not have {} texts", shape.per_chunk));
  TextChunk chunk;
  for (std::uint64_t i = 0; i < shape.per_chunk && reader.ok(); ++i) {
    const auto size = reader.Number<std::uint32_t>("length");
    const auto bytes = reader.Bytes("text", size);
    if (!reader.ok()) break;
    if (i >= count) {
      if (size != 0) return bad("a text follows the last one");
      continue;
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), size);
    if (!IsUtf8(text)) return bad(fmt::format("text {} is not UTF-8", i));
    if (text.empty()) return bad(fmt::format("text {} is empty", i));
    if (i > 0 && i < sorted && text <= chunk.At(i - 1))
      return bad(fmt::format("text {} does not ascend", i));
    chunk.bytes.insert(chunk.bytes.end(), text.begin(), text.end());
    chunk.ends.push_back(chunk.bytes.size());
  }
  if (!reader.ok()) return Fail(reader.status());
  if (reader.left() != 0) return bad("bytes follow the last text");
  return chunk;
}

Result<TextFiles> WriteTexts(FileSystem& fs, const Path& root, std::string_view array,
                             const TextList& texts) {
  RHIZOME_ASSIGN_OR_RETURN(const TextsShape shape, ChooseShape(texts));
  TextFiles written;
  const auto write = [&](const std::string& path, std::span<const std::byte> bytes) {
    written.files.push_back(EntryOf(path, bytes));
    return WriteWholeFile(fs, root / path, bytes);
  };
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, (root / TextsJsonPath(array)).parent_path()));
  std::vector<std::string> held;
  std::vector<std::string_view> views;
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    held.clear();
    for (std::uint64_t i = 0; i < shape.InChunk(chunk); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(held.emplace_back(), texts.at(chunk * shape.per_chunk + i));
    }
    views.assign(held.begin(), held.end());
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, EncodeTextChunk(views, shape.per_chunk));
    RHIZOME_RETURN_IF_ERROR(write(TextChunkPath(array, chunk), bytes));
  }
  const std::string json = EncodeTextsJson(shape);
  RHIZOME_RETURN_IF_ERROR(write(TextsJsonPath(array), std::as_bytes(std::span(json))));
  std::sort(written.files.begin(), written.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  written.attributes = {{std::string(kTextsAttribute), std::to_string(shape.texts)},
                        {std::string(kTextsPerChunkAttribute), std::to_string(shape.per_chunk)},
                        {std::string(kTypeAttribute), std::string(kTypeText)}};
  if (shape.added > 0)
    written.attributes.emplace_back(kTextsAddedAttribute, std::to_string(shape.added));
  return written;
}

Result<TextFiles> CopyTexts(FileSystem& fs, const Path& from, const ArrayEntry& holder,
                            std::span<const FileEntry> files, const Path& to,
                            std::string_view name) {
  RHIZOME_ASSIGN_OR_RETURN(const TextsShape shape, ShapeOfTexts(holder));
  const std::string old_prefix = TextsFolder(holder.name) + "/";
  const std::string new_prefix = TextsFolder(name) + "/";
  TextFiles written;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, (to / TextsJsonPath(name)).parent_path()));
  for (const FileEntry& file : files) {
    if (!file.path.starts_with(old_prefix)) continue;
    const Path path = from / file.path;
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                             MissingIsDamage(ReadWholeFile(fs, path, file.size_bytes), path));
    if (bytes.size() != file.size_bytes || Xxh3(bytes) != file.xxh3)
      return Fail(Status::Corruption(
          fmt::format("'{}': length or hash differ from the manifest's", path.string())));
    FileEntry copy = file;
    copy.path = new_prefix + file.path.substr(old_prefix.size());
    RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs, to / copy.path, bytes));
    written.files.push_back(std::move(copy));
  }
  if (written.files.size() != shape.chunks() + 1)
    return Fail(Status::Corruption(
        fmt::format("'{}': {} files in the manifest, but {} chunks of texts",
                    (from / old_prefix).string(), written.files.size(), shape.chunks())));
  for (const auto& fact : holder.attributes)
    if (IsOfTexts(fact.first)) written.attributes.push_back(fact);
  return written;
}

void RemoveShapeOfTexts(ArrayEntry& entry) {
  std::erase_if(entry.attributes, [](const auto& fact) {
    return IsOfTexts(fact.first) && fact.first != kTypeAttribute;
  });
}

void RemoveTexts(ArrayEntry& entry) {
  std::erase_if(entry.attributes, [](const auto& fact) { return IsOfTexts(fact.first); });
}

void SetAttributes(std::span<const std::pair<std::string, std::string>> attributes,
                   ArrayEntry& entry) {
  for (const auto& attribute : attributes) {
    std::erase_if(entry.attributes,
                  [&](const auto& fact) { return fact.first == attribute.first; });
    entry.attributes.push_back(attribute);
  }
  std::sort(entry.attributes.begin(), entry.attributes.end());
}

}  // namespace internal
}  // namespace rhizome
