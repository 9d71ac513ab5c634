#include "storage/store/store_impl.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/array/array_rules.h"
#include "storage/array/manifest_format.h"
#include "storage/base/bytes.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/base/pause.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "storage/io/stored_file.h"
#include "storage/store/diverged_states.h"
#include "storage/store/reserve.h"
#include "storage/store/store_files.h"

namespace rhizome {

namespace {

// Opening tries to lock and show one consistent state: OpenForWriting holds LOCK, so nothing can
// change concurrently; OpenForReading repeats TryPin, or TryPinAt, until no writer interferes. A
// change of the arrays or a new generation is committed by PrepareManifest, which writes the
// manifest, and CommitPrepared, which writes the commit record and shows the new state. CommitDelta
// appends to the delta only.

// A writer holds PIN only for moments. With pauses of 10 ms (PauseForWriter) this is 5 s.
constexpr int kPinAttempts = 500;

using LockMode = FileSystem::LockMode;

Status NothingCommitted(const Path& store) {
  return Status::NotFound(
      fmt::format("'{}' holds no committed generation: the job that creates it (an ingestion, or a "
                  "restore) did not finish; run it again",
                  store.string()));
}

/// Returns the error for a catalogue that is missing or was never completed. It is created before
/// any manifest, so a manifest proves that the catalogue was lost. `held` means that this process
/// has the writer's lock.
Status NoCatalog(FileSystem& fs, const Path& store, bool held) {
  RHIZOME_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(fs, store));
  if (!has_manifest) return NothingCommitted(store);
  // An ingestion may be creating a new store in place of a killed one's leftover.
  const auto lock = held ? Result<std::unique_ptr<FileLock>>(nullptr)
                         : fs.Lock(store / kLockName, LockMode::kShared, "");
  if (!lock && lock.error().code() == StatusCode::kBusy) return NothingCommitted(store);
  return Status::Corruption(
      fmt::format("'{}' is damaged: its catalogue, which records the current generation, is "
                  "missing; run repair",
                  store.string()));
}

/// Returns the names and lengths of the files of a folder; empty if it cannot be listed.
std::vector<std::pair<std::string, std::uint64_t>> FilesIn(FileSystem& fs, const Path& folder) {
  std::vector<std::pair<std::string, std::uint64_t>> files;
  const auto entries = fs.List(folder);
  if (!entries) return files;
  for (const DirectoryEntry& entry : *entries) {
    const auto info = fs.Stat(folder / entry.name);
    files.emplace_back(entry.name, info ? info->size_bytes : 0);
  }
  return files;
}

// Opens the catalogue for reading. A writer that flushes may remove a file of the catalogue while
// the secondary opens it, so after an error this retries if the files have changed. If they have
// not, a retry would only read a damaged catalogue completely once more.
Result<std::unique_ptr<Catalog>> OpenSecondary(FileSystem& fs, const Path& path, const StoreId& id,
                                               const CatalogOptions& options) {
  constexpr int kAttempts = 5;  // with pauses of 10 ms between them (PauseForWriter)
  for (int attempt = 1;; ++attempt) {
    const auto before = FilesIn(fs, path);
    auto catalog = Catalog::Open(fs, path, Catalog::Mode::kRead, id, options);
    const bool transient = !catalog && (catalog.error().code() == StatusCode::kCorruption ||
                                        catalog.error().code() == StatusCode::kIoError);
    if (!transient || attempt == kAttempts || FilesIn(fs, path) == before) return catalog;
    PauseForWriter();
  }
}

CatalogOptions CatalogOptionsOf(const StoreContext& context) {
  return {.cache_bytes = context.options().catalog_cache_bytes,
          .write_bytes = context.options().catalog_write_bytes,
          .logger = context.logger()};
}

/// Checks that the store found at `path` is the one that the options require.
Status CheckIs(const StoreId& found, const Path& path, const StoreOptions& options) {
  if (!options.id || found == *options.id) return Status::Ok();
  return Status::IoError(fmt::format(
      "'{}' was moved or replaced: it is store {} now, not store {}; nothing was changed",
      path.string(), found.ToString(), options.id->ToString()));
}

}  // namespace

