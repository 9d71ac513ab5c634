#include "rhizome/storage/store.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/catalog.h"
#include "rhizome/storage/mutant.h"
#include "rhizome/storage/pause.h"
#include "rhizome/storage/store_context.h"
#include "rhizome/storage/store_files.h"

namespace rhizome {

namespace {

// Section files up to this are read in one piece: a queue would cost more than it gains.
constexpr std::uint64_t kSmallSectionFileBytes = std::uint64_t{64} << 10;

// A writer holds PIN for moments only.
constexpr int kPinAttempts = 500;

using LockMode = FileSystem::LockMode;

Status NothingCommitted(const Path& store) {
  return Status::NotFound(
      fmt::format("'{}' holds no committed generation: its ingestion did not end; run it again",
                  store.string()));
}

/// The catalogue is missing, or was never finished. It comes before any manifest: where there is
/// one, the catalogue was lost. `held`: this process has the writer's lock.
Status NoCatalog(FileSystem& fs, const Path& store, bool held) {
  RHIZOME_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(fs, store));
  if (!has_manifest) return NothingCommitted(store);
  // An ingestion may be making a new store in the place of what a killed one left.
  const auto lock = held ? Result<std::unique_ptr<FileLock>>(nullptr)
                         : fs.Lock(store / kLockName, LockMode::kShared, "");
  if (!lock && lock.error().code() == StatusCode::kBusy) return NothingCommitted(store);
  return Status::Corruption(fmt::format(
      "'{}' is damaged: its catalogue is missing, which says what is current: run repair",
      store.string()));
}

// A writer that is flushing may remove a file of the catalogue between a secondary's two looks.
Result<std::unique_ptr<Catalog>> OpenSecondary(FileSystem& fs, const Path& path, const StoreId& id,
                                               const CatalogOptions& options) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    auto catalog = Catalog::Open(fs, path, Catalog::Mode::kRead, id, options);
    const bool transient = !catalog && (catalog.error().code() == StatusCode::kCorruption ||
                                        catalog.error().code() == StatusCode::kIoError);
    if (!transient || attempt == kAttempts) return catalog;
    PauseForWriter();
  }
}

CatalogOptions CatalogOptionsOf(const StoreContext& context) {
  return {.cache_bytes = context.options().catalog_cache_bytes,
          .write_bytes = context.options().catalog_write_bytes,
          .logger = context.logger()};
}

Status CheckOptions(const StoreOptions& options) {
  constexpr std::uint64_t kLeastWriteBytes = std::uint64_t{1} << 20;
  if (options.catalog_write_bytes >= kLeastWriteBytes) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("catalog_write_bytes is {}, but at least {} are needed",
                  options.catalog_write_bytes, kLeastWriteBytes));
}

}  // namespace

Store::Store(FileSystem& fs, Path path, const StoreOptions& options)
    : context_(std::make_shared<StoreContext>(fs, options)),
      fs_(&context_->fs()),
      path_(std::move(path)) {}
Store::Store(std::shared_ptr<StoreContext> context)
    : context_(std::move(context)), fs_(&context_->fs()) {}
Store::~Store() = default;

Metrics* Store::metrics() const { return context_->metrics(); }
const Logger& Store::logger() const { return *context_->logger(); }

Path Store::GenerationFolder(const Path& store, std::uint64_t generation) {
  return store / kGenerationsName / GenerationName(generation);
}
Path Store::GenerationFolder() const { return GenerationFolder(path_, manifest_->generation); }

Result<std::unique_ptr<Store>> Store::Open(FileSystem& fs, const Path& path, Mode mode,
                                           const StoreOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  auto store = mode == Mode::kWrite ? OpenForWriting(fs, path, /*clear_scratch=*/true, options)
                                    : OpenForReading(fs, path, options);
  if (!store) {
    if (options.metrics != nullptr) options.metrics->CountError(store.error().code());
    return store;
  }
  (*store)->logger().Log(
      LogLevel::kInfo, "store", "opened",
      {{"path", path.string()},
       {"mode", mode == Mode::kWrite ? "write" : "read"},
       {"generation", static_cast<std::int64_t>((*store)->manifest().generation)},
       {"base_sequence", static_cast<std::int64_t>((*store)->base_sequence())}});
  return store;
}

