#include "rhizome/store.h"

#include <fmt/format.h>

#include <limits>

#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/catalog/delta_head.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "storage/io/outside.h"
#include "storage/io/stored_file.h"
#include "storage/section/section_file.h"
#include "storage/store/caller_path.h"
#include "storage/store/paged_file.h"
#include "storage/store/store_files.h"
#include "storage/store/store_impl.h"

namespace rhizome {

namespace {

// Section files up to this size are read in one piece: a queue would cost more than it saves.
constexpr std::uint64_t kSmallSectionFileBytes = std::uint64_t{64} << 10;

Status CheckOptions(FileSystem& fs, const StoreOptions& options) {
  constexpr std::uint64_t kMinWriteBytes = std::uint64_t{1} << 20;
  if (!options.scratch.empty()) RHIZOME_RETURN_IF_ERROR(CheckScratchPlace(fs, options.scratch));
  if (options.catalog_write_bytes >= kMinWriteBytes) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("catalog_write_bytes is {}, but at least {} are needed",
                  options.catalog_write_bytes, kMinWriteBytes));
}

}  // namespace

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Metrics* Store::metrics() const { return impl_->context_->metrics(); }
const Logger& Store::logger() const { return impl_->logger(); }
const Path& Store::path() const { return impl_->path_; }
const StoreId& Store::id() const { return impl_->id_; }
FileSystem& Store::fs() const { return *impl_->fs_; }
const Manifest& Store::manifest() const { return impl_->manifest(); }
bool Store::fixed() const { return impl_->snapshot_; }
bool Store::writable() const { return impl_->writable(); }
Path Store::scratch() const { return impl_->scratch(); }

Path Store::GenerationFolder(const Path& store, std::uint64_t generation) {
  return store / kGenerationsName / GenerationName(generation);
}
Path Store::GenerationFolder() const {
  return GenerationFolder(impl_->path_, impl_->Shown()->generation);
}

Result<std::unique_ptr<Store>> Store::Open(FileSystem& fs, const Path& path, Mode mode,
                                           const StoreOptions& options) try {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(fs, options));
  if (options.at && mode == Mode::kWrite)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}': a store opened at a point is read-only", path.string())));
  auto store = WithAbsolute(fs, path, [&](const Path& absolute) {
    return Guarded([&] {
      return mode == Mode::kWrite ? OpenForWriting(fs, absolute, /*clear_scratch=*/true, options)
                                  : OpenForReading(fs, absolute, options);
    });
  });
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
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<Store>> Store::OpenForWriting(FileSystem& fs, const Path& path,
                                                     bool clear_scratch,
                                                     const StoreOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto impl, Impl::OpenForWriting(fs, path, clear_scratch, options));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Result<std::unique_ptr<Store>> Store::OpenForReading(FileSystem& fs, const Path& path,
                                                     const StoreOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto impl, Impl::OpenForReading(fs, path, options));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Hash128 Store::HashOfFiles() const { return Impl::HashOfFiles(impl_->numbers()); }

std::uint64_t Store::base_sequence() const { return impl_->numbers().base_sequence; }

Result<HistoryState> Store::StateAt(std::uint64_t commit) const try {
  const Impl::Numbers now = impl_->numbers();
  if (commit < now.base_sequence) return HistoryState{};
  if (commit == now.base_sequence) return now.base_state;
  return impl_->catalog_->StateAfter(commit, now.base_sequence, now.base_state);
} catch (...) {
  return Fail(StatusOfException());
}

std::shared_ptr<const Store> Store::Snapshot() const {
  return std::shared_ptr<const Store>(new Store(impl_->Copy()));
}

// A writer may compact, which copies the edge attributes that its graph was opened with.
std::shared_ptr<const Store> Store::SnapshotOfGraph() const {
  std::unique_ptr<Impl> snapshot = impl_->Copy();
  if (impl_->lock_ == nullptr) {
    const MutexLock lock(snapshot->shown_);
    snapshot->pins_.manifest.reset();
  }
  return std::shared_ptr<const Store>(new Store(std::move(snapshot)));
}

Status Store::Refresh() { return impl_->Refresh(); }

