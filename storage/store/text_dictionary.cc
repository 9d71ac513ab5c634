// Reads the dictionary of an array of texts. ReadChunk reads, verifies and decodes one chunk, or
// takes it from a small cache. The chunk of a code follows from the code; FindChunk finds the chunk
// of a text by binary search of the chunks' first texts, which stay in memory once they were read.
// FindAdded finds a text that updates added by its hash, in a list that the first look-up makes.

#include "storage/store/text_dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <numeric>
#include <utility>

#include "storage/array/array_versions.h"
#include "storage/array/text_files.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kCacheBytes = std::uint64_t{8} << 20;
constexpr std::size_t kMaxFirstBytes = 1024;  // longer first texts are read again

std::uint64_t HashOf(std::string_view text) {
  const Hash128 hash = Xxh3(std::as_bytes(std::span(text)));
  std::uint64_t first = 0;
  std::memcpy(&first, hash.data(), sizeof(first));
  return first;
}

std::uint64_t BytesOf(const TextChunk& chunk) {
  return chunk.bytes.size() + chunk.ends.size() * sizeof(std::uint64_t);
}

}  // namespace

class TextDictionary::Impl {
 public:
  Impl(std::shared_ptr<const Store> pinned, std::string shown, const TextsShape& texts_shape,
       std::vector<FileEntry> chunk_files)
      : store(std::move(pinned)),
        name(std::move(shown)),
        shape(texts_shape),
        files(std::move(chunk_files)),
        firsts_(files.size()) {}

  using Chunk = std::shared_ptr<const TextChunk>;

  /// Returns a chunk of the dictionary. Errors: kCorruption; kIoError.
  Result<Chunk> ReadChunk(std::uint64_t chunk) const RHIZOME_EXCLUDES(mutex_);

  /// Returns the number of the chunk that contains `text`, if any does. Errors: as ReadChunk.
  Result<std::uint64_t> FindChunk(std::string_view text) const;

  /// Return the code of a sorted text, and of a text that updates added. Errors: as ReadChunk.
  Result<std::optional<std::int64_t>> FindSorted(std::string_view text) const;
  Result<std::optional<std::int64_t>> FindAdded(std::string_view text) const
      RHIZOME_EXCLUDES(added_mutex_);

  const std::shared_ptr<const Store> store;
  const std::string name;  // of the array, as users write it
  const TextsShape shape;
  const std::vector<FileEntry> files;  // by chunk

 private:
  struct Kept {
    std::uint64_t number;
    Chunk chunk;
  };
  Chunk FindKept(std::uint64_t number) const RHIZOME_EXCLUDES(mutex_);
  void Keep(std::uint64_t number, Chunk chunk) const RHIZOME_EXCLUDES(mutex_);
  Result<std::string> FirstOf(std::uint64_t number) const RHIZOME_EXCLUDES(mutex_);
  Status HashAdded() const RHIZOME_REQUIRES(added_mutex_);

  mutable Mutex mutex_;
  mutable std::list<Kept> kept_ RHIZOME_GUARDED_BY(mutex_);  // most recent first
  mutable std::uint64_t kept_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;
  mutable std::vector<std::string> firsts_ RHIZOME_GUARDED_BY(mutex_);  // empty: not read yet

  struct Hashed {
    std::uint64_t hash;
    std::uint64_t code;
    bool operator<(const Hashed& other) const { return hash < other.hash; }
  };
  mutable Mutex added_mutex_;
  mutable std::vector<Hashed> added_ RHIZOME_GUARDED_BY(added_mutex_);  // sorted; empty: not read
};

TextDictionary::Impl::Chunk TextDictionary::Impl::FindKept(std::uint64_t number) const {
  const MutexLock lock(mutex_);
  const auto at = std::find_if(kept_.begin(), kept_.end(),
                               [&](const Kept& one) { return one.number == number; });
  if (at == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, at);
  return at->chunk;
}

void TextDictionary::Impl::Keep(std::uint64_t number, Chunk chunk) const {
  const MutexLock lock(mutex_);
  const std::string_view first = chunk->At(0);
  if (first.size() <= kMaxFirstBytes) firsts_[number] = first;
  kept_bytes_ += BytesOf(*chunk);
  kept_.push_front({number, std::move(chunk)});
  while (kept_.size() > 1 && kept_bytes_ > kCacheBytes) {
    kept_bytes_ -= BytesOf(*kept_.back().chunk);
    kept_.pop_back();
  }
}

Result<TextDictionary::Impl::Chunk> TextDictionary::Impl::ReadChunk(std::uint64_t number) const {
  if (Chunk kept = FindKept(number)) return kept;
  const FileEntry& file = files[number];
  const Path path = store->GenerationFolder() / file.path;
  RHIZOME_ASSIGN_OR_RETURN(
      const auto bytes, MissingIsDamage(ReadWholeFile(store->fs(), path, file.size_bytes), path));
  if (bytes.size() != file.size_bytes || Xxh3(bytes) != file.xxh3)
    return Fail(Status::Corruption(
        fmt::format("'{}': length or hash differ from the manifest's", path.string())));
  auto decoded = DecodeTextChunk(bytes, shape, number);
  if (!decoded) return Fail(decoded.error().WithContext(path.string()));
  auto chunk = std::make_shared<const TextChunk>(*std::move(decoded));
  Keep(number, chunk);
  return chunk;
}

Result<std::string> TextDictionary::Impl::FirstOf(std::uint64_t number) const {
  {
    const MutexLock lock(mutex_);
    if (!firsts_[number].empty()) return firsts_[number];
  }
  RHIZOME_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(number));
  return std::string(chunk->At(0));
}