Result<std::unique_ptr<Store>> Store::OpenForWriting(FileSystem& fs, const Path& path,
                                                     bool clear_scratch,
                                                     const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store(fs, path, options));
  RHIZOME_ASSIGN_OR_RETURN(store->id_, ReadFormat(fs, path));
  const bool shared = RHIZOME_MUTANT("writers share the lock");
  RHIZOME_ASSIGN_OR_RETURN(
      store->lock_,
      fs.Lock(path / kLockName, shared ? LockMode::kShared : LockMode::kExclusive, LockContent()));
  auto catalog = Catalog::Open(fs, path / kCatalogName, Catalog::Mode::kWrite, store->id_,
                               CatalogOptionsOf(*store->context_));
  if (!catalog && catalog.error().code() == StatusCode::kNotFound)
    return Fail(NoCatalog(fs, path, /*held=*/true));
  if (!catalog) return Fail(catalog.error());
  store->catalog_ = *std::move(catalog);
  const auto record = store->catalog_->Current();
  if (!record && record.error().code() == StatusCode::kNotFound)
    return Fail(NothingCommitted(path));
  if (!record) return Fail(record.error());
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t last_delta, store->catalog_->LastDelta());
  auto committed = ReadCommittedManifest(fs, path, store->id_, *record);
  if (!committed && committed.error().code() == StatusCode::kNotFound)
    return Fail(Status::Corruption(committed.error().message()));  // nobody else removes it
  if (!committed) return Fail(committed.error());
  Manifest manifest = *std::move(committed);
  RHIZOME_RETURN_IF_ERROR(RemoveOrphans(fs, path, store->id_, manifest, clear_scratch));
  RHIZOME_ASSIGN_OR_RETURN(store->pin_, store->PinOf(manifest.generation));
  {
    const MutexLock lock(store->commits_);
    store->sequence_ = std::max(record->sequence, last_delta);
    store->base_sequence_ = record->base_sequence;
    store->manifest_ = std::make_shared<Manifest>(std::move(manifest));
  }
  RHIZOME_RETURN_IF_ERROR(store->DropOldDelta());
  return store;
}

// A writer may make the next generation current and remove this one at any moment before its PIN
// is held, and holds PIN itself for a moment while it cleans up: both mean to look again.
Result<std::unique_ptr<Store>> Store::OpenForReading(FileSystem& fs, const Path& path,
                                                     const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store(fs, path, options));
  RHIZOME_ASSIGN_OR_RETURN(store->id_, ReadFormat(fs, path));
  auto catalog =
      OpenSecondary(fs, path / kCatalogName, store->id_, CatalogOptionsOf(*store->context_));
  if (!catalog && catalog.error().code() == StatusCode::kNotFound)
    return Fail(NoCatalog(fs, path, /*held=*/false));
  if (!catalog) return Fail(catalog.error());
  store->catalog_ = *std::move(catalog);
  RHIZOME_RETURN_IF_ERROR(store->Refresh());
  return store;
}

/// One attempt to pin the current generation; false if a writer was in the way.
Result<bool> Store::TryPin() {
  RHIZOME_RETURN_IF_ERROR(catalog_->CatchUp());
  const auto first = catalog_->Current();
  if (!first && first.error().code() == StatusCode::kNotFound) return Fail(NothingCommitted(path_));
  if (!first) return Fail(first.error());
  const Path pin_path = GenerationFolder(path_, first->generation) / kPinName;
  auto pin = fs_->Lock(pin_path, LockMode::kShared, "");
  if (!pin && pin.error().code() == StatusCode::kBusy) return false;
  if (!pin && pin.error().code() != StatusCode::kNotFound) return Fail(pin.error());

  RHIZOME_RETURN_IF_ERROR(catalog_->CatchUp());
  RHIZOME_ASSIGN_OR_RETURN(const CommitRecord record, catalog_->Current());
  const bool same_generation = record.generation == first->generation;
  // Nobody removes the current generation, so what is missing there is damage.
  if (!pin && same_generation)
    return Fail(Status::Corruption(fmt::format("'{}' is missing", pin_path.string())));
  if (!pin || !same_generation || !fs_->Stat(pin_path)) return false;
  auto manifest = ReadCommittedManifest(*fs_, path_, id_, record);
  if (!manifest && manifest.error().code() == StatusCode::kNotFound) {
    RHIZOME_RETURN_IF_ERROR(catalog_->CatchUp());
    RHIZOME_ASSIGN_OR_RETURN(const CommitRecord now, catalog_->Current());
    if (now.sequence != record.sequence) return false;
    return Fail(Status::Corruption(manifest.error().message()));
  }
  if (!manifest) return Fail(manifest.error());
  const MutexLock lock(commits_);
  manifest_ = std::make_shared<Manifest>(*std::move(manifest));
  sequence_ = record.sequence;
  base_sequence_ = record.base_sequence;
  if (RHIZOME_MUTANT("reader holds no pin")) return true;
  pin_ = std::make_shared<CountedPin>(*std::move(pin), context_, manifest_->generation);
  if (RHIZOME_MUTANT("pin leaks")) static_cast<void>(new std::shared_ptr<FileLock>(pin_));
  return true;
}