Store::Impl::Impl(FileSystem& fs, Path path, const StoreOptions& options)
    : context_(std::make_shared<StoreContext>(fs, path, options)),
      fs_(&context_->fs()),
      path_(std::move(path)) {}
Store::Impl::Impl(std::shared_ptr<StoreContext> context)
    : context_(std::move(context)), fs_(&context_->fs()) {}

Path Store::Impl::scratch() const {
  const Path elsewhere = context_->ScratchOf(id_);
  return elsewhere.empty() ? path_ / kScratchName : elsewhere;
}

// A snapshot never shows another manifest, so it needs no lock: jobs and writes call this for each
// vertex.
const Manifest& Store::Impl::manifest() const RHIZOME_THREAD_ATTRIBUTE(no_thread_safety_analysis) {
  if (snapshot_) return *manifest_;
  const MutexLock lock(shown_);
  handed_out_ = true;
  return *manifest_;
}

template <typename Try>
Status Store::Impl::PinBy(Try&& try_once) {
  for (int attempt = 0; attempt < kPinAttempts; ++attempt) {
    RHIZOME_ASSIGN_OR_RETURN(const bool pinned, try_once());
    if (pinned) return Status::Ok();
    PauseForWriter();
  }
  return Status::Busy(
      fmt::format("a writer is removing old files of '{}'; try again", path_.string()));
}

/// Opens for writing in these steps:
///   1. Reads FORMAT, checks that the store is the expected one, then takes LOCK.
///   2. Opens the catalogue, which replays its write-ahead log, and reads the commit record and the
///      number of the last commit of the delta.
///   3. Reads the manifest that the record names, and checks it against the record.
///   4. Removes orphans: files that no manifest names, and scratch folders of jobs that are not
///      running.
///   5. Pins the generation and shows it.
///   6. Drops commits of the delta that no generation in use needs, and sets the reserve aside.
Result<std::unique_ptr<Store::Impl>> Store::Impl::OpenForWriting(FileSystem& fs, const Path& path,
                                                                 bool clear_scratch,
                                                                 const StoreOptions& options) {
  auto store = std::make_unique<Impl>(fs, path, options);
  const Status held = store->context_->HoldFolder();
  RHIZOME_ASSIGN_OR_RETURN(store->id_, ReadFormat(fs, path));  // best message if store is absent
  RHIZOME_RETURN_IF_ERROR(held);
  RHIZOME_RETURN_IF_ERROR(CheckIs(store->id_, path, options));
  RHIZOME_RETURN_IF_ERROR(CheckScratch(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(store->lock_, LockForWriting(fs, path, options.wait));
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
  // This process has LOCK, so no other process removes the manifest: if it is missing, that is
  // damage.
  RHIZOME_ASSIGN_OR_RETURN(Manifest manifest,
                           MissingIsDamage(ReadCommittedManifest(fs, path, store->id_, *record),
                                           CommittedManifestPath(path, *record)));
  RHIZOME_RETURN_IF_ERROR(RemoveOrphans(fs, path, store->id_, manifest, clear_scratch));
  if (clear_scratch && !options.scratch.empty())
    RHIZOME_RETURN_IF_ERROR(RemoveIdleJobs(fs, store->scratch()));
  RHIZOME_ASSIGN_OR_RETURN(Pins pins, store->PinsOf(manifest));
  Numbers numbers = store->NumbersOf(*record, manifest);
  numbers.sequence = std::max(record->sequence, last_delta);
  store->Show(std::make_shared<const Manifest>(std::move(manifest)), std::move(pins), numbers);
  RHIZOME_RETURN_IF_ERROR(store->DropOldDelta(record->generation, record->base_sequence));
  SetReserveAside(fs, path);
  return store;
}

// Reads FORMAT, opens the catalogue as a secondary, and pins the current generation (Refresh).
// Before its PIN is held, a writer may make the next generation current and remove this one; a
// writer also holds PIN itself for a moment while it cleans up. In both cases Refresh retries.
Result<std::unique_ptr<Store::Impl>> Store::Impl::OpenForReading(FileSystem& fs, const Path& path,
                                                                 const StoreOptions& options) {
  auto store = std::make_unique<Impl>(fs, path, options);
  const Status held = store->context_->HoldFolder();
  RHIZOME_ASSIGN_OR_RETURN(store->id_, ReadFormat(fs, path));  // best message if store is absent
  RHIZOME_RETURN_IF_ERROR(held);
  RHIZOME_RETURN_IF_ERROR(CheckIs(store->id_, path, options));
  RHIZOME_RETURN_IF_ERROR(CheckScratch(fs, path));
  auto catalog =
      OpenSecondary(fs, path / kCatalogName, store->id_, CatalogOptionsOf(*store->context_));
  if (!catalog && catalog.error().code() == StatusCode::kNotFound)
    return Fail(NoCatalog(fs, path, /*held=*/false));
  if (!catalog) return Fail(catalog.error());
  store->catalog_ = *std::move(catalog);
  if (!options.at) {
    RHIZOME_RETURN_IF_ERROR(store->Refresh());
    return store;
  }
  const StorePoint& at = *options.at;
  if (at.store != store->id_)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is store {}, but the point to open it at belongs to store {}",
                    path.string(), store->id_.ToString(), at.store.ToString())));
  RHIZOME_RETURN_IF_ERROR(store->PinBy([&] { return store->TryPinAt(at); }));
  store->snapshot_ = true;
  store->opened_at_ = at;
  return store;
}