Result<std::unique_ptr<Store>> Store::Create(FileSystem& fs, const Path& path, const StoreId& id,
                                             const StoreOptions& options) try {
  return WithAbsolute(fs, path, [&](const Path& absolute) -> Result<std::unique_ptr<Store>> {
    RHIZOME_RETURN_IF_ERROR(CheckOptions(fs, options));
    RHIZOME_RETURN_IF_ERROR(CheckOutside(fs, absolute));
    const auto info = fs.Stat(absolute);
    if (!info && info.error().code() != StatusCode::kNotFound) return Fail(info.error());
    if (info && info->kind != DirectoryEntry::Kind::kDirectory)
      return Fail(Status::AlreadyExists(fmt::format("'{}' is not a folder", absolute.string())));
    std::unique_ptr<Store> store(new Store(std::make_unique<Impl>(fs, absolute, options)));
    store->impl_->id_ = id;
    store->impl_->made_folders_ = MissingFolders(fs, absolute);
    Status made =
        CreateDirectories(fs, absolute);  // makes the name durable even if the folder exists
    if (made.ok()) made = store->impl_->context_->HoldFolder();
    if (made.ok()) made = CheckLeftover(fs, absolute);
    if (!made.ok()) {
      RemoveEmptyFolders(fs, store->impl_->made_folders_);
      return Fail(made);
    }
    auto lock = fs.Lock(absolute / kLockName, FileSystem::LockMode::kExclusive, LockContent());
    if (!lock) {  // a full disk
      RemoveEmptyFolders(fs, store->impl_->made_folders_);
      return Fail(lock.error());
    }
    store->impl_->lock_ = *std::move(lock);
    // Check again under the lock, as another ingestion may have ended in between.
    RHIZOME_RETURN_IF_ERROR(CheckLeftover(fs, absolute));
    made = store->impl_->MakeEmpty();
    if (made.ok()) return store;
    static_cast<void>(Discard(std::move(store)));
    return Fail(made);
  });
} catch (...) {
  return Fail(StatusOfException());
}

// LOCK is held until everything else is removed; otherwise another ingestion could begin in the
// folder that is being removed.
Status Store::Discard(std::unique_ptr<Store> store) try {
  FileSystem& fs = *store->impl_->fs_;
  const Path path = store->impl_->path_;
  if (store->impl_->catalog_ != nullptr)
    static_cast<void>(store->impl_->catalog_->Close());  // removed below
  RHIZOME_RETURN_IF_ERROR(ClearLeftover(fs, path));
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(path));
  // A process that waits for the lock notices that its file is gone, and creates another.
  RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(path / kLockName));
  RemoveEmptyFolders(fs, store->impl_->made_folders_);
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

// Does not hold commits_ while it removes files, which may take a while for gigabytes.
Status Store::CollectGarbage() try {
  const MutexLock files(impl_->files_);
  {
    const MutexLock lock(impl_->commits_);
    RHIZOME_RETURN_IF_ERROR(impl_->CheckWritable());
  }
  std::shared_ptr<const Manifest> current;
  std::uint64_t base_sequence = 0;
  std::uint64_t building = 0;
  {
    const MutexLock lock(impl_->shown_);
    current = impl_->manifest_;
    base_sequence = impl_->numbers_.base_sequence;
    building = impl_->building_;
  }
  RHIZOME_RETURN_IF_ERROR(RemoveOrphans(*impl_->fs_, impl_->path_, impl_->id_, *current,
                                        /*with_scratch=*/false, building));
  return impl_->DropOldDelta(current->generation, base_sequence);
} catch (...) {
  return StatusOfException();
}

Status Store::Keep(const KeepRule& rule) try {
  const MutexLock files(impl_->files_);
  {
    const MutexLock lock(impl_->commits_);
    RHIZOME_RETURN_IF_ERROR(impl_->CheckWritable());
  }
  Manifest next = *impl_->Shown();
  if (next.keep == rule) return Status::Ok();
  next.keep = rule;
  ++next.version;
  return impl_->CommitManifest(next);
} catch (...) {
  return StatusOfException();
}

Status Store::RemoveKept() try {
  const MutexLock files(impl_->files_);
  {
    const MutexLock lock(impl_->commits_);
    RHIZOME_RETURN_IF_ERROR(impl_->CheckWritable());
  }
  Manifest current;
  std::uint64_t building = 0;
  {
    const MutexLock lock(impl_->shown_);
    current = *impl_->manifest_;
    building = impl_->building_;
  }
  current.keep.generations = 0;
  return RemoveOrphans(*impl_->fs_, impl_->path_, impl_->id_, current, /*with_scratch=*/false,
                       building);
} catch (...) {
  return StatusOfException();
}

