#include "storage/store/store_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "rhizome/chunk_array.h"
#include "rhizome/job_control.h"
#include "rhizome/store.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/manifest_format.h"
#include "storage/array/text_files.h"
#include "storage/base/bytes.h"
#include "storage/base/mutant.h"
#include "storage/base/pause.h"
#include "storage/base/stopwatch.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {

// The files at the top level of a store and the manifests: FORMAT and LOCK, names of generations
// and manifests, reading a manifest with or without comparing it with its commit record, and hashes
// over a manifest's files.

namespace {

constexpr std::uint64_t kMaxFormatBytes = 4096;
constexpr std::string_view kFormatHead = "rhizome store\nformat ";
constexpr std::string_view kIdHead = "\nid ";

std::optional<std::uint64_t> ParseNumber(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// Returns the number after "format", and removes the text up to its end from `text`.
Result<std::uint64_t> ParseFormatVersion(std::string_view& text) {
  if (!text.starts_with(kFormatHead))
    return Fail(Status::Corruption("line 1 is not 'rhizome store', or 'format' does not follow"));
  text.remove_prefix(kFormatHead.size());
  const auto version = ParseNumber(text.substr(0, text.find('\n')));
  if (!version || *version == 0)
    return Fail(Status::Corruption("line 2 is not the number of a format"));
  text.remove_prefix(text.find('\n') == text.npos ? text.size() : text.find('\n'));
  return *version;
}

using LockMode = FileSystem::LockMode;

/// Waits until the writer's lock is free, or the time is over. It takes the lock for a moment,
/// without content: to ask the kernel for the holder at each attempt would be slow.
Status WaitForWriter(FileSystem& fs, const Path& path, const LockWait& wait) {
  if (!(wait.seconds > 0)) return Status::Ok();
  for (const Stopwatch watch; watch.seconds() < wait.seconds; PauseForWriter()) {
    if (wait.control != nullptr) {
      RHIZOME_RETURN_IF_ERROR(
          wait.control->Report({.phase = "waiting for the lock of the store",
                                .done = static_cast<std::uint64_t>(watch.seconds()),
                                .total = static_cast<std::uint64_t>(wait.seconds) + 1}));
    }
    const auto lock = fs.Lock(path / kLockName, LockMode::kExclusive, "");
    if (lock || lock.error().code() != StatusCode::kBusy) break;  // LockForWriting has the error
  }
  return Status::Ok();
}

/// Adds to an error that names the holder of the lock how long the caller waited, or can wait.
Status WithAdvice(const Status& busy, const LockWait& wait) {
  return Status::Busy(wait.seconds > 0
                          ? fmt::format("{} (after {} s)", busy.message(), wait.seconds)
                          : fmt::format("{} (`wait_seconds` waits for it)", busy.message()));
}

Result<StoreId> ParseFormat(std::string_view text) {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t version, ParseFormatVersion(text));
  if (version > kStoreFormatVersion) {
    return Fail(Status::Unsupported(
        fmt::format("format {} is newer than this build's {}; use a newer version of Rhizome",
                    version, kStoreFormatVersion)));
  }
  if (!text.starts_with(kIdHead) || !text.ends_with("\n"))
    return Fail(Status::Corruption("line 3 is not 'id' and a store id"));
  text.remove_prefix(kIdHead.size());
  text.remove_suffix(1);
  auto id = StoreId::Parse(text);
  if (!id) return Fail(Status::Corruption("line 3: " + id.error().message()));
  return id;
}

// FORMAT is durable before anything else is created, so a power cut can have torn it only if the
// store contains nothing else.
bool HoldsNothingElse(FileSystem& fs, const Path& store) {
  for (const std::string_view name : {kCatalogName, kGenerationsName}) {
    const auto info = fs.Stat(store / name);
    if (info || info.error().code() != StatusCode::kNotFound) return false;
  }
  return true;
}

}  // namespace

std::string LockContent() { return fmt::format("rhizome {}\n", getpid()); }

Result<std::unique_ptr<FileLock>> LockForWriting(FileSystem& fs, const Path& path,
                                                 const LockWait& wait) {
  RHIZOME_RETURN_IF_ERROR(WaitForWriter(fs, path, wait));
  constexpr int kAttempts = 10;
  const bool shared = RHIZOME_MUTANT("writers share the lock");
  const bool once = RHIZOME_MUTANT("a test of the lock is a writer");
  for (int attempt = 1;; ++attempt) {
    auto lock =
        fs.Lock(path / kLockName, shared ? LockMode::kShared : LockMode::kExclusive, LockContent());
    const bool busy = !lock && lock.error().code() == StatusCode::kBusy;
    if (busy && (once || attempt == kAttempts)) return Fail(WithAdvice(lock.error(), wait));
    if (!busy) return lock;
    PauseForWriter();
  }
}

std::string FormatText(const StoreId& id) {
  return fmt::format("{}{}{}{}\n", kFormatHead, kStoreFormatVersion, kIdHead, id.ToString());
}

