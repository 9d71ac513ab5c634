#include "storage/store/generation_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rhizome/chunk_array.h"
#include "rhizome/store.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/manifest_format.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/base/quietly.h"
#include "storage/io/files.h"
#include "storage/store/store_files.h"
#include "storage/store/store_impl.h"

namespace rhizome {
inline namespace internal {

// Writes a generation in these steps:
//   1. Create marks the generation as being written, creates its folder, and locks its PIN.
//   2. CreateFile and AddArray add files and arrays to the manifest.
//   3. Seal sorts the manifest's lists, carries over the series, and syncs all folders.
//   4. Commit lets the Store write and commit the manifest. Preview does the slow part of this in
//      advance. CommitInto does it through another handle, for a generation that a reader wrote.

namespace {

template <typename Entries, typename Key>
Status SortUnique(Entries& entries, Key key, std::string_view what) {
  std::sort(entries.begin(), entries.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(entries.begin(), entries.end(),
                         [&](const auto& a, const auto& b) { return key(a) == key(b); });
  if (twice == entries.end()) return Status::Ok();
  return Status::AlreadyExists(fmt::format("{} '{}' was written twice", what, key(*twice)));
}

}  // namespace

Result<std::unique_ptr<GenerationWriter>> GenerationWriter::Create(Store& store) try {
  const MutexLock files(store.impl_->files_);  // waits until no orphans are being removed
  RHIZOME_RETURN_IF_ERROR(store.impl_->CheckMayBuild());
  const std::uint64_t generation = store.impl_->Shown()->generation + 1;
  std::unique_ptr<GenerationWriter> writer;
  {
    const MutexLock lock(store.impl_->shown_);
    if (store.impl_->building_ != 0)
      return Fail(Status::Busy(fmt::format("'{}': generation {} is being written by another job",
                                           store.path().string(), store.impl_->building_)));
    // The writer is created before the generation is marked as being written, because its
    // destructor removes the mark: a mark without a writer (if memory runs out) would remain.
    writer.reset(new GenerationWriter(store));
    store.impl_->building_ = generation;
  }
  writer->manifest_.generation = generation;
  writer->manifest_.version = 1;
  writer->manifest_.keep = store.impl_->Shown()->keep;
  writer->root_ = Store::GenerationFolder(store.path(), writer->manifest_.generation);
  RHIZOME_RETURN_IF_ERROR(writer->Begin());
  return writer;
} catch (...) {
  return Fail(StatusOfException());
}

// A handle for reading holds the writer's lock here, so that no other process commits or removes a
// generation. If one did so before, the folder may hold the current generation.
Status GenerationWriter::Begin() {
  if (store_.writable()) return ClaimFolder();
  RHIZOME_ASSIGN_OR_RETURN(const auto lock, LockForWriting(store_.fs(), store_.path()));
  RHIZOME_RETURN_IF_ERROR(store_.impl_->catalog_->CatchUp());
  RHIZOME_ASSIGN_OR_RETURN(const CommitRecord record, store_.impl_->catalog_->Current());
  if (record.generation + 1 == manifest_.generation) return ClaimFolder();
  return Status::Busy(
      fmt::format("'{}' is now at generation {}: another process has compacted it; try again",
                  store_.path().string(), record.generation));
}

// Creates the folder and locks its PIN. A killed writer may have left the folder.
Status GenerationWriter::ClaimFolder() {
  const Path pin = root_ / kPinName;
  if (fs().Stat(pin)) {
    const auto unused = fs().Lock(pin, FileSystem::LockMode::kExclusive, "");
    if (!unused && unused.error().code() == StatusCode::kBusy)
      return Status::Busy(
          fmt::format("'{}' is being compacted by another process", store_.path().string()));
    if (!unused) return unused.error();
  }
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs(), root_));
  RHIZOME_RETURN_IF_ERROR(fs().CreateDirectory(root_));
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs(), pin, {}));
  RHIZOME_ASSIGN_OR_RETURN(pin_, fs().Lock(pin, FileSystem::LockMode::kShared, ""));
  return Status::Ok();
}