Status Store::ClaimDelta() try {
  const MutexLock lock(impl_->commits_);
  RHIZOME_RETURN_IF_ERROR(impl_->CheckWritable());
  if (impl_->delta_claimed_)
    return Status::Busy(
        fmt::format("'{}': another Graph of this process writes to it; share that Graph",
                    impl_->path_.string()));
  impl_->delta_claimed_ = true;
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

void Store::ReleaseDelta() {
  const MutexLock lock(impl_->commits_);
  impl_->delta_claimed_ = false;
}

Status Store::CommitDelta(bool sync, const MakeCommits& make) try {
  const MutexLock lock(impl_->commits_);
  RHIZOME_RETURN_IF_ERROR(impl_->CheckWritable());
  if (!impl_->last_state_) {
    RHIZOME_ASSIGN_OR_RETURN(impl_->last_state_, StateAt(impl_->sequence()));
  }
  const std::vector<DeltaCommit> commits = make(impl_->sequence() + 1, *impl_->last_state_);
  if (commits.empty()) return Status::Ok();
  // After a record without a state the next commit must look it up.
  const auto head = ReadDeltaHead(commits.back().record);
  if (Status status = impl_->catalog_->AppendDelta(commits, sync); !status.ok())
    return impl_->Break(std::move(status), "an earlier write failed; open the store again");
  if (RHIZOME_MUTANT("sequence stands still")) return Status::Ok();
  impl_->last_state_ = head && head->state.known() ? std::optional(head->state) : std::nullopt;
  const MutexLock shown(impl_->shown_);
  impl_->numbers_.sequence += commits.size();
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status Store::ScanDelta(
    std::uint64_t after,
    const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit) const try {
  constexpr std::uint64_t kEvery = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t last = impl_->opened_at_ ? impl_->opened_at_->sequence : kEvery;
  std::uint64_t seen = after;
  const Status status = impl_->catalog_->ScanDelta(
      after, [&](std::uint64_t sequence, std::span<const std::byte> record) -> Status {
        seen = sequence;
        return sequence > last ? Status::Interrupted("beyond the point") : visit(sequence, record);
      });
  if (seen > last) return Status::Ok();
  // A writer may have begun to drop commits before this handle held their generation.
  if (impl_->opened_at_ && status.ok() && seen < last) return impl_->NotThere(*impl_->opened_at_);
  return status;
} catch (...) {
  return StatusOfException();
}

Status Store::ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                           std::span<std::byte> out) const try {
  return impl_->catalog_->ReadDeltaRow(sequence, array_id, vertex, out);
} catch (...) {
  return StatusOfException();
}

// Compares the hash of a small file; for files above kSmallSectionFileBytes, the CRC-32C that
// results from its verified blocks.
Result<SectionFile> Store::LoadSectionFile(std::string_view relative_path, FileKind kind,
                                           std::span<const std::uint32_t> leave) const try {
  const auto manifest = impl_->Shown();
  const FileEntry* file = manifest->FindFile(relative_path);
  const Path path = GenerationFolder(impl_->path_, manifest->generation) / relative_path;
  if (file == nullptr)
    return Fail(Status::NotFound(fmt::format("'{}' is not part of the store", path.string())));
  RHIZOME_ASSIGN_OR_RETURN(const auto source, OpenStored(*impl_->fs_, path));
  const std::uint64_t size_bytes = source->size_bytes();
  if (size_bytes != file->size_bytes) {
    return Fail(Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}",
                                               path.string(), size_bytes, file->size_bytes)));
  }
  const SectionFile::LoadOptions options{.leave = leave, .crc32c = file->crc32c};
  if (size_bytes > kSmallSectionFileBytes)
    return SectionFile::Load(*impl_->fs_, path, kind, impl_->id_, options);

  // A small file is read at once and compared by its hash. Its CRC-32C is useless: a file that
  // consists of one block followed by that block's CRC-32C always has the same CRC-32C, so it
  // cannot distinguish the file from an intact one of another generation or partition.
  std::vector<std::byte> bytes(size_bytes);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(*source, 0, bytes));
  const Hash128 hash = Xxh3(bytes);
  auto sections = SectionFile::Parse(std::move(bytes), path, kind, impl_->id_);
  // The hash is compared last, because the parser's messages about damage are more precise.
  if (sections && hash != file->xxh3 && !RHIZOME_MUTANT("blocks are not checked")) {
    return Fail(Status::Corruption(fmt::format(
        "'{}' is not the file that the manifest names: its XXH3-128 differs", path.string())));
  }
  if (!sections || leave.empty()) return sections;
  return SectionFile::Load(*impl_->fs_, path, kind, impl_->id_, options);
} catch (...) {
  return Fail(StatusOfException());
}

// A small file is read twice, because only its hash ties it to the manifest.
Result<SectionFile> internal::OpenPagedFile(const Store& store, std::string_view relative_path,
                                            FileKind kind) {
  const FileEntry* const file = store.manifest().FindFile(relative_path);
  if (file == nullptr || file->size_bytes <= kSmallSectionFileBytes)
    RHIZOME_RETURN_IF_ERROR(store.LoadSectionFile(relative_path, kind));
  const Path path = store.GenerationFolder() / relative_path;
  return MissingIsDamage(
      SectionFile::Load(store.fs(), path, kind, store.id(),
                        {.paged = true, .crc32c = file->crc32c, .direct = false}),
      path);
}

Result<std::unique_ptr<ChunkArray>> Store::OpenArray(std::string_view name) const try {
  const auto manifest = impl_->Shown();
  const ArrayEntry* entry = manifest->FindArray(name);
  if (entry != nullptr)
    return ChunkArray::Open(*impl_->fs_, GenerationFolder(impl_->path_, manifest->generation),
                            *entry, manifest->files);
  std::string names;
  for (const ArrayEntry& array : manifest->arrays) {
    if (array.name.ends_with(kSidecarSuffix)) continue;
    names += (names.empty() ? "" : ", ") + ShownName(array.name);
  }
  return Fail(
      Status::NotFound(fmt::format("there is no array '{}' in '{}'; existing arrays: {}", name,
                                   impl_->path_.string(), names.empty() ? "none" : names)));
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
