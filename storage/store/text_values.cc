// Reads the dictionary of an array of texts. ReadChunk reads, verifies and decodes one chunk, or takes
// it from the small cache; TextOf and CodeOf find the chunk of a code, or by binary search of a text.

#include "rhizome/text_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <numeric>
#include <utility>

#include "storage/array/array_versions.h"
#include "storage/array/text_files.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "storage/io/stored_file.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {

namespace {

constexpr std::uint64_t kCacheBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kMaxClassNames = std::uint64_t{1} << 20;

/// Finds the array of codes: by name or reference, or as the first part of an edge attribute.
const ArrayEntry* FindCodes(const Manifest& manifest, std::string_view name) {
  if (const ArrayEntry* array = manifest.FindArray(name)) return array;
  return FindStoredArray(manifest.arrays, fmt::format("{}.p0000", name));
}

}  // namespace

class TextValues::Impl {
 public:
  Impl(std::shared_ptr<const Store> pinned, std::string name, const TextsShape& texts_shape,
       std::vector<FileEntry> chunk_files)
      : store(std::move(pinned)),
        array(std::move(name)),
        shape(texts_shape),
        files(std::move(chunk_files)) {}

  /// Returns a chunk of the dictionary. Errors: kCorruption; kIoError.
  Result<std::shared_ptr<const TextChunk>> ReadChunk(std::uint64_t chunk) const
      RHIZOME_EXCLUDES(mutex);

  /// Returns the chunk that contains `text` if any does, by binary search of their first texts.
  Result<std::shared_ptr<const TextChunk>> FindChunk(std::string_view text,
                                                     std::uint64_t& chunk) const;

  const std::shared_ptr<const Store> store;
  const std::string array;
  const TextsShape shape;
  const std::vector<FileEntry> files;  // by chunk

 private:
  struct Kept {
    std::uint64_t chunk;
    std::shared_ptr<const TextChunk> texts;
  };
  void Keep(std::uint64_t chunk, std::shared_ptr<const TextChunk> texts) const
      RHIZOME_EXCLUDES(mutex);

  mutable Mutex mutex;
  mutable std::list<Kept> kept RHIZOME_GUARDED_BY(mutex);  // most recent first
  mutable std::uint64_t kept_bytes RHIZOME_GUARDED_BY(mutex) = 0;
};

namespace {

std::uint64_t BytesOf(const TextChunk& chunk) {
  return chunk.bytes.size() + chunk.ends.size() * sizeof(std::uint64_t);
}

/// Returns the names in the attribute kLabelNames. The contents of a store are untrusted: names that
/// do not parse are ignored.
std::vector<std::string> NamesInAttribute(const ArrayEntry& array) {
  std::vector<std::string> names;
  for (const auto& [key, value] : array.attributes) {
    if (key != kLabelNames) continue;
    const nlohmann::json list = ParseUntrustedJson(value);
    if (!list.is_array()) continue;
    for (const nlohmann::json& name : list)
      names.push_back(name.is_string() ? name.get<std::string>() : std::string());
  }
  return names;
}

}  // namespace

void TextValues::Impl::Keep(std::uint64_t chunk, std::shared_ptr<const TextChunk> texts) const {
  const MutexLock lock(mutex);
  kept_bytes += BytesOf(*texts);
  kept.push_front({chunk, std::move(texts)});
  while (kept.size() > 1 && kept_bytes > kCacheBytes) {
    kept_bytes -= BytesOf(*kept.back().texts);
    kept.pop_back();
  }
}

Result<std::shared_ptr<const TextChunk>> TextValues::Impl::ReadChunk(std::uint64_t chunk) const {
  {
    const MutexLock lock(mutex);
    const auto at = std::find_if(kept.begin(), kept.end(),
                                 [&](const Kept& one) { return one.chunk == chunk; });
    if (at != kept.end()) {
      kept.splice(kept.begin(), kept, at);
      return at->texts;
    }
  }
  const FileEntry& file = files[chunk];
  const Path path = store->GenerationFolder() / file.path;
  RHIZOME_ASSIGN_OR_RETURN(
      const auto bytes,
      MissingIsDamage(ReadWholeFile(store->fs(), path, file.size_bytes), path));
  if (bytes.size() != file.size_bytes || Xxh3(bytes) != file.xxh3)
    return Fail(Status::Corruption(
        fmt::format("'{}': length or hash differ from the manifest's", path.string())));
  auto decoded = DecodeTextChunk(bytes, shape.InChunk(chunk), shape.per_chunk);
  if (!decoded) return Fail(decoded.error().WithContext(path.string()));
  auto texts = std::make_shared<const TextChunk>(*std::move(decoded));
  Keep(chunk, texts);
  return texts;
}

Result<std::shared_ptr<const TextChunk>> TextValues::Impl::FindChunk(std::string_view text,
                                                                     std::uint64_t& chunk) const {
  std::uint64_t begin = 0;  // the first text of chunk `begin` is not above `text`, if any is not
  std::uint64_t end = shape.chunks();
  while (end - begin > 1) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, ReadChunk(middle));
    (texts->At(0) <= text ? begin : end) = middle;
  }
  chunk = begin;
  return ReadChunk(begin);
}