/// Tries once to pin the current state and show it; returns false if a writer interfered:
///   1. reads the commit record, and locks the PIN of its generation;
///   2. reads the record again: the lock protects the generation only if it is still current;
///   3. locks the manifest, which exists only as long as all of its files, and reads it;
///   4. shows it.
Result<bool> Store::Impl::TryPin() {
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
  // No process removes the current generation, so a missing PIN is damage.
  if (!pin && same_generation) return Fail(MissingIsDamage(std::move(pin), pin_path).error());
  if (!pin || !same_generation || !fs_->Stat(pin_path)) return false;
  const Path manifest_path = CommittedManifestPath(path_, record);
  auto named = fs_->Lock(manifest_path, LockMode::kShared, "");
  if (!named && named.error().code() == StatusCode::kBusy) return false;
  auto manifest = named ? ReadCommittedManifest(*fs_, path_, id_, record)
                        : Result<Manifest>(Fail(named.error()));
  if (!manifest && manifest.error().code() == StatusCode::kNotFound) {
    RHIZOME_RETURN_IF_ERROR(catalog_->CatchUp());
    RHIZOME_ASSIGN_OR_RETURN(const CommitRecord now, catalog_->Current());
    if (now.sequence != record.sequence) return false;
    return Fail(MissingIsDamage(std::move(manifest), manifest_path).error());
  }
  if (!manifest) return Fail(manifest.error());
  auto next = std::make_shared<const Manifest>(*std::move(manifest));
  Pins held;
  if (!RHIZOME_MUTANT("reader holds no pin")) {
    held.generation = std::make_shared<CountedPin>(*std::move(pin), context_, next->generation);
    held.manifest = *std::move(named);
  }
  if (RHIZOME_MUTANT("pin leaks")) static_cast<void>(new std::shared_ptr(held.generation));
  const auto before = Shown();
  // If nothing changed, keep the same object, to which callers may have references.
  if (before->generation == next->generation && before->version == next->version) next = before;
  ReserveView();
  const Numbers numbers = NumbersOf(record, *next);
  Show(std::move(next), std::move(held), numbers);
  return true;
}

