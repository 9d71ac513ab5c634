#include "storage/maintenance/manifest_repair.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "rhizome/chunk_array.h"
#include "rhizome/manifest.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/manifest_format.h"
#include "storage/array/zarr_format.h"
#include "storage/base/damage.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/file_scan.h"
#include "storage/io/files.h"
#include "storage/maintenance/byte_repair.h"
#include "storage/store/store_files.h"

namespace rhizome {
inline namespace internal {

namespace {

using Bytes = std::vector<std::byte>;

// Sizes from storage/FORMAT.md, "Manifest": the offset of the generation's info, the size of each
// count (of files, arrays and series), and the seal.
constexpr std::size_t kInfoOffset = 56;
constexpr std::size_t kCountBytes = 8;
constexpr std::size_t kSealBytes = 4;

// The size of the rule on which generations to keep.
constexpr std::size_t kRuleBytes = sizeof(KeepRule::generations) + sizeof(KeepRule::bytes);

// Returns the size of that rule behind the series, where it is if any array has a form other than
// kZeroFill.
std::size_t KeepBytes(const std::vector<ArrayEntry>& arrays) {
  const bool there = std::any_of(arrays.begin(), arrays.end(), [](const ArrayEntry& array) {
    return array.form != ArrayForm::kZeroFill;
  });
  return there ? kRuleBytes : 0;
}

// MostLike searches for the beginning of the list of files up to kMaxInfoBytes after the head, and
// compares about kComparedBytes of it at each position.
constexpr std::size_t kMaxInfoBytes = std::size_t{64} << 10;
constexpr std::size_t kComparedBytes = 512;

std::span<const std::byte> Cut(const Bytes& bytes, std::size_t first, std::size_t behind) {
  return std::span(bytes).subspan(first, bytes.size() - first - behind);
}

/// Encodes pieces of a manifest, by encoding manifests that contain only this piece.
class Pieces {
 public:
  Pieces(const StoreId& id, const CommitRecord& record) : id_(id), record_(record) {
    info_bytes_ = Encode({}).size() - kInfoOffset - 3 * kCountBytes - kSealBytes;
  }

  Bytes Info(const GenerationInfo& info) const {
    Manifest manifest;
    manifest.info = info;
    const std::size_t keep_bytes = info.edge_ends.empty() ? 0 : kRuleBytes;
    return Copy(Cut(Encode(manifest), kInfoOffset, 3 * kCountBytes + keep_bytes + kSealBytes));
  }
  Bytes Files(std::vector<FileEntry> files) const {
    Manifest manifest;
    manifest.files = std::move(files);
    return Copy(Cut(Encode(manifest), kInfoOffset + info_bytes_, 2 * kCountBytes + kSealBytes));
  }
  Bytes Tail(std::vector<ArrayEntry> arrays, std::vector<ArraySeries> series,
             const KeepRule& keep = {}) const {
    Manifest manifest;
    manifest.keep = keep;
    manifest.arrays = std::move(arrays);
    manifest.series = std::move(series);
    return Copy(Cut(Encode(manifest), kInfoOffset + info_bytes_ + kCountBytes, kSealBytes));
  }
  /// Returns the tail of a manifest that has the ends of edge types but no arrays.
  Bytes TailWithoutArrays(std::vector<ArraySeries> series, const KeepRule& keep = {}) const {
    Manifest manifest;
    manifest.keep = keep;
    manifest.series = std::move(series);
    manifest.info.edge_ends.emplace_back();  // sets the version; there is no edge type
    return Copy(Cut(Encode(manifest), kInfoOffset + info_bytes_ + kCountBytes, kSealBytes));
  }
  /// `arrays`, and whether the ends of edge types are stored, determine the version of the format.
  Bytes Head(std::vector<ArrayEntry> arrays, bool ends) const {
    constexpr std::size_t kLengthOffset = 32;  // storage/FORMAT.md, "Manifest"
    Manifest manifest;
    manifest.arrays = std::move(arrays);
    if (ends) manifest.info.edge_ends.emplace_back();
    Bytes head = Encode(manifest);
    head.resize(kInfoOffset);
    StoreLittle(head.data() + kLengthOffset, record_.manifest_bytes);
    return head;
  }

 private:
  static Bytes Copy(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }
  Bytes Encode(Manifest manifest) const {
    manifest.generation = record_.generation;
    manifest.version = record_.manifest_version;
    return EncodeManifest(manifest, id_);
  }

  const StoreId& id_;
  const CommitRecord& record_;
  std::size_t info_bytes_ = 0;
};

/// One run of RebuildManifest:
///   1. hashes the files of the generation, and reads zarr.json of its arrays and its other intact
///      manifests (HashFiles, ReadArrays, ReadSiblings);
///   2. finds the offsets at which the list of files may begin (StartsOf);
///   3. for each offset, joins candidates for head, info, list and tail, and checks whether the
///      result, or the result with one byte corrected, has the committed hash (TryAt, TryPieces).
/// Threads: one.
class ManifestRepair {
 public:
  ManifestRepair(FileSystem& fs, Path generation, const StoreId& id, const CommitRecord& record,
                 Bytes left, const JobControl& control)
      : fs_(fs),
        generation_(std::move(generation)),
        id_(id),
        record_(record),
        left_(std::move(left)),
        control_(control),
        pieces_(id_, record_) {}

  Result<std::optional<Bytes>> Run() {
    left_.resize(record_.manifest_bytes);
    if (left_.size() < kInfoOffset + 3 * kCountBytes + kSealBytes) return std::optional<Bytes>();
    const auto folder = fs_.Stat(generation_);
    if (!folder && ProvesDamage(folder.error())) return std::optional<Bytes>();
    RHIZOME_RETURN_IF_ERROR(HashFiles());
    RHIZOME_RETURN_IF_ERROR(ReadArrays());
    RHIZOME_RETURN_IF_ERROR(ReadSiblings());
    heads_ = {pieces_.Head(arrays_, false), pieces_.Head(arrays_, true)};
    std::vector<Bytes> lists = {pieces_.Files(files_)};
    const std::set<std::size_t> starts = StartsOf(lists.front());
    for (const std::size_t start : starts) {
      lists.push_back(pieces_.Files(WithEntriesLeft(start)));
      for (const Bytes& list : lists) {
        if (auto whole = TryAt(start, list)) return std::optional(*std::move(whole));
      }
      lists.pop_back();
    }
    return std::optional<Bytes>();
  }

 private:
  Status HashFiles() {
    std::vector<ScanFile> files;
    RHIZOME_RETURN_IF_ERROR(WalkFiles(
        fs_, generation_, [&](const std::string& relative, DirectoryEntry::Kind kind) -> Status {
          if (kind != DirectoryEntry::Kind::kFile || relative == kPinName ||
              relative.starts_with(kManifestPrefix) || !CheckRelativePath(relative).ok())
            return Status::Ok();
          RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs_.Stat(generation_ / relative));
          files_.push_back({.path = relative, .size_bytes = info.size_bytes});
          return Status::Ok();
        }));
    std::sort(files_.begin(), files_.end(), [](auto& a, auto& b) { return a.path < b.path; });
    for (const FileEntry& file : files_)
      files.push_back({generation_ / file.path, file.size_bytes});
    RHIZOME_ASSIGN_OR_RETURN(const auto outcomes, ScanFiles(fs_, files, {}, control_));
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const Status& read = outcomes[i].status;
      if (!read.ok() && !ProvesDamage(read)) return read;
      files_[i].xxh3 = outcomes[i].xxh3;
      files_[i].crc32c = outcomes[i].crc32c;
    }
    return Status::Ok();
  }

  /// Reads the entries of arrays whose zarr.json is intact.
  Status ReadArrays() {
    constexpr std::string_view kName = "/zarr.json";
    constexpr std::uint64_t kMaxJsonBytes = std::uint64_t{1} << 20;
    for (const FileEntry& file : files_) {
      const std::string_view name = ArrayOfFile(file.path);
      if (name.empty() || !file.path.ends_with(kName)) continue;
      const auto text = ReadWholeFile(fs_, generation_ / file.path, kMaxJsonBytes);
      if (!text && !ProvesDamage(text.error())) return text.error();
      if (!text) continue;
      auto entry =
          DecodeArrayJson({reinterpret_cast<const char*>(text->data()), text->size()}, name);
      if (entry) arrays_.push_back(*std::move(entry));
    }
    std::sort(arrays_.begin(), arrays_.end(), [](auto& a, auto& b) { return a.name < b.name; });
    return Status::Ok();
  }

  Status ReadSiblings() {
    tails_.push_back(pieces_.Tail(arrays_, {}));
    if (arrays_.empty()) tails_.push_back(pieces_.TailWithoutArrays({}));
    RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(generation_));
    for (const DirectoryEntry& entry : entries) {
      if (!ParseNumbered(entry.name, kManifestPrefix)) continue;
      auto manifest = ReadManifestFile(fs_, generation_ / entry.name, id_);
      if (!manifest && !ProvesDamage(manifest.error())) return manifest.error();
      if (!manifest || manifest->generation != record_.generation) continue;
      infos_.push_back(pieces_.Info(manifest->info));
      tails_.push_back(pieces_.Tail(arrays_, manifest->series, manifest->keep));
      if (arrays_.empty())
        tails_.push_back(pieces_.TailWithoutArrays(manifest->series, manifest->keep));
    }
    return Status::Ok();
  }