Result<std::shared_ptr<FileLock>> Store::PinOf(std::uint64_t generation) const {
  const Path path = GenerationFolder(path_, generation) / kPinName;
  auto pin = fs_->Lock(path, LockMode::kShared, "");
  if (!pin && pin.error().code() == StatusCode::kNotFound)
    return Fail(Status::Corruption(fmt::format("'{}' is missing", path.string())));
  if (!pin) return Fail(pin.error());
  return std::make_shared<CountedPin>(*std::move(pin), context_, generation);
}

// Commits that are in the current generation: a reader of an older one still needs them. One that
// is only kept has no reader who knows of the delta.
Status Store::DropOldDelta() {
  std::uint64_t current = 0;
  std::uint64_t base = 0;
  {
    const MutexLock lock(commits_);
    current = manifest_->generation;
    base = base_sequence_;
  }
  RHIZOME_ASSIGN_OR_RETURN(const bool pinned, EarlierIsPinned(*fs_, path_, current));
  return pinned ? Status::Ok() : catalog_->DropDelta(base);
}

std::shared_ptr<const Store> Store::Snapshot() const { return Copy(); }

std::shared_ptr<Store> Store::Copy() const {
  std::shared_ptr<Store> snapshot(new Store(context_));
  const MutexLock lock(commits_);
  const MutexLock own(snapshot->commits_);
  snapshot->path_ = path_;
  snapshot->id_ = id_;
  snapshot->snapshot_ = true;
  snapshot->lock_ = lock_;
  snapshot->pin_ = pin_;
  snapshot->catalog_ = catalog_;
  snapshot->manifest_ = manifest_;
  snapshot->base_sequence_ = base_sequence_;
  snapshot->sequence_ = sequence_;
  return snapshot;
}

Status Store::Refresh() {
  if (lock_ != nullptr || snapshot_) return Status::Ok();
  for (int attempt = 0; attempt < kPinAttempts; ++attempt) {
    RHIZOME_ASSIGN_OR_RETURN(const bool pinned, TryPin());
    if (pinned) return Status::Ok();
    PauseForWriter();
  }
  return Status::Busy(
      fmt::format("'{}' is being cleaned up by a writer: try again", path_.string()));
}

Result<std::unique_ptr<Store>> Store::Create(FileSystem& fs, const Path& path, const StoreId& id) {
  const auto info = fs.Stat(path);
  if (!info && info.error().code() != StatusCode::kNotFound) return Fail(info.error());
  if (info && info->kind != DirectoryEntry::Kind::kDirectory)
    return Fail(Status::AlreadyExists(fmt::format("'{}' is not a folder", path.string())));
  // Where it is there already, this still makes its name durable.
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, path));
  RHIZOME_RETURN_IF_ERROR(CheckLeftover(fs, path));
  std::unique_ptr<Store> store(new Store(fs, path, {}));
  store->id_ = id;
  RHIZOME_ASSIGN_OR_RETURN(store->lock_,
                           fs.Lock(path / kLockName, LockMode::kExclusive, LockContent()));
  // Once more under the lock: another ingestion may have ended in between.
  RHIZOME_RETURN_IF_ERROR(CheckLeftover(fs, path));
  RHIZOME_RETURN_IF_ERROR(ClearLeftover(fs, path));
  const std::string format = FormatText(id);
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs, path / kFormatName, std::as_bytes(std::span(format))));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(path));
  RHIZOME_ASSIGN_OR_RETURN(store->catalog_,
                           Catalog::Open(fs, path / kCatalogName, Catalog::Mode::kCreate, id));
  RHIZOME_RETURN_IF_ERROR(fs.CreateDirectory(path / kGenerationsName));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(path));
  return store;
}