// A writer's handle removes the files of a failed attempt itself (Store::CollectGarbage). After a
// commit that failed, only opening for writing knows whether they are the current generation.
GenerationWriter::~GenerationWriter() {
  if (pin_ != nullptr && !store_.writable() && !commit_began_)
    Quietly([&] { static_cast<void>(RemoveTree(fs(), root_)); });
  store_.impl_->EndBuilding();
}

Result<std::unique_ptr<GenerationWriter::File>> GenerationWriter::CreateFile(
    std::string_view relative_path) try {
  RHIZOME_RETURN_IF_ERROR(CheckRelativePath(relative_path));
  const Path path = root_ / relative_path;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs(), path.parent_path()));
  std::unique_ptr<File> file(new File);
  file->owner_ = this;
  file->relative_path_ = relative_path;
  RHIZOME_ASSIGN_OR_RETURN(file->file_, fs().CreateFile(path));
  return file;
} catch (...) {
  return Fail(StatusOfException());
}

Status GenerationWriter::File::Append(std::span<const std::byte> bytes) {
  hash_.Update(bytes);
  return file_->Append(bytes);
}

Status GenerationWriter::File::Close() {
  if (!RHIZOME_MUTANT("file is not synced")) {
    const Status synced = file_->Sync();
    if (!synced.ok() && !RHIZOME_MUTANT("failed sync is ignored")) return synced;
  }
  const std::uint64_t size_bytes = file_->size_bytes();
  const Status closed = file_->Close();
  if (!closed.ok() && !RHIZOME_MUTANT("failed sync is ignored")) return closed;
  owner_->manifest_.files.push_back({relative_path_, size_bytes, hash_.xxh3(), hash_.crc32c()});
  return Status::Ok();
}

Status GenerationWriter::AddArray(std::span<const ArrayEntry> arrays,
                                  std::span<const FileEntry> files) try {
  for (const ArrayEntry& array : arrays) RHIZOME_RETURN_IF_ERROR(CheckStoredArray(array));
  for (const FileEntry& file : files) {
    RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, fs().Stat(root_ / file.path));
    if (info.kind != DirectoryEntry::Kind::kFile || info.size_bytes != file.size_bytes)
      return Status::InvalidArgument(fmt::format("'{}' is not a file of {} bytes",
                                                 (root_ / file.path).string(), file.size_bytes));
  }
  manifest_.arrays.insert(manifest_.arrays.end(), arrays.begin(), arrays.end());
  manifest_.files.insert(manifest_.files.end(), files.begin(), files.end());
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status GenerationWriter::SyncFolders() {
  std::set<Path> folders = {root_};
  for (const FileEntry& file : manifest_.files) {
    for (Path folder = Path(file.path).parent_path(); !folder.empty();
         folder = folder.parent_path())
      folders.insert(root_ / folder);
  }
  if (RHIZOME_MUTANT("folders are not synced")) folders.clear();
  for (const Path& folder : folders) RHIZOME_RETURN_IF_ERROR(fs().SyncDirectory(folder));
  return fs().SyncDirectory(root_.parent_path());
}

// Completes the manifest and syncs all folders. May run again, after a preview or a refused commit.
Status GenerationWriter::Seal(const GenerationInfo& info) {
  manifest_.info = info;
  const auto path = [](const FileEntry& file) -> const std::string& { return file.path; };
  const auto name = [](const ArrayEntry& array) -> const std::string& { return array.name; };
  const bool grouped = std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                   [](const auto& f) { return f.path == kGroupPath; });
  if (!manifest_.arrays.empty() && !grouped) {
    RHIZOME_ASSIGN_OR_RETURN(manifest_.files.emplace_back(), WriteArrayGroup(fs(), root_));
  }
  RHIZOME_RETURN_IF_ERROR(SortUnique(manifest_.files, path, "file"));
  RHIZOME_RETURN_IF_ERROR(SortUnique(manifest_.arrays, name, "array"));
  manifest_.series =
      CarrySeries(series_ ? *series_ : store_.impl_->Shown()->series, manifest_.arrays);
  const auto by_name = [](const ArraySeries& one) -> const std::string& { return one.name; };
  RHIZOME_RETURN_IF_ERROR(SortUnique(manifest_.series, by_name, "series"));
  for (const ArraySeries& one : manifest_.series)
    RHIZOME_RETURN_IF_ERROR(CheckSeries(one, manifest_.arrays));
  return SyncFolders();
}