Status Store::Impl::NotThere(const StorePoint& at) const {
  return Status::NotFound(
      fmt::format("'{}': commit {} of generation {} no longer exists, because the store was "
                  "compacted and no graph kept the commit open; keep a graph open at a commit that "
                  "is needed later, or open the last commit",
                  path_.string(), at.sequence, at.generation));
}

/// Tries once to pin the state of a point and show it; returns false if a writer interfered. The
/// holder of the point should keep its files and commits until they are locked here, too, but this
/// does not rely on it:
///   1. locks PIN, and checks that it still has its name;
///   2. locks and reads the manifest of the point;
///   3. checks for the first and the last commit of its delta (commits are dropped from the front);
///   4. compares the hashes with those in the point.
Result<bool> Store::Impl::TryPinAt(const StorePoint& at) {
  const Path pin_path = GenerationFolder(path_, at.generation) / kPinName;
  auto pin = fs_->Lock(pin_path, LockMode::kShared, "");
  if (!pin && pin.error().code() == StatusCode::kBusy) return false;
  if (!pin && pin.error().code() == StatusCode::kNotFound) return Fail(NotThere(at));
  if (!pin) return Fail(pin.error());
  if (!fs_->Stat(pin_path)) return Fail(NotThere(at));
  RHIZOME_RETURN_IF_ERROR(catalog_->CatchUp());
  const auto now = catalog_->Current();
  if (!now && now.error().code() == StatusCode::kNotFound) return Fail(NothingCommitted(path_));
  if (!now) return Fail(now.error());
  auto named = fs_->Lock(GenerationFolder(path_, at.generation) / ManifestName(at.manifest_version),
                         LockMode::kShared, "");
  if (!named && named.error().code() == StatusCode::kBusy) return false;
  if (!named && named.error().code() == StatusCode::kNotFound) return Fail(NotThere(at));
  if (!named) return Fail(named.error());
  RHIZOME_ASSIGN_OR_RETURN(Manifest manifest, ManifestAt(at, *now));
  RHIZOME_RETURN_IF_ERROR(CheckCommits(at));
  Numbers numbers{.sequence = at.sequence, .base_sequence = at.base_sequence};
  numbers.manifest_xxh3 = Xxh3(EncodeManifest(manifest, id_));
  // The record contains only the state of the current generation.
  if (now->generation == at.generation)
    numbers.base_state = NumbersOf(*now, manifest).base_state;
  else if (at.first_commit == 0)
    numbers.base_state.commits = at.state.commits;
  RHIZOME_RETURN_IF_ERROR(CheckState(at, *now, numbers));
  Show(std::make_shared<const Manifest>(std::move(manifest)),
       {.generation = std::make_shared<CountedPin>(*std::move(pin), context_, at.generation),
        .manifest = *std::move(named)},
       numbers);
  return true;
}

Result<Manifest> Store::Impl::ManifestAt(const StorePoint& at, const CommitRecord& now) const {
  CommitRecord record = now;
  const bool current =
      record.generation == at.generation && record.manifest_version == at.manifest_version;
  record.generation = at.generation;
  record.manifest_version = at.manifest_version;
  const Path path = CommittedManifestPath(path_, record);
  // The record of an earlier version was overwritten. But a manifest has its own checksums, too.
  auto manifest =
      current ? ReadCommittedManifest(*fs_, path_, id_, record) : ReadManifestFile(*fs_, path, id_);
  if (!manifest && manifest.error().code() == StatusCode::kNotFound) return Fail(NotThere(at));
  if (manifest &&
      (manifest->generation != at.generation || manifest->version != at.manifest_version))
    return Fail(Status::Corruption(
        fmt::format("'{}': belongs to another generation or version", path.string())));
  return manifest;
}