Result<StoreId> ReadFormat(FileSystem& fs, const Path& store) {
  const Path path = store / kFormatName;
  const auto bytes = ReadWholeFile(fs, path, kMaxFormatBytes);
  if (!bytes && bytes.error().code() == StatusCode::kNotFound) {
    RHIZOME_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(fs, store));
    if (has_manifest)
      return Fail(Status::Corruption(
          fmt::format("'{}' is damaged: its file FORMAT is missing; run repair", store.string())));
    return Fail(Status::NotFound(fmt::format(
        "there is no Rhizome store at '{}': it has no file FORMAT (ingest creates a store)",
        store.string())));
  }
  if (!bytes) return Fail(bytes.error());
  auto id = ParseFormat({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (id) return id;
  if (id.error().code() == StatusCode::kCorruption && HoldsNothingElse(fs, store)) {
    return Fail(
        Status::NotFound(fmt::format("there is no Rhizome store at '{}': the job that creates it "
                                     "ended while it wrote FORMAT; run it again",
                                     store.string())));
  }
  return Fail(id.error().WithContext(path.string()));
}

Result<std::uint64_t> ReadFormatVersion(FileSystem& fs, const Path& store) {
  const auto id = ReadFormat(fs, store);
  if (!id && id.error().code() != StatusCode::kUnsupported) return Fail(id.error());
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                           ReadWholeFile(fs, store / kFormatName, kMaxFormatBytes));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return ParseFormatVersion(text);
}

Status CheckScratch(FileSystem& fs, const Path& store) {
  const auto info = fs.Stat(store / kScratchName);
  if (!info) return info.error().code() == StatusCode::kNotFound ? Status::Ok() : info.error();
  if (info->kind == DirectoryEntry::Kind::kDirectory) return Status::Ok();
  return Status::Corruption(
      fmt::format("'{}' is a link or a file instead of a folder, and links are not followed inside "
                  "a store; remove it, and name a place for scratch files elsewhere by `scratch`",
                  (store / kScratchName).string()));
}

std::string ManifestName(std::uint64_t version) {
  return fmt::format("{}{:06}", kManifestPrefix, version);
}
std::string GenerationName(std::uint64_t generation) { return fmt::format("{:06}", generation); }

std::optional<std::uint64_t> ParseNumbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = ParseNumber(name.substr(prefix.size()));
  if (!number || *number == 0 || fmt::format("{}{:06}", prefix, *number) != name)
    return std::nullopt;
  return number;
}

Path CommittedManifestPath(const Path& store, const CommitRecord& record) {
  return Store::GenerationFolder(store, record.generation) / ManifestName(record.manifest_version);
}

Result<Manifest> ReadCommittedManifest(FileSystem& fs, const Path& store, const StoreId& id,
                                       const CommitRecord& record) {
  const Path path = CommittedManifestPath(store, record);
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, path, kMaxManifestBytes));
  if (bytes.size() != record.manifest_bytes) {
    return Fail(
        Status::Corruption(fmt::format("'{}': {} bytes long, but the commit says {}", path.string(),
                                       bytes.size(), record.manifest_bytes)));
  }
  if (Xxh3(bytes) != record.manifest_xxh3 && !RHIZOME_MUTANT("manifest is not checked"))
    return Fail(Status::Corruption(
        fmt::format("'{}': its XXH3-128 differs from the commit's", path.string())));
  auto manifest = DecodeManifest(bytes, id);
  if (!manifest) return Fail(manifest.error().WithContext(path.string()));
  if (manifest->generation != record.generation || manifest->version != record.manifest_version)
    return Fail(Status::Corruption(
        fmt::format("'{}': belongs to another generation or version", path.string())));
  return manifest;
}

Hash128 HashOfGraph(const Manifest& manifest) {
  ByteWriter facts;
  for (const FileEntry& file : manifest.files) {
    if (!ArrayOfFile(file.path).empty() || file.path == kGroupPath) continue;
    facts.String(file.path);
    facts.Bytes(file.xxh3);
  }
  return Xxh3(facts.bytes());
}

Hash128 HashOfArray(const Manifest& manifest, const ArrayEntry& array) {
  ByteWriter facts;
  for (const std::string& folder :
       {ArrayFolder(array.name, array.form) + "/", TextsFolder(array.name) + "/"}) {
    for (const FileEntry& file : manifest.files) {
      if (!file.path.starts_with(folder)) continue;
      const std::string_view name = std::string_view(file.path).substr(folder.size());
      if (name == "zarr.json") continue;  // an array's contains its name
      facts.String(name);
      facts.Bytes(file.xxh3);
    }
  }
  return Xxh3(facts.bytes());
}

Result<Manifest> ReadManifestFile(FileSystem& fs, const Path& path, const StoreId& id) {
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, path, kMaxManifestBytes));
  auto manifest = DecodeManifest(bytes, id);
  if (!manifest) return Fail(manifest.error().WithContext(path.string()));
  return manifest;
}

}  // namespace internal
}  // namespace rhizome