Status Store::CheckWritable() const {
  if (!writable())
    return Status::InvalidArgument(fmt::format("'{}' is open for reading", path_.string()));
  return broken_;
}

Status Store::CommitManifest(const Manifest& manifest, std::uint64_t base_sequence) {
  if (RHIZOME_MUTANT("commit before its manifest")) {
    RHIZOME_RETURN_IF_ERROR(CommitPrepared(manifest, base_sequence));
    return PrepareManifest(manifest);
  }
  RHIZOME_RETURN_IF_ERROR(PrepareManifest(manifest));
  return CommitPrepared(manifest, base_sequence);
}

// Everything of a commit that takes long, so that nobody waits for it.
Status Store::PrepareManifest(const Manifest& manifest) {
  const std::vector<std::byte> bytes = EncodeManifest(manifest, id_);
  if (bytes.size() > kMaxManifestBytes)
    return Status::InvalidArgument(fmt::format("a manifest of {} bytes is too long", bytes.size()));
  // What a reader would refuse must not be committed.
  if (const auto check = DecodeManifest(bytes, id_); !check)
    return Status::InvalidArgument("what is to be committed is not valid: " +
                                   check.error().message());
  {
    const MutexLock lock(commits_);
    RHIZOME_RETURN_IF_ERROR(CheckWritable());
  }
  const Status status = WriteManifest(manifest, bytes);
  if (status.ok()) return status;
  const MutexLock lock(commits_);
  return Break(status, "an earlier commit failed, open the store again");
}

Status Store::Break(const Status& status, std::string_view what) {
  if (!RHIZOME_MUTANT("failed write is forgotten")) broken_ = status.WithContext(what);
  logger().Log(LogLevel::kError, "store", "a write failed: read-only until it is opened again",
               {{"path", path_.string()}, {"error", status.ToString()}});
  return status;
}

Status Store::CommitPrepared(const Manifest& manifest, std::uint64_t base_sequence) {
  const std::vector<std::byte> bytes = EncodeManifest(manifest, id_);
  const MutexLock lock(commits_);
  RHIZOME_RETURN_IF_ERROR(CheckWritable());
  // Pinned before: behind the commit nothing may fail, or what is done would count as not done.
  std::shared_ptr<FileLock> pin = pin_;
  if (manifest.generation != manifest_->generation) {
    RHIZOME_ASSIGN_OR_RETURN(pin, PinOf(manifest.generation));
  }
  const Status status = catalog_->Commit({.generation = manifest.generation,
                                          .manifest_version = manifest.version,
                                          .manifest_bytes = bytes.size(),
                                          .manifest_xxh3 = Xxh3(bytes),
                                          .sequence = sequence_ + 1,
                                          .base_sequence = base_sequence});
  // The disk may or may not hold the commit now: only a new look at it can tell.
  if (!status.ok()) return Break(status, "an earlier commit failed, open the store again");
  ++sequence_;
  pin_ = std::move(pin);
  manifest_ = std::make_shared<Manifest>(manifest);
  base_sequence_ = base_sequence;
  return Status::Ok();
}

Status Store::WriteManifest(const Manifest& manifest, std::span<const std::byte> bytes) {
  const Path folder = GenerationFolder(path_, manifest.generation);
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(*fs_, folder / ManifestName(manifest.version), bytes));
  RHIZOME_RETURN_IF_ERROR(fs_->SyncDirectory(folder));
  return fs_->SyncDirectory(path_ / kGenerationsName);
}

// Removing gigabytes takes a while, in which commits go on.
Status Store::CollectGarbage() {
  std::shared_ptr<const Manifest> current;
  {
    const MutexLock lock(commits_);
    RHIZOME_RETURN_IF_ERROR(CheckWritable());
    current = manifest_;
  }
  RHIZOME_RETURN_IF_ERROR(RemoveOrphans(*fs_, path_, id_, *current, /*with_scratch=*/false));
  return DropOldDelta();
}

Status Store::Keep(const KeepRule& rule) {
  Manifest next;
  {
    const MutexLock lock(commits_);
    RHIZOME_RETURN_IF_ERROR(CheckWritable());
    if (manifest_->keep == rule) return Status::Ok();
    next = *manifest_;
  }
  next.keep = rule;
  ++next.version;
  return CommitManifest(next);
}