/// Compares the hashes of a point with what this store has under the point's numbers.
Status Store::Impl::CheckState(const StorePoint& at, const CommitRecord& now,
                               const Numbers& numbers) const {
  if (now.generation == at.generation && now.base_sequence != at.base_sequence) return NotThere(at);
  if (at.first_commit == 0 && at.sequence != at.base_sequence) return NotThere(at);
  if (!at.state.known()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const HistoryState found,
                           catalog_->StateAfter(at.sequence, at.base_sequence, numbers.base_state));
  const Hash128 files = HashOfFiles(numbers);
  if (files == at.state.files && found.commits == at.state.commits) return Status::Ok();
  return DivergedStates(fmt::format("'{}'", path_.string()),
                        {.files = files, .commits = found.commits}, "the point to open it at",
                        at.state, "open the copy that the point belongs to");
}

Status Store::Impl::CheckCommits(const StorePoint& at) const {
  if (at.first_commit == 0) return Status::Ok();
  for (const auto& [after, wanted] :
       {std::pair(at.base_sequence, at.first_commit), std::pair(at.sequence - 1, at.sequence)}) {
    std::uint64_t found = 0;
    const Status status = catalog_->ScanDelta(after, [&](std::uint64_t sequence, auto) {
      found = sequence;
      return Status::Interrupted("one is enough");
    });
    if (found == 0) RHIZOME_RETURN_IF_ERROR(status);
    if (found != wanted) return NotThere(at);
  }
  return Status::Ok();
}

// Reserves memory in earlier_ for one more manifest, so that Show allocates nothing.
void Store::Impl::ReserveView() {
  const MutexLock lock(shown_);
  earlier_.reserve(earlier_.size() + 1);
}

void Store::Impl::Show(std::shared_ptr<const Manifest> manifest, Pins pins,
                       const Numbers& numbers) noexcept {
  const MutexLock lock(shown_);
  if (manifest != manifest_) {
    if (handed_out_) earlier_.push_back(std::move(manifest_));
    handed_out_ = false;
  }
  manifest_ = std::move(manifest);
  std::swap(pins_, pins);
  numbers_ = numbers;
}

Status Store::Impl::Refresh() try {
  if (snapshot_) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(context_->CheckFolder());
  if (lock_ != nullptr) return catalog_->CheckProcess();
  return PinBy([&] { return TryPin(); });
} catch (...) {
  return StatusOfException();
}

// Before the first compaction the generation's files contain no commit. The state is then derived
// from the files, so that copies agree on it, and stores of version 1 have one.
Store::Impl::Numbers Store::Impl::NumbersOf(const CommitRecord& record,
                                            const Manifest& manifest) const {
  Numbers numbers{.sequence = record.sequence,
                  .base_sequence = record.base_sequence,
                  .base_state = record.base_state,
                  .manifest_xxh3 = record.manifest_xxh3};
  if (numbers.base_state.known()) return numbers;
  ByteWriter facts;
  facts.Bytes(id_.bytes);
  facts.Bytes(HashOfGraph(manifest));
  facts.Number(record.base_sequence);
  numbers.base_state.commits = Xxh3(facts.bytes());
  return numbers;
}

Hash128 Store::Impl::HashOfFiles(const Numbers& numbers) {
  ByteWriter facts;
  facts.Bytes(numbers.manifest_xxh3);
  facts.Number(numbers.base_sequence);
  return Xxh3(facts.bytes());
}

// For the writer: no other process removes a manifest, or a generation that is not superseded.
Result<Store::Impl::Pins> Store::Impl::PinsOf(const Manifest& manifest) const {
  const Path folder = GenerationFolder(path_, manifest.generation);
  const auto lock = [&](const Path& path) {
    return MissingIsDamage(fs_->Lock(path, LockMode::kShared, ""), path);
  };
  RHIZOME_ASSIGN_OR_RETURN(auto pin, lock(folder / kPinName));
  RHIZOME_ASSIGN_OR_RETURN(auto named, lock(folder / ManifestName(manifest.version)));
  return Pins{
      .generation = std::make_shared<CountedPin>(std::move(pin), context_, manifest.generation),
      .manifest = std::move(named)};
}