TextValues::TextValues(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextValues::~TextValues() = default;
const std::string& TextValues::array() const { return impl_->array; }
std::uint64_t TextValues::size() const { return impl_->shape.texts; }

Result<std::shared_ptr<const TextValues>> TextValues::OpenIfAny(const Store& store,
                                                                std::string_view array) try {
  const Manifest& manifest = store.manifest();
  const ArrayEntry* codes = FindCodes(manifest, array);
  if (codes == nullptr || !HasTexts(*codes)) return nullptr;
  const ArrayEntry* holder = HolderOfTexts(manifest, *codes);
  if (holder == nullptr)
    return Fail(Status::Corruption(fmt::format("array '{}' has no dictionary of texts", array)));
  RHIZOME_ASSIGN_OR_RETURN(const TextsShape shape, ShapeOfTexts(*holder));
  if (shape.chunks() > manifest.files.size())
    return Fail(Status::Corruption(
        fmt::format("array '{}': its texts have more chunks than there are files", array)));
  std::vector<FileEntry> files;
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    const std::string path = TextChunkPath(holder->name, chunk);
    const FileEntry* file = manifest.FindFile(path);
    if (file == nullptr)
      return Fail(Status::Corruption(fmt::format(
          "'{}' is not in the manifest's list of files", (store.GenerationFolder() / path).string())));
    files.push_back(*file);
  }
  auto impl =
      std::make_unique<Impl>(store.Snapshot(), std::string(array), shape, std::move(files));
  return std::shared_ptr<const TextValues>(new TextValues(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::shared_ptr<const TextValues>> TextValues::Open(const Store& store,
                                                           std::string_view array) try {
  RHIZOME_ASSIGN_OR_RETURN(auto texts, OpenIfAny(store, array));
  if (texts != nullptr) return texts;
  if (FindCodes(store.manifest(), array) == nullptr) {
    const auto opened = store.OpenArray(array);  // for its message, which lists the arrays
    if (!opened) return Fail(opened.error());
  }
  return Fail(Status::InvalidArgument(
      fmt::format("the array '{}' holds numbers, not texts", array)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::string> TextValues::TextOf(std::int64_t code) const try {
  RHIZOME_ASSIGN_OR_RETURN(auto texts, TextsOf(std::span(&code, 1)));
  return std::move(texts.front());
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> TextValues::TextsOf(std::span<const std::int64_t> codes) const
    try {
  std::vector<std::string> texts(codes.size());
  std::vector<std::size_t> order(codes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return codes[a] < codes[b]; });
  std::shared_ptr<const TextChunk> chunk;
  std::uint64_t number = 0;
  for (const std::size_t i : order) {
    if (codes[i] == -1) continue;
    const auto code = static_cast<std::uint64_t>(codes[i]);
    if (code >= size())
      return Fail(Status::InvalidArgument(fmt::format(
          "code {} of the array '{}' stands for no text: it has {} texts", codes[i], array(),
          size())));
    const std::uint64_t wanted = code / impl_->shape.per_chunk;
    if (chunk == nullptr || number != wanted) {
      RHIZOME_ASSIGN_OR_RETURN(chunk, impl_->ReadChunk(wanted));
      number = wanted;
    }
    texts[i] = chunk->At(code % impl_->shape.per_chunk);
  }
  return texts;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> TextValues::All(std::uint64_t max_texts) const try {
  if (size() > max_texts)
    return Fail(Status::InvalidArgument(fmt::format(
        "the array '{}' has {} texts, more than {}; look up those that are needed", array(),
        size(), max_texts)));
  std::vector<std::int64_t> codes(size());
  std::iota(codes.begin(), codes.end(), std::int64_t{0});
  return TextsOf(codes);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::optional<std::int64_t>> TextValues::CodeOf(std::string_view text) const try {
  if (text.empty()) return std::optional<std::int64_t>(-1);
  if (size() == 0) return std::optional<std::int64_t>();
  std::uint64_t number = 0;
  RHIZOME_ASSIGN_OR_RETURN(const auto chunk, impl_->FindChunk(text, number));
  std::uint64_t begin = 0;
  std::uint64_t end = chunk->size();
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (chunk->At(middle) < text)
      begin = middle + 1;
    else
      end = middle;
  }
  if (begin == chunk->size() || chunk->At(begin) != text) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(
      static_cast<std::int64_t>(number * impl_->shape.per_chunk + begin));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> ReadClassNames(const Store& store, std::string_view labels) try {
  RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::OpenIfAny(store, labels));
  if (texts != nullptr && texts->size() <= kMaxClassNames) return texts->All(kMaxClassNames);
  const ArrayEntry* array = store.manifest().FindArray(labels);
  return array == nullptr ? std::vector<std::string>() : NamesInAttribute(*array);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