  /// Returns the offsets at which the list of files may begin: those that match the lengths of
  /// known pieces before or after it, and the one at which the bytes are most similar to it.
  std::set<std::size_t> StartsOf(const Bytes& list) const {
    std::set<std::size_t> starts;
    if (list.size() + kInfoOffset + kSealBytes > left_.size()) return starts;
    const std::size_t last = left_.size() - kSealBytes - list.size();
    for (const Bytes& info : infos_) starts.insert(kInfoOffset + info.size());
    for (const Bytes& tail : tails_)
      if (tail.size() <= last - kInfoOffset) starts.insert(last - tail.size());
    starts.insert(MostLike(list, last));
    std::erase_if(starts, [&](std::size_t start) { return start > last; });
    return starts;
  }

  /// Returns the offset at which the remaining bytes are most similar to the list.
  std::size_t MostLike(const Bytes& list, std::size_t last) const {
    const std::size_t step = std::max<std::size_t>(list.size() / kComparedBytes, 1);
    std::size_t best = kInfoOffset;
    std::size_t best_same = 0;
    for (std::size_t start = kInfoOffset; start <= std::min(last, kInfoOffset + kMaxInfoBytes);
         ++start) {
      std::size_t same = 0;
      for (std::size_t i = 0; i < list.size(); i += step) same += left_[start + i] == list[i];
      if (same <= best_same) continue;
      best_same = same;
      best = start;
    }
    return best;
  }