Status Store::RemoveKept() {
  Manifest current;
  {
    const MutexLock lock(commits_);
    RHIZOME_RETURN_IF_ERROR(CheckWritable());
    current = *manifest_;
  }
  current.keep.generations = 0;
  return RemoveOrphans(*fs_, path_, id_, current, /*with_scratch=*/false);
}

Status Store::ClaimDelta() {
  const MutexLock lock(commits_);
  RHIZOME_RETURN_IF_ERROR(CheckWritable());
  if (delta_claimed_)
    return Status::Busy(fmt::format(
        "'{}': another Graph of this process writes to it: share that one", path_.string()));
  delta_claimed_ = true;
  return Status::Ok();
}

void Store::ReleaseDelta() {
  const MutexLock lock(commits_);
  delta_claimed_ = false;
}

Status Store::CommitDelta(
    bool sync, const std::function<std::vector<DeltaCommit>(std::uint64_t first)>& make) {
  const MutexLock lock(commits_);
  RHIZOME_RETURN_IF_ERROR(CheckWritable());
  const std::vector<DeltaCommit> commits = make(sequence_ + 1);
  if (commits.empty()) return Status::Ok();
  if (const Status status = catalog_->AppendDelta(commits, sync); !status.ok())
    return Break(status, "an earlier write failed, open the store again");
  if (!RHIZOME_MUTANT("sequence stands still")) sequence_ += commits.size();
  return Status::Ok();
}

Status Store::ScanDelta(
    std::uint64_t after,
    const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit) const {
  return catalog_->ScanDelta(after, visit);
}

Status Store::ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                           std::span<std::byte> out) const {
  return catalog_->ReadDeltaRow(sequence, array_id, vertex, out);
}

Result<SectionFile> Store::LoadSectionFile(std::string_view relative_path, FileKind kind,
                                           std::span<const std::uint32_t> leave) const {
  const FileEntry* file = manifest_->FindFile(relative_path);
  const Path path = GenerationFolder() / relative_path;
  if (file == nullptr)
    return Fail(Status::NotFound(fmt::format("'{}' is not part of the store", path.string())));
  const auto source = fs_->OpenRead(path);
  if (!source && source.error().code() == StatusCode::kNotFound)
    return Fail(Status::Corruption(fmt::format("'{}' is missing", path.string())));
  if (!source) return Fail(source.error());
  const std::uint64_t size_bytes = (*source)->size_bytes();
  if (size_bytes != file->size_bytes) {
    return Fail(Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}",
                                               path.string(), size_bytes, file->size_bytes)));
  }
  const SectionFile::LoadOptions options{.leave = leave, .crc32c = file->crc32c};
  if (size_bytes > kSmallSectionFileBytes) return SectionFile::Load(*fs_, path, kind, id_, options);

  // Read at once. The CRC-32C of a file of one block, followed by that block's CRC-32C, is always
  // the same: only the hash tells a sound file of another generation or partition.
  std::vector<std::byte> bytes(size_bytes);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(**source, 0, bytes));
  const Hash128 hash = Xxh3(bytes);
  auto sections = SectionFile::Parse(std::move(bytes), path, kind, id_);
  // Asked last, because what the parser says about damage is more precise.
  if (sections && hash != file->xxh3 && !RHIZOME_MUTANT("blocks are not checked")) {
    return Fail(Status::Corruption(fmt::format(
        "'{}': is not the file that the manifest names: its XXH3-128 differs", path.string())));
  }
  if (!sections || leave.empty()) return sections;
  return SectionFile::Load(*fs_, path, kind, id_, options);
}

Result<std::unique_ptr<ChunkArray>> Store::OpenArray(std::string_view name) const {
  const ArrayEntry* entry = manifest_->FindArray(name);
  if (entry != nullptr) {
    auto array = ChunkArray::Open(*fs_, GenerationFolder(), *entry, manifest_->files);
    // The manifest names its files: a missing one is damage.
    if (!array && array.error().code() == StatusCode::kNotFound)
      return Fail(Status::Corruption(array.error().message()));
    return array;
  }
  std::string names;
  for (const ArrayEntry& array : manifest_->arrays) {
    if (array.name.ends_with(kSidecarSuffix)) continue;
    names += (names.empty() ? "" : ", ") + array.name;
  }
  return Fail(Status::NotFound(fmt::format("no array '{}' in '{}'; there are: {}", name,
                                           path_.string(), names.empty() ? "none" : names)));
}

}  // namespace rhizome
