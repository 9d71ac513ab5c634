#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "storage/array/array_facts.h"

namespace rhizome {
inline namespace internal {

/// Attributes of the array whose folder below texts/ has the dictionary: the number of its texts,
/// the number of texts in a chunk, and the number of the last texts that updates added, which are
/// not sorted (absent: 0).
inline constexpr std::string_view kTextsAttribute = "texts";
inline constexpr std::string_view kTextsPerChunkAttribute = "texts_per_chunk";
inline constexpr std::string_view kTextsAddedAttribute = "texts_added";

/// Max bytes of a text.
inline constexpr std::uint64_t kMaxCodedTextBytes = std::uint64_t{1} << 20;

/// Returns the array whose folder has the dictionary of `array`: the array itself; for an edge
/// attribute, its part in partition 0. Returns nullptr if `array` holds no codes.
const ArrayEntry* HolderOfTexts(const Manifest& manifest, const ArrayEntry& array);

/// Returns whether updates have added texts to the dictionary that the array holds.
bool HasAddedTexts(const ArrayEntry& array);

/// Size and division of a dictionary.
struct TextsShape {
  std::uint64_t texts = 0;
  std::uint64_t per_chunk = 1;
  std::uint64_t added = 0;  ///< the last texts, in the order in which updates added them

  std::uint64_t sorted() const { return texts - added; }  ///< the first texts, which ascend
  std::uint64_t chunks() const { return texts / per_chunk + (texts % per_chunk != 0 ? 1 : 0); }
  std::uint64_t InChunk(std::uint64_t chunk) const;
  std::uint64_t SortedInChunk(std::uint64_t chunk) const;
  friend bool operator==(const TextsShape&, const TextsShape&) = default;
};

/// Returns the shape of the dictionary from its holder's attributes. Errors: kCorruption, an
/// attribute is missing or not a number.
Result<TextsShape> ShapeOfTexts(const ArrayEntry& holder);

/// Paths within a generation: "texts/<array>", "texts/<array>/zarr.json" and
/// "texts/<array>/c.<chunk>".
std::string TextsFolder(std::string_view array);
std::string TextsJsonPath(std::string_view array);
std::string TextChunkPath(std::string_view array, std::uint64_t chunk);

/// Parses the number of a chunk from such a path; nullopt for other paths.
std::optional<std::uint64_t> ParseTextChunk(std::string_view path);

/// Creates the zarr.json of a dictionary.
std::string EncodeTextsJson(const TextsShape& shape);

/// Encodes a chunk, as the codecs vlen-utf8, zstd and crc32c do. It is padded with empty texts to
/// `per_chunk` texts.
Result<std::vector<std::byte>> EncodeTextChunk(std::span<const std::string_view> texts,
                                               std::uint64_t per_chunk);

/// A decoded chunk.
struct TextChunk {
  std::vector<char> bytes;
  std::vector<std::uint64_t> ends;  ///< end of each text in `bytes`

  std::uint64_t size() const { return ends.size(); }
  std::string_view At(std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return {bytes.data() + begin, ends[i] - begin};
  }
};

/// Decodes chunk `number` of a dictionary. Memory is bounded by kMaxChunkBytes regardless of the
/// bytes. Accesses no file. Errors: kCorruption: a checksum, a length, a text that is not UTF-8, or
/// sorted texts that do not ascend.
Result<TextChunk> DecodeTextChunk(std::span<const std::byte> encoded, const TextsShape& shape,
                                  std::uint64_t number);

/// The texts of a new dictionary. `at` returns text i, which must be valid until the next call. The
/// texts are UTF-8, distinct, and have 1 to kMaxCodedTextBytes bytes. They ascend strictly by their
/// bytes, except for the last `added`.
struct TextList {
  std::uint64_t count = 0;
  std::function<Result<std::string_view>(std::uint64_t i)> at;
  std::uint64_t added = 0;
};

/// The files of a dictionary, and the attributes of its holder.
struct TextFiles {
  std::vector<FileEntry> files;
  std::vector<std::pair<std::string, std::string>> attributes;
};

/// Writes and syncs the dictionary of the array `array` below `root`; the caller syncs the folders.
/// Memory: one chunk, about 1/4096 of the texts or 256 KiB, whichever is more.
/// It does not compare the added texts with others. Errors: kInvalidArgument, a text is empty, too
/// long or not UTF-8, or does not ascend; errors of `texts.at` and of the FileSystem.
Result<TextFiles> WriteTexts(FileSystem& fs, const Path& root, std::string_view array,
                             const TextList& texts);

/// Checks one text. Errors: kInvalidArgument, as WriteTexts; the message begins with `what`.
Status CheckText(std::string_view what, std::string_view text);

/// Copies the dictionary of `holder` from below `from` to below `to`, for an array with the name
/// `name`. `files` are the files of the manifest that names `holder`. Errors: kCorruption, a file
/// is missing or damaged; errors of the FileSystem.
Result<TextFiles> CopyTexts(FileSystem& fs, const Path& from, const ArrayEntry& holder,
                            std::span<const FileEntry> files, const Path& to,
                            std::string_view name);

/// Removes the attributes of a dictionary, which only its holder has; the array still holds codes.
void RemoveShapeOfTexts(ArrayEntry& entry);

/// Removes the attributes of texts: the array then holds integers.
void RemoveTexts(ArrayEntry& entry);

/// Sets attributes of an array, replacing those with the same keys.
void SetAttributes(std::span<const std::pair<std::string, std::string>> attributes,
                   ArrayEntry& entry);

}  // namespace internal
}  // namespace rhizome