Result<std::uint64_t> TextDictionary::Impl::FindChunk(std::string_view text) const {
  std::uint64_t begin = 0;
  std::uint64_t end = (shape.sorted() + shape.per_chunk - 1) / shape.per_chunk;
  while (end - begin > 1) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    RHIZOME_ASSIGN_OR_RETURN(const std::string first, FirstOf(middle));
    (first <= text ? begin : end) = middle;
  }
  return begin;
}

Result<std::optional<std::int64_t>> TextDictionary::Impl::FindSorted(std::string_view text) const {
  const std::optional<std::int64_t> none;
  if (shape.sorted() == 0) return none;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t number, FindChunk(text));
  RHIZOME_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(number));
  const std::uint64_t sorted = shape.SortedInChunk(number);
  std::uint64_t begin = 0;
  std::uint64_t end = sorted;
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    if (chunk->At(middle) < text)
      begin = middle + 1;
    else
      end = middle;
  }
  if (begin == sorted || chunk->At(begin) != text) return none;
  return std::optional(static_cast<std::int64_t>(number * shape.per_chunk + begin));
}

Status TextDictionary::Impl::HashAdded() const {
  std::vector<Hashed> hashed;
  for (std::uint64_t n = shape.sorted() / shape.per_chunk; n < shape.chunks(); ++n) {
    RHIZOME_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(n));
    for (std::uint64_t i = shape.SortedInChunk(n); i < chunk->size(); ++i)
      hashed.push_back({HashOf(chunk->At(i)), n * shape.per_chunk + i});
  }
  std::sort(hashed.begin(), hashed.end());
  added_ = std::move(hashed);
  return Status::Ok();
}

Result<std::optional<std::int64_t>> TextDictionary::Impl::FindAdded(std::string_view text) const {
  if (shape.added == 0) return std::optional<std::int64_t>();
  std::vector<std::uint64_t> codes;  // with the hash of the text
  {
    const MutexLock lock(added_mutex_);
    if (added_.empty()) RHIZOME_RETURN_IF_ERROR(HashAdded());
    const auto [begin, end] =
        std::equal_range(added_.begin(), added_.end(), Hashed{HashOf(text), 0});
    for (auto at = begin; at != end; ++at) codes.push_back(at->code);
  }
  for (const std::uint64_t code : codes) {
    RHIZOME_ASSIGN_OR_RETURN(const Chunk chunk, ReadChunk(code / shape.per_chunk));
    if (chunk->At(code % shape.per_chunk) == text)
      return std::optional(static_cast<std::int64_t>(code));
  }
  return std::optional<std::int64_t>();
}

TextDictionary::TextDictionary(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextDictionary::~TextDictionary() = default;
std::uint64_t TextDictionary::size() const { return impl_->shape.texts; }
std::uint64_t TextDictionary::added() const { return impl_->shape.added; }

Result<std::shared_ptr<const TextDictionary>> TextDictionary::Open(const Store& store,
                                                                   const ArrayEntry& array) {
  if (!HasTexts(array)) return nullptr;
  const Manifest& manifest = store.manifest();
  const ArrayEntry* holder = HolderOfTexts(manifest, array);
  const auto corrupt = [&](std::string_view why) {
    return Fail(Status::Corruption(fmt::format("array '{}': {}", ShownName(array.name), why)));
  };
  if (holder == nullptr) return corrupt("its part in partition 0 does not exist");
  if (array.dtype != DataType::kInt64) return corrupt("its codes of texts are not int64");
  RHIZOME_ASSIGN_OR_RETURN(const TextsShape shape, ShapeOfTexts(*holder));
  // Checked before anything is allocated, since attributes may claim any number of chunks.
  if (shape.chunks() > manifest.files.size())
    return corrupt("its texts have more chunks than there are files");
  std::vector<FileEntry> files;
  for (std::uint64_t chunk = 0; chunk < shape.chunks(); ++chunk) {
    const FileEntry* file = manifest.FindFile(TextChunkPath(holder->name, chunk));
    if (file == nullptr)
      return corrupt(fmt::format("chunk {} of its texts is not in the manifest", chunk));
    files.push_back(*file);
  }
  auto impl =
      std::make_unique<Impl>(store.Snapshot(), ShownName(array.name), shape, std::move(files));
  return std::shared_ptr<const TextDictionary>(new TextDictionary(std::move(impl)));
}

Result<std::vector<std::string>> TextDictionary::TextsOf(
    std::span<const std::int64_t> codes) const {
  std::vector<std::string> texts(codes.size());
  std::vector<std::size_t> order(codes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::is_sorted(codes.begin(), codes.end()))
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return codes[a] < codes[b]; });
  Impl::Chunk chunk;
  std::uint64_t number = 0;
  for (const std::size_t i : order) {
    if (codes[i] == -1) continue;
    const auto code = static_cast<std::uint64_t>(codes[i]);
    if (code >= size())
      return Fail(Status::InvalidArgument(fmt::format(
          "code {} of the array '{}' has no text; there are {}", codes[i], impl_->name, size())));
    const std::uint64_t wanted = code / impl_->shape.per_chunk;
    if (chunk == nullptr || number != wanted) {
      RHIZOME_ASSIGN_OR_RETURN(chunk, impl_->ReadChunk(wanted));
      number = wanted;
    }
    texts[i] = chunk->At(code % impl_->shape.per_chunk);
  }
  return texts;
}

Result<std::optional<std::int64_t>> TextDictionary::CodeOf(std::string_view text) const {
  if (text.empty()) return std::optional<std::int64_t>();
  RHIZOME_ASSIGN_OR_RETURN(const auto sorted, impl_->FindSorted(text));
  return sorted ? Result<std::optional<std::int64_t>>(sorted) : impl_->FindAdded(text);
}

}  // namespace internal
}  // namespace rhizome