  /// Returns the files, with the hashes of those entries in the remaining bytes that have the right
  /// path and length. A damaged file needs this, because its own bytes have a wrong hash.
  std::vector<FileEntry> WithEntriesLeft(std::size_t start) const {
    std::vector<FileEntry> files = files_;
    std::size_t at = start + kCountBytes;
    for (FileEntry& file : files) {
      constexpr std::size_t kHashBytes = 16;
      const Bytes entry = pieces_.Files({file});
      const auto fixed = std::span(entry).subspan(
          kCountBytes, entry.size() - kCountBytes - kHashBytes - sizeof(file.crc32c));
      const std::byte* const hash = left_.data() + at + fixed.size();
      if (std::equal(fixed.begin(), fixed.end(), left_.begin() + static_cast<std::ptrdiff_t>(at))) {
        std::memcpy(file.xxh3.data(), hash, kHashBytes);
        file.crc32c = LoadLittle<std::uint32_t>(hash + kHashBytes);
      }
      at += entry.size() - kCountBytes;
    }
    return files;
  }

  std::optional<Bytes> TryAt(std::size_t start, const Bytes& list) const {
    const std::size_t behind = start + list.size();
    std::vector<Bytes> infos = {Slice(kInfoOffset, start)};
    for (const Bytes& info : infos_)
      if (info.size() == infos.front().size()) infos.push_back(info);
    std::vector<Bytes> tails = {Slice(behind, left_.size() - kSealBytes)};
    // Another candidate has the arrays according to their zarr.json, and the remaining series.
    const Bytes arrays = pieces_.Tail(arrays_, {});
    if (arrays.size() <= tails.front().size()) {
      tails.push_back(tails.front());
      const std::size_t behind_arrays = kCountBytes + KeepBytes(arrays_);
      std::copy(arrays.begin(), arrays.end() - static_cast<std::ptrdiff_t>(behind_arrays),
                tails.back().begin());
    }
    for (const Bytes& tail : tails_)
      if (tail.size() == tails.front().size()) tails.push_back(tail);
    for (const Bytes& info : infos) {
      for (const Bytes& tail : tails) {
        if (auto whole = TryPieces(info, list, tail)) return whole;
      }
    }
    return std::nullopt;
  }