Result<std::shared_ptr<const Store>> GenerationWriter::Preview(const GenerationInfo& info,
                                                               std::uint64_t base_sequence) try {
  RHIZOME_RETURN_IF_ERROR(Seal(info));
  RHIZOME_RETURN_IF_ERROR(store_.impl_->PrepareManifest(manifest_));
  prepared_ = true;
  RHIZOME_ASSIGN_OR_RETURN(Store::Impl::Pins pins, store_.impl_->PinsOf(manifest_));
  std::unique_ptr<Store::Impl> preview = store_.impl_->Copy();
  CommitRecord record{.manifest_xxh3 = Xxh3(EncodeManifest(manifest_, store_.id())),
                      .sequence = preview->sequence(),
                      .base_sequence = base_sequence};
  RHIZOME_ASSIGN_OR_RETURN(record.base_state, store_.impl_->BaseStateOf(manifest_, base_sequence));
  const Store::Impl::Numbers numbers = store_.impl_->NumbersOf(record, manifest_);
  preview->Show(std::make_shared<const Manifest>(manifest_), std::move(pins), numbers);
  return std::shared_ptr<const Store>(new Store(std::move(preview)));
} catch (...) {
  return Fail(StatusOfException());
}

Status GenerationWriter::Commit(const GenerationInfo& info, std::uint64_t base_sequence) try {
  if (!prepared_) RHIZOME_RETURN_IF_ERROR(Seal(info));
  RHIZOME_RETURN_IF_ERROR(prepared_ ? store_.impl_->CommitPrepared(manifest_, base_sequence)
                                    : store_.impl_->CommitManifest(manifest_, base_sequence));
  store_.impl_->EndBuilding();
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status GenerationWriter::CommitInto(Store& store, const GenerationInfo& info,
                                    std::uint64_t base_sequence) try {
  if (&store == &store_) return Commit(info, base_sequence);
  RHIZOME_CHECK(prepared_);
  RHIZOME_RETURN_IF_ERROR(CheckSameState(store, base_sequence));
  commit_began_ = true;
  RHIZOME_RETURN_IF_ERROR(store.impl_->CommitPrepared(manifest_, base_sequence));
  store_.impl_->EndBuilding();
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

// The generation was made from the files and the commits that store_ sees. `store` must have the
// same files, and the same commits up to base_sequence.
Status GenerationWriter::CheckSameState(const Store& store, std::uint64_t base_sequence) const {
  const bool same_files =
      store.impl_->Shown()->generation == store_.impl_->Shown()->generation &&
      store.impl_->numbers().manifest_xxh3 == store_.impl_->numbers().manifest_xxh3;
  if (store.id() == store_.id() && !same_files) {
    return Status::Busy(fmt::format(
        "'{}' was compacted, or its arrays were changed, while generation {} was written; nothing "
        "was committed; compact again",
        store_.path().string(), manifest_.generation));
  }
  if (same_files) {
    RHIZOME_ASSIGN_OR_RETURN(const HistoryState from, store_.StateAt(base_sequence));
    RHIZOME_ASSIGN_OR_RETURN(const HistoryState now, store.StateAt(base_sequence));
    if (store.id() == store_.id() && from.commits == now.commits) return Status::Ok();
  }
  return Status::InvalidArgument(
      fmt::format("'{}' was replaced by another store while generation {} was written; nothing was "
                  "committed; open it again",
                  store_.path().string(), manifest_.generation));
}

}  // namespace internal
}  // namespace rhizome