// Drops commits that the current generation contains, unless a reader of an earlier generation
// still needs them. A generation that is only kept by the rule has no reader that uses the delta.
Status Store::Impl::DropOldDelta(std::uint64_t generation, std::uint64_t base_sequence) {
  RHIZOME_ASSIGN_OR_RETURN(const bool pinned, EarlierIsPinned(*fs_, path_, generation));
  return pinned ? Status::Ok() : catalog_->DropDelta(base_sequence);
}

std::unique_ptr<Store::Impl> Store::Impl::Copy() const {
  auto snapshot = std::make_unique<Impl>(context_);
  snapshot->path_ = path_;
  snapshot->id_ = id_;
  snapshot->snapshot_ = true;
  snapshot->opened_at_ = opened_at_;
  snapshot->lock_ = lock_;
  snapshot->catalog_ = catalog_;
  Pins pins;
  std::shared_ptr<const Manifest> manifest;
  Numbers numbers;
  {
    const MutexLock lock(shown_);
    pins = pins_;
    manifest = manifest_;
    numbers = numbers_;
  }
  snapshot->Show(std::move(manifest), std::move(pins), numbers);
  return snapshot;
}

Status Store::Impl::MakeEmpty() {
  FileSystem& fs = *fs_;
  RHIZOME_RETURN_IF_ERROR(ClearLeftover(fs, path_));
  const std::string format = FormatText(id_);
  RHIZOME_RETURN_IF_ERROR(
      WriteWholeFile(fs, path_ / kFormatName, std::as_bytes(std::span(format))));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(path_));
  SetReserveAside(fs, path_);
  RHIZOME_ASSIGN_OR_RETURN(catalog_,
                           Catalog::Open(fs, path_ / kCatalogName, Catalog::Mode::kCreate, id_));
  RHIZOME_RETURN_IF_ERROR(fs.CreateDirectory(path_ / kGenerationsName));
  return fs.SyncDirectory(path_);
}

Status Store::Impl::CheckWritable() const {
  if (!writable())
    return Status::InvalidArgument(fmt::format("'{}' is open for reading", path_.string()));
  RHIZOME_RETURN_IF_ERROR(broken_);
  return context_->CheckFolder();
}

Status Store::Impl::CheckMayBuild() const {
  if (lock_ == nullptr && !snapshot_) return context_->CheckFolder();
  const MutexLock lock(commits_);
  return CheckWritable();
}

Status Store::Impl::CommitManifest(const Manifest& manifest, std::uint64_t base_sequence) {
  RHIZOME_RETURN_IF_ERROR(CheckFollows(manifest));
  if (RHIZOME_MUTANT("commit before its manifest")) {
    RHIZOME_RETURN_IF_ERROR(CommitPrepared(manifest, base_sequence));
    return PrepareManifest(manifest);
  }
  RHIZOME_RETURN_IF_ERROR(PrepareManifest(manifest));
  return CommitPrepared(manifest, base_sequence);
}

// Performs the slow part of a commit, writing the manifest, without holding commits_.
Status Store::Impl::PrepareManifest(const Manifest& manifest) {
  const std::vector<std::byte> bytes = EncodeManifest(manifest, id_);
  if (bytes.size() > kMaxManifestBytes)
    return Status::InvalidArgument(fmt::format("a manifest of {} bytes is too long", bytes.size()));
  // A manifest that readers would refuse must not be committed.
  if (const auto check = DecodeManifest(bytes, id_); !check)
    return Status::InvalidArgument("the manifest to be committed is invalid: " +
                                   check.error().message());
  RHIZOME_RETURN_IF_ERROR(CheckMayBuild());
  return lock_ == nullptr ? WriteManifest(manifest, bytes) : WriteManifestOrBreak(manifest, bytes);
}

Status Store::Impl::WriteManifestOrBreak(const Manifest& manifest,
                                         std::span<const std::byte> bytes) {
  Status status = WriteManifest(manifest, bytes);
  if (status.ok()) return status;
  const MutexLock lock(commits_);
  return Break(std::move(status), "an earlier commit failed; open the store again");
}