  Bytes Slice(std::size_t first, std::size_t end) const {
    return {left_.begin() + static_cast<std::ptrdiff_t>(first),
            left_.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  std::optional<Bytes> TryPieces(const Bytes& info, const Bytes& list, const Bytes& tail) const {
    for (const Bytes& head : heads_)
      if (auto whole = TryHead(head, info, list, tail)) return whole;
    return std::nullopt;
  }

  std::optional<Bytes> TryHead(const Bytes& head, const Bytes& info, const Bytes& list,
                               const Bytes& tail) const {
    Bytes whole = head;
    for (const Bytes* piece : {&info, &list, &tail})
      whole.insert(whole.end(), piece->begin(), piece->end());
    const std::size_t body = whole.size();
    const auto old_seal = LoadLittle<std::uint32_t>(left_.data() + left_.size() - kSealBytes);
    whole.resize(body + kSealBytes);
    const auto fits = [&] {
      return whole.size() == record_.manifest_bytes && Xxh3(whole) == record_.manifest_xxh3;
    };
    StoreLittle(whole.data() + body, Crc32c(std::span(whole).first(body)));
    if (fits()) return whole;
    StoreLittle(whole.data() + body, old_seal);
    if (CorrectByte(std::span(whole).first(body), old_seal, fits)) return whole;
    return std::nullopt;
  }

  FileSystem& fs_;
  const Path generation_;
  const StoreId& id_;
  const CommitRecord& record_;
  Bytes left_;
  const JobControl& control_;
  const Pieces pieces_;
  std::vector<FileEntry> files_;    // sorted by path
  std::vector<ArrayEntry> arrays_;  // sorted by name
  std::vector<Bytes> heads_;        // without and with the ends of edge types
  std::vector<Bytes> infos_;        // from intact manifests of the generation
  std::vector<Bytes> tails_;  // arrays from their zarr.json; series from those manifests, or none
};

}  // namespace

Result<std::optional<std::vector<std::byte>>> RebuildManifest(
    FileSystem& fs, const Path& generation, const StoreId& id, const CommitRecord& record,
    std::vector<std::byte> left, const JobControl& control) {
  return ManifestRepair(fs, generation, id, record, std::move(left), control).Run();
}

}  // namespace internal
}  // namespace rhizome