Status Store::Impl::Break(Status status, std::string_view what) noexcept {
  if (!RHIZOME_MUTANT("failed write is forgotten")) {
    Status words = Guarded([&] { return status.WithContext(what); });
    const bool said = words.code() == status.code();  // there was memory for the text
    broken_ = said ? std::move(words) : Status(status.code(), "read-only");
  }
  static_cast<void>(Guarded([&] {
    logger().Log(LogLevel::kError, "store",
                 "a write failed; the store is read-only until it is opened again",
                 {{"path", path_.string()}, {"error", status.ToString()}});
    return Status::Ok();
  }));
  return status;
}

// Accepts only the next version, or the next generation, of the shown manifest. A change that began
// before another one was committed would undo that one.
Status Store::Impl::CheckFollows(const Manifest& next) const {
  const auto now = Shown();
  const bool version = next.generation == now->generation && next.version == now->version + 1;
  const bool generation = next.generation == now->generation + 1;
  // A new store may begin at any generation, as it may be a copy.
  if (version || generation || now->generation == 0) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is now at generation {}, version {}; begin the change again",
                  path_.string(), now->generation, now->version));
}

/// Commits in these steps:
///   1. Checks that the handle may write, and that the manifest follows the shown one.
///   2. Pins the manifest and its generation, and allocates all memory that Show needs.
///   3. Writes the commit record, synced: the commit point.
///   4. Shows the manifest.
Status Store::Impl::CommitPrepared(const Manifest& manifest, std::uint64_t base_sequence) {
  const std::vector<std::byte> bytes = EncodeManifest(manifest, id_);
  const MutexLock lock(commits_);
  RHIZOME_RETURN_IF_ERROR(CheckWritable());
  RHIZOME_RETURN_IF_ERROR(CheckFollows(manifest));
  // Nothing may fail after the commit, or a completed commit would be reported as failed.
  RHIZOME_ASSIGN_OR_RETURN(Pins pins, PinsOf(manifest));
  CommitRecord record{.generation = manifest.generation,
                      .manifest_version = manifest.version,
                      .manifest_bytes = bytes.size(),
                      .manifest_xxh3 = Xxh3(bytes),
                      .sequence = sequence() + 1,
                      .base_sequence = base_sequence};
  RHIZOME_ASSIGN_OR_RETURN(record.base_state, BaseStateOf(manifest, base_sequence));
  auto next = std::make_shared<const Manifest>(manifest);
  const Numbers numbers = NumbersOf(record, manifest);
  record.base_state = numbers.base_state;
  ReserveView();
  Status status = catalog_->Commit(record);
  // The commit may or may not be on disk now: only opening the store again can determine it.
  if (!status.ok())
    return Break(std::move(status), "an earlier commit failed; open the store again");
  Show(std::move(next), std::move(pins), numbers);
  return Status::Ok();
}

/// Returns the state at `base_sequence` for the next commit record: the shown generation's state,
/// or the state that its delta had reached. Unknown for a new store, unless a copy provides it
/// (StoreCopy).
Result<HistoryState> Store::Impl::BaseStateOf(const Manifest& next,
                                              std::uint64_t base_sequence) const {
  const Numbers now = numbers();
  const std::uint64_t generation = Shown()->generation;
  if (generation == 0 || generation == next.generation) return now.base_state;
  if (RHIZOME_MUTANT("compaction forgets the commits before it")) return HistoryState{};
  return catalog_->StateAfter(base_sequence, now.base_sequence, now.base_state);
}

Status Store::Impl::WriteManifest(const Manifest& manifest, std::span<const std::byte> bytes) {
  const Path folder = GenerationFolder(path_, manifest.generation);
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(*fs_, folder / ManifestName(manifest.version), bytes));
  RHIZOME_RETURN_IF_ERROR(fs_->SyncDirectory(folder));
  return fs_->SyncDirectory(path_ / kGenerationsName);
}

}  // namespace rhizome
