#include "rhizome/array_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rhizome/chunk_array.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/file_copy.h"
#include "storage/array/text_files.h"
#include "storage/array/zarr_format.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutant.h"
#include "storage/io/files.h"
#include "storage/store/caller_path.h"
#include "storage/store/reserve.h"
#include "storage/store/store_files.h"
#include "storage/store/store_impl.h"

namespace rhizome {

namespace {

FileEntry EntryOfText(std::string path, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {std::move(path), bytes.size(), Xxh3(bytes), Crc32c(bytes)};
}

bool IsSidecar(std::string_view stored) { return stored.ends_with(kSidecarSuffix); }

/// Lists the stored arrays, without sidecars, for messages.
std::string ListArrays(const Manifest& manifest) {
  std::string names;
  for (const ArrayEntry& array : manifest.arrays) {
    if (IsSidecar(array.name)) continue;
    names += (names.empty() ? "" : ", ") + ShownName(array.name);
  }
  return names.empty() ? "none" : names;
}

Status CheckSource(const ArraySource& source) {
  const auto owned = [&](const FileEntry& file) {
    return std::any_of(source.arrays.begin(), source.arrays.end(), [&](const ArrayEntry& array) {
      return file.path.starts_with(ArrayFolder(array.name, array.form) + "/") ||
             file.path.starts_with(TextsFolder(array.name) + "/");
    });
  };
  for (const ArrayEntry& array : source.arrays) RHIZOME_RETURN_IF_ERROR(CheckStoredArray(array));
  for (const FileEntry& file : source.files) {
    RHIZOME_RETURN_IF_ERROR(CheckRelativePath(file.path));
    if (owned(file)) continue;
    return Status::InvalidArgument(
        fmt::format("'{}' does not belong to any of the arrays to publish", file.path));
  }
  const auto main = std::count_if(source.arrays.begin(), source.arrays.end(),
                                  [](const ArrayEntry& array) { return !IsSidecar(array.name); });
  if (main == 1) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} arrays to publish; only one is possible at a time", main));
}

const ArrayEntry& MainOf(const ArraySource& source) {
  return *std::find_if(source.arrays.begin(), source.arrays.end(),
                       [](const ArrayEntry& array) { return !IsSidecar(array.name); });
}

const std::string& MainName(const ArraySource& source) { return MainOf(source).name; }

/// Returns whether the source is an array of texts without a dictionary of its own.
bool LacksTexts(const ArraySource& source) {
  return HasTexts(MainOf(source)) &&
         std::none_of(source.files.begin(), source.files.end(),
                      [](const FileEntry& file) { return file.path.starts_with(kTextsPrefix); });
}

}  // namespace

/// The steps of a change in memory, and its commit. Files get their new names as hard links, or are
/// copied if the file system has no links; only an array's zarr.json, which contains its name, is
/// rewritten.
class ArrayChange::Impl {
 public:
  explicit Impl(Store& store) : store_(&store), next_(*store.impl_->Shown()) {}
  Result<std::string> Add(const ArraySource& source);
  Result<std::string> AddVersion(const ArraySource& source, std::string_view name);
  Result<std::string> Replace(std::string_view reference, const ArraySource& source);
  Status Drop(std::string_view reference, bool all_versions);
  Status DropLost(std::string_view stored);
  Status PatchLost(std::span<const ArrayEntry> arrays, std::span<const FileEntry> files);
  Status SetEdgeEnds(std::vector<EdgeEnds> ends);
  Status Rename(std::string_view from, std::string_view to);
  Status SetAlias(std::string_view name, std::string_view alias, std::uint64_t version);
  Status DropAlias(std::string_view name, std::string_view alias);
  Result<std::uint64_t> RollBack(std::string_view name, std::string_view alias);
  Result<std::vector<std::uint64_t>> KeepNewest(std::string_view name, std::uint64_t count);
  Status Commit();

  Store* store_;
  Manifest next_;
  bool drops_ = false;

 private:
  /// A file of the next manifest that must be created: a link to `from`, or a file with the content
  /// `text`.
  struct NewFile {
    Path from;
    std::string text;
    FileEntry entry;
  };

  Result<bool> IsFresh(std::string_view stored) const;
  Result<std::string> FreshName(const std::string& name);
  std::uint64_t NextVersion(std::string_view name);
  ArraySeries& SeriesOf(std::string_view name);
  Status Publish(const ArraySource& source, const std::string& stored);
  Status PublishOne(const ArraySource& source, const ArrayEntry& entry, const std::string& stored);
  void LinkFiles(const Path& root, std::span<const FileEntry> files, const std::string& from,
                 const std::string& to);
  Status MoveStored(const std::string& from, const std::string& to);
  void RemoveStored(std::string_view stored);
  Status DropVersion(std::string_view name, std::uint64_t version);
  Status CheckNoDelta(std::string_view name) const;
  Status DropEdgeAttribute(std::string_view name);
  Status NotFound(std::string_view reference) const;
  Result<ArrayAlias*> FindAlias(std::string_view name, std::string_view alias);
  Status CheckBase() const;
  Status WriteFiles();
  Status MakeFolder(const Path& folder);

  std::vector<NewFile> new_files_;
};

Result<ArrayChange> ArrayChange::Begin(Store& store) {
  return Guarded([&]() -> Result<ArrayChange> { return ArrayChange(store); });
}

/// Runs a change in these steps:
///   1. Makes the disk's reserve available if any generation is accepted.
///   2. Opens the store for writing, and checks that it is the expected one.
///   3. `steps` makes the change in memory, which is then committed.
///   4. Closes the store, and removes the files of dropped arrays that no reader uses.
Status ArrayChange::Run(FileSystem& fs, const Path& path, const ChangedStore& expected,
                        const std::function<Status(ArrayChange&)>& steps) try {
  return WithAbsolute(fs, path, [&](const Path& absolute) -> Status {
    std::optional<ReserveInUse> reserve;
    const std::uint64_t generation = expected.generation;
    if (generation == 0) reserve.emplace(fs, absolute);
    RHIZOME_ASSIGN_OR_RETURN(auto store,
                             Store::OpenForWriting(fs, absolute, /*clear_scratch=*/false,
                                                   {.wait = expected.wait, .id = expected.id}));
    const std::uint64_t current = store->manifest().generation;
    if (generation != 0 && generation != current) {
      return Status::InvalidArgument(
          fmt::format("'{}' is at generation {}, but the array was created for generation {}",
                      absolute.string(), current, generation));
    }
    RHIZOME_ASSIGN_OR_RETURN(ArrayChange change, Begin(*store));
    RHIZOME_RETURN_IF_ERROR(steps(change));
    const bool drops = change.impl_->drops_;
    const StoreId id = store->id();
    RHIZOME_RETURN_IF_ERROR(change.Commit());
    // Remove the files of dropped arrays now if no reader uses them. Otherwise, or if this fails, a
    // later opening for writing removes them.
    store.reset();
    if (drops) static_cast<void>(RemoveDropped(fs, absolute, id));
    return Status::Ok();
  });
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::CheckNoWriter(FileSystem& fs, const Path& path) try {
  const auto lock = LockForWriting(fs, path);
  return lock ? Status::Ok() : lock.error();
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::RemoveDropped(FileSystem& fs, const Path& path, const StoreId& id) try {
  return WithAbsolute(fs, path, [&](const Path& absolute) {
    const auto store = Store::OpenForWriting(fs, absolute, /*clear_scratch=*/false, {.id = id});
    return store ? Status::Ok() : store.error();
  });
} catch (...) {
  return StatusOfException();
}

// --- Names ---------------------------------------------------------------------------------------

/// Returns whether a new array may be stored as `stored`. Its folder must never have been used in
/// this generation, since readers may still have an earlier array of that name open.
Result<bool> ArrayChange::Impl::IsFresh(std::string_view stored) const {
  if (FindStoredArray(next_.arrays, stored) != nullptr) return false;
  const auto used = [&](const FileEntry& file) {
    return file.path.starts_with(ArrayFolder(stored) + "/") ||
           file.path.starts_with(TextsFolder(stored) + "/");
  };
  const auto now = store_->impl_->Shown();
  if (std::any_of(now->files.begin(), now->files.end(), used)) return false;
  const auto info = store_->fs().Stat(store_->GenerationFolder() / ArrayFolder(stored));
  if (info) return false;
  if (info.error().code() == StatusCode::kNotFound) return true;
  return Fail(info.error());
}

Result<std::string> ArrayChange::Impl::FreshName(const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const bool fresh, IsFresh(name));
  if (fresh) return name;
  return VersionName(name, NextVersion(name));
}

ArraySeries& ArrayChange::Impl::SeriesOf(std::string_view name) {
  const auto at =
      std::lower_bound(next_.series.begin(), next_.series.end(), name,
                       [](const ArraySeries& one, std::string_view n) { return one.name < n; });
  if (at != next_.series.end() && at->name == name) return *at;
  return *next_.series.insert(at, ArraySeries{std::string(name), 0, {}});
}

std::uint64_t ArrayChange::Impl::NextVersion(std::string_view name) {
  ArraySeries& series = SeriesOf(name);
  const auto versions = VersionsOf(next_, name);
  const std::uint64_t highest = versions.empty() ? 0 : versions.back();
  series.last_version = std::max(series.last_version, highest) + 1;
  return series.last_version;
}

Status ArrayChange::Impl::NotFound(std::string_view reference) const {
  return Status::NotFound(fmt::format("there is no array '{}' in '{}'; existing arrays: {}",
                                      reference, store_->path().string(), ListArrays(next_)));
}

// --- Steps ---------------------------------------------------------------------------------------

/// Adds one array of the source, under the name `stored`, and its files to the next manifest.
Status ArrayChange::Impl::PublishOne(const ArraySource& source, const ArrayEntry& entry,
                                     const std::string& stored) {
  ArrayEntry renamed = entry;
  renamed.name = stored;
  RHIZOME_RETURN_IF_ERROR(CheckStoredArray(renamed));
  const std::string from = ArrayFolder(entry.name, entry.form) + "/";
  const std::string to = ArrayFolder(stored, entry.form) + "/";
  for (const FileEntry& file : source.files) {
    if (!file.path.starts_with(from)) continue;
    const std::string path = to + file.path.substr(from.size());
    NewFile made{source.root / file.path, {}, file};
    made.entry.path = path;
    if (from != to && path == to + "zarr.json") {
      made.text = EncodeArrayJson(renamed);
      made.entry = EntryOfText(path, made.text);
    }
    next_.files.push_back(made.entry);
    new_files_.push_back(std::move(made));
  }
  LinkFiles(source.root, source.files, TextsFolder(entry.name) + "/", TextsFolder(stored) + "/");
  next_.arrays.push_back(std::move(renamed));
  return Status::Ok();
}

/// Adds the files in the folder `from` below `root`, as links in the folder `to`.
void ArrayChange::Impl::LinkFiles(const Path& root, std::span<const FileEntry> files,
                                  const std::string& from, const std::string& to) {
  for (const FileEntry& file : files) {
    if (!file.path.starts_with(from)) continue;
    NewFile made{root / file.path, {}, file};
    made.entry.path = to + file.path.substr(from.size());
    next_.files.push_back(made.entry);
    new_files_.push_back(std::move(made));
  }
}

Status ArrayChange::Impl::Publish(const ArraySource& source, const std::string& stored) {
  for (const ArrayEntry& entry : source.arrays) {
    RHIZOME_RETURN_IF_ERROR(
        PublishOne(source, entry, IsSidecar(entry.name) ? SidecarName(stored) : stored));
  }
  std::sort(next_.arrays.begin(), next_.arrays.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(next_.files.begin(), next_.files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  return Status::Ok();
}

void ArrayChange::Impl::RemoveStored(std::string_view stored) {
  drops_ = true;
  const std::string sidecar = SidecarName(stored);
  std::erase_if(next_.arrays, [&](const ArrayEntry& array) {
    return array.name == stored || array.name == sidecar;
  });
  const auto inside = [&](const std::string& path) {
    const std::string_view owner = ArrayOfFile(path);
    return owner == stored || owner == sidecar;
  };
  std::erase_if(next_.files, [&](const FileEntry& file) { return inside(file.path); });
  std::erase_if(new_files_, [&](const NewFile& file) { return inside(file.entry.path); });
}

/// Renames an array of the committed manifest: its files will be linked under the new name.
Status ArrayChange::Impl::MoveStored(const std::string& from, const std::string& to) {
  const auto now = store_->impl_->Shown();
  std::vector<ArrayEntry> arrays;
  for (const std::string& name : {from, SidecarName(from)}) {
    const ArrayEntry* entry = FindStoredArray(now->arrays, name);
    if (entry != nullptr) arrays.push_back(*entry);
  }
  if (arrays.empty()) return NotFound(from);
  RemoveStored(from);
  // Publish skips the files of other arrays.
  return Publish({arrays, store_->GenerationFolder(), now->files}, to);
}

Result<std::string> ArrayChange::Impl::Add(const ArraySource& source) try {
  RHIZOME_RETURN_IF_ERROR(CheckSource(source));
  const std::string& name = MainName(source);
  if (next_.FindArray(name) != nullptr)
    return Fail(Status::AlreadyExists(fmt::format("an array '{}' exists already", name)));
  RHIZOME_ASSIGN_OR_RETURN(std::string stored, FreshName(name));
  RHIZOME_RETURN_IF_ERROR(Publish(source, stored));
  return stored;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::string> ArrayChange::Impl::AddVersion(const ArraySource& source,
                                                  std::string_view name) try {
  RHIZOME_RETURN_IF_ERROR(CheckSource(source));
  if (SplitVersion(name))
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' includes a version; give the new name without one", name)));
  const std::string plain(name);
  const ArrayEntry* first = FindStoredArray(next_.arrays, plain);
  if (first != nullptr && IsOfEdges(*first))
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is an attribute of edges, which has no versions", name)));
  if (first != nullptr)
    RHIZOME_RETURN_IF_ERROR(MoveStored(plain, VersionName(plain, NextVersion(plain))));
  std::string stored = VersionName(plain, NextVersion(plain));
  RHIZOME_RETURN_IF_ERROR(Publish(source, stored));
  return stored;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::string> ArrayChange::Impl::Replace(std::string_view reference,
                                               const ArraySource& source) try {
  RHIZOME_RETURN_IF_ERROR(CheckSource(source));
  const ArrayEntry* old = next_.FindArray(reference);
  if (old == nullptr) return Fail(NotFound(reference));
  if (IsSidecar(old->name) || IsOfEdges(*old))
    return Fail(
        Status::InvalidArgument(fmt::format("'{}' is not an array of vertices", old->name)));
  const std::string old_name = old->name;
  const auto version = SplitVersion(old_name);
  const std::string name(version ? version->first : std::string_view(old_name));
  const std::uint64_t next = NextVersion(name);
  if (version) {
    for (ArrayAlias& alias : SeriesOf(name).aliases)
      std::replace(alias.history.begin(), alias.history.end(), version->second, next);
  }
  // The codes of an array that is rewritten keep their texts.
  const std::vector<FileEntry> texts = LacksTexts(source) ? next_.files : std::vector<FileEntry>();
  RemoveStored(old_name);
  std::string stored = VersionName(name, next);
  LinkFiles(store_->GenerationFolder(), texts, TextsFolder(old_name) + "/",
            TextsFolder(stored) + "/");
  RHIZOME_RETURN_IF_ERROR(Publish(source, stored));
  return stored;
} catch (...) {
  return Fail(StatusOfException());
}

Status ArrayChange::Impl::DropVersion(std::string_view name, std::uint64_t version) {
  ArraySeries& series = SeriesOf(name);
  series.last_version = std::max(series.last_version, VersionsOf(next_, name).back());
  for (const ArrayAlias& alias : series.aliases) {
    if (alias.history.back() != version) continue;
    return Status::InvalidArgument(
        fmt::format("{0}@{1} cannot be dropped because the alias {0}@{2} names it; set the alias "
                    "to another version, or drop the alias",
                    name, version, alias.name));
  }
  for (ArrayAlias& alias : series.aliases) {
    std::erase(alias.history, version);
    const auto doubled = std::unique(alias.history.begin(), alias.history.end());
    alias.history.erase(doubled, alias.history.end());
  }
  RemoveStored(VersionName(name, version));
  return Status::Ok();
}

// A commit of the delta has values of all edge attributes, without their names or number: without
// one of the attributes it could not be read.
Status ArrayChange::Impl::CheckNoDelta(std::string_view name) const {
  {
    const MutexLock lock(store_->impl_->commits_);
    if (store_->impl_->delta_claimed_)
      return Status::Busy(fmt::format(
          "'{}': a graph of this process writes to the store; close it before the edge attribute "
          "'{}' is dropped",
          store_->path().string(), name));
  }
  bool any = false;
  const Status scanned = store_->ScanDelta(store_->base_sequence(), [&](std::uint64_t, auto) {
    any = true;
    return Status::Interrupted("one is enough");
  });
  if (!any) return scanned;
  return Status::InvalidArgument(fmt::format(
      "the edge attribute '{}' has values in commits since the last compaction; compact "
      "the store before the attribute is dropped",
      name));
}

Status ArrayChange::Impl::DropEdgeAttribute(std::string_view name) {
  std::vector<std::string> parts;
  for (const ArrayEntry& array : next_.arrays) {
    if (!IsOfEdges(array)) continue;
    const std::string_view suffix = FirstDimension(array).substr(std::string_view("edge_").size());
    if (array.name == fmt::format("{}.{}", name, suffix)) parts.push_back(array.name);
  }
  if (parts.empty()) return NotFound(name);
  RHIZOME_RETURN_IF_ERROR(CheckNoDelta(name));
  for (const std::string& part : parts) RemoveStored(part);
  return Status::Ok();
}

Status ArrayChange::Impl::Drop(std::string_view reference, bool all_versions) try {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayReference parsed, ParseArrayReference(reference));
  if (const ArrayEntry* exact = FindStoredArray(next_.arrays, reference)) {
    if (IsSidecar(exact->name))
      return Status::InvalidArgument(
          fmt::format("'{}' holds row checksums; drop the array that they belong to", reference));
    if (IsOfEdges(*exact))
      return Status::InvalidArgument(
          fmt::format("'{}' is part of an attribute of edges; drop the attribute '{}'", reference,
                      reference.substr(0, reference.rfind('.'))));
    if (const auto version = SplitVersion(reference))
      return DropVersion(std::string(version->first), version->second);
    RemoveStored(std::string(reference));
    return Status::Ok();
  }
  const auto versions = VersionsOf(next_, parsed.name);
  if (parsed.selector.empty() && versions.empty()) return DropEdgeAttribute(parsed.name);
  if (parsed.selector.empty() && !all_versions) {
    return Status::InvalidArgument(fmt::format(
        "'{0}' has {1} versions; name one, such as {0}@{2}, or request that all are dropped",
        parsed.name, versions.size(), versions.front()));
  }
  if (parsed.selector.empty()) {
    SeriesOf(parsed.name).aliases.clear();
    for (const std::uint64_t version : versions)
      RHIZOME_RETURN_IF_ERROR(DropVersion(parsed.name, version));
    return Status::Ok();
  }
  const ArrayEntry* array = next_.FindArray(reference);
  const auto version = array == nullptr ? std::nullopt : SplitVersion(array->name);
  return version ? DropVersion(parsed.name, version->second) : NotFound(reference);
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::Impl::DropLost(std::string_view stored) try {
  const ArrayEntry* array = FindStoredArray(next_.arrays, stored);
  if (array == nullptr) return Status::Ok();  // dropped with another part of its attribute
  if (IsOfEdges(*array)) return DropEdgeAttribute(stored.substr(0, stored.rfind('.')));
  if (const auto version = SplitVersion(stored)) {
    ArraySeries& series = SeriesOf(version->first);
    series.last_version = std::max(series.last_version, VersionsOf(next_, version->first).back());
    for (ArrayAlias& alias : series.aliases) std::erase(alias.history, version->second);
    std::erase_if(series.aliases, [](const ArrayAlias& alias) { return alias.history.empty(); });
  }
  RemoveStored(std::string(stored));
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::Impl::PatchLost(std::span<const ArrayEntry> arrays,
                                    std::span<const FileEntry> files) try {
  drops_ = true;  // earlier manifests name the lost files
  for (const ArrayEntry& array : arrays) {
    const auto at = std::ranges::find(next_.arrays, array.name, &ArrayEntry::name);
    if (at == next_.arrays.end()) return NotFound(array.name);
    *at = array;
  }
  for (const FileEntry& file : files) {
    const auto at = std::ranges::find(next_.files, file.path, &FileEntry::path);
    if (at == next_.files.end()) return NotFound(file.path);
    *at = file;
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::Impl::SetEdgeEnds(std::vector<EdgeEnds> ends) {
  if (ends.size() != next_.info.edge_ends.size())
    return Status::InvalidArgument(
        fmt::format("{} ends, but the manifest has {}", ends.size(), next_.info.edge_ends.size()));
  next_.info.edge_ends = std::move(ends);
  return Status::Ok();
}

Status ArrayChange::Impl::Rename(std::string_view from, std::string_view to) try {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", from));
  if (SplitVersion(from) || IsSidecar(from))
    return Status::InvalidArgument(
        fmt::format("'{}': only whole arrays can be renamed, not versions", from));
  RHIZOME_RETURN_IF_ERROR(CheckNewArrayName(to));
  if (next_.FindArray(to) != nullptr || next_.FindSeries(to) != nullptr)
    return Status::AlreadyExists(fmt::format("an array '{}' exists already", to));
  const std::string old(from);
  const std::string name(to);
  if (const ArrayEntry* plain = FindStoredArray(next_.arrays, from)) {
    if (IsOfEdges(*plain))
      return Status::InvalidArgument(fmt::format("'{}' is an attribute of edges", from));
    RHIZOME_ASSIGN_OR_RETURN(const std::string stored, FreshName(name));
    return MoveStored(old, stored);
  }
  const auto versions = VersionsOf(next_, from);
  if (versions.empty()) return NotFound(from);
  ArraySeries series = SeriesOf(from);
  series.name = name;
  series.last_version = std::max(series.last_version, versions.back());
  for (const std::uint64_t version : versions) {
    const std::string stored = VersionName(name, version);
    RHIZOME_ASSIGN_OR_RETURN(const bool fresh, IsFresh(stored));
    if (!fresh)
      return Status::AlreadyExists(fmt::format(
          "'{}' was the name of an array that is still on disk; choose another name", to));
    RHIZOME_RETURN_IF_ERROR(MoveStored(VersionName(old, version), stored));
  }
  SeriesOf(name) = series;
  SeriesOf(from).aliases.clear();
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<ArrayAlias*> ArrayChange::Impl::FindAlias(std::string_view name, std::string_view alias) {
  if (next_.FindSeries(name) != nullptr) {
    for (ArrayAlias& one : SeriesOf(name).aliases)
      if (one.name == alias) return &one;
  }
  return Fail(Status::NotFound(fmt::format("there is no alias {}@{}", name, alias)));
}

Status ArrayChange::Impl::SetAlias(std::string_view name, std::string_view alias,
                                   std::uint64_t version) try {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", name));
  RHIZOME_RETURN_IF_ERROR(CheckAlias(alias));
  if (FindStoredArray(next_.arrays, VersionName(name, version)) == nullptr) {
    const bool plain = FindStoredArray(next_.arrays, name) != nullptr;
    return Status::NotFound(
        plain ? fmt::format("array '{}' has no versions, so it cannot have aliases", name)
              : fmt::format("there is no array '{}@{}'; existing arrays: {}", name, version,
                            ListArrays(next_)));
  }
  ArraySeries& series = SeriesOf(name);
  series.last_version = std::max(series.last_version, VersionsOf(next_, name).back());
  const auto at = std::lower_bound(
      series.aliases.begin(), series.aliases.end(), alias,
      [](const ArrayAlias& one, std::string_view wanted) { return one.name < wanted; });
  const bool there = at != series.aliases.end() && at->name == alias;
  ArrayAlias& one = there ? *at : *series.aliases.insert(at, ArrayAlias{std::string(alias), {}});
  if (!one.history.empty() && one.history.back() == version) return Status::Ok();
  if (one.history.size() == kMaxAliasHistory) one.history.erase(one.history.begin());
  one.history.push_back(version);
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status ArrayChange::Impl::DropAlias(std::string_view name, std::string_view alias) try {
  RHIZOME_RETURN_IF_ERROR(FindAlias(name, alias));
  std::erase_if(SeriesOf(name).aliases, [&](const ArrayAlias& one) { return one.name == alias; });
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<std::uint64_t> ArrayChange::Impl::RollBack(std::string_view name,
                                                  std::string_view alias) try {
  RHIZOME_ASSIGN_OR_RETURN(ArrayAlias* const one, FindAlias(name, alias));
  if (one->history.size() < 2)
    return Fail(Status::InvalidArgument(
        fmt::format("{0}@{1} has no earlier version that still exists; set the alias to a version",
                    name, alias)));
  one->history.pop_back();
  return one->history.back();
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::uint64_t>> ArrayChange::Impl::KeepNewest(std::string_view name,
                                                                 std::uint64_t count) try {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", name));
  if (count == 0) return Fail(Status::InvalidArgument("at least one version must be kept"));
  std::vector<std::uint64_t> old = VersionsOf(next_, name);
  if (old.empty() && FindStoredArray(next_.arrays, name) == nullptr) return Fail(NotFound(name));
  old.resize(old.size() - std::min<std::size_t>(old.size(), count));
  const ArraySeries* series = next_.FindSeries(name);
  std::erase_if(old, [&](std::uint64_t version) {
    return series != nullptr &&
           std::any_of(series->aliases.begin(), series->aliases.end(),
                       [&](const ArrayAlias& alias) { return alias.history.back() == version; });
  });
  for (const std::uint64_t version : old) RHIZOME_RETURN_IF_ERROR(DropVersion(name, version));
  return old;
} catch (...) {
  return Fail(StatusOfException());
}

// --- Commit --------------------------------------------------------------------------------------

/// Checks that the store has not changed since the change began, and that no generation is being
/// written, which would undo the change.
Status ArrayChange::Impl::CheckBase() const {
  Manifest next;
  next.generation = next_.generation;
  next.version = next_.version + 1;
  RHIZOME_RETURN_IF_ERROR(store_->impl_->CheckFollows(next));
  const MutexLock lock(store_->impl_->shown_);
  if (store_->impl_->building_ == 0) return Status::Ok();
  return Status::Busy(fmt::format("'{}' is being compacted; change its arrays afterwards",
                                  store_->path().string()));
}

/// Creates the folder of a new array. An existing folder can only be left over from an earlier
/// attempt on the same handle. It is removed, but only after every manifest was checked for files
/// in it.
Status ArrayChange::Impl::MakeFolder(const Path& folder) {
  FileSystem& fs = store_->fs();
  const auto info = fs.Stat(folder);
  if (!info && info.error().code() != StatusCode::kNotFound) return info.error();
  if (!info) return CreateDirectories(fs, folder);
  const Path generation = store_->GenerationFolder();
  const std::string prefix = folder.lexically_relative(generation).generic_string() + "/";
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs.List(generation));
  for (const DirectoryEntry& entry : entries) {
    const auto version = ParseNumbered(entry.name, kManifestPrefix);
    if (!version || *version > store_->impl_->Shown()->version) continue;
    RHIZOME_ASSIGN_OR_RETURN(const Manifest manifest,
                             ReadManifestFile(fs, generation / entry.name, store_->id()));
    for (const FileEntry& file : manifest.files) {
      if (file.path.starts_with(prefix))
        return Status::AlreadyExists(fmt::format(
            "'{}' belongs to a dropped array that is still on disk; choose another name",
            folder.string()));
    }
  }
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs, folder));
  return CreateDirectories(fs, folder);
}

Status ArrayChange::Impl::WriteFiles() {
  FileSystem& fs = store_->fs();
  const Path generation = store_->GenerationFolder();
  std::set<Path> folders;
  for (const NewFile& file : new_files_) {
    const Path folder = (generation / file.entry.path).parent_path();
    if (folders.insert(folder).second) RHIZOME_RETURN_IF_ERROR(MakeFolder(folder));
    const Path path = generation / file.entry.path;
    RHIZOME_RETURN_IF_ERROR(file.text.empty()
                                ? LinkOrCopyFile(fs, file.from, path, file.entry.size_bytes)
                                : WriteWholeFile(fs, path, std::as_bytes(std::span(file.text))));
  }
  if (RHIZOME_MUTANT("folder of an array is not synced")) return Status::Ok();
  for (const Path& folder : folders) RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(folder));
  std::set<Path> parents;
  for (const Path& folder : folders) parents.insert(folder.parent_path());
  for (const Path& parent : parents) RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(parent));
  return Status::Ok();
}

/// Commits in these steps:
///   1. Checks that the store has not changed (CheckBase).
///   2. Links or writes the new files, and syncs their folders (WriteFiles).
///   3. Writes the group's zarr.json if there is none.
///   4. Commits the next version of the manifest.
Status ArrayChange::Impl::Commit() try {
  const MutexLock files(
      store_->impl_->files_);  // protects files that no manifest names yet from removal
  RHIZOME_RETURN_IF_ERROR(CheckBase());
  RHIZOME_RETURN_IF_ERROR(WriteFiles());
  if (!new_files_.empty() && next_.FindFile(kGroupPath) == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(const FileEntry group,
                             WriteArrayGroup(store_->fs(), store_->GenerationFolder()));
    next_.files.push_back(group);
    std::sort(next_.files.begin(), next_.files.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
  }
  std::erase_if(next_.series, [](const ArraySeries& one) { return one.last_version == 0; });
  new_files_.clear();
  ++next_.version;
  return store_->impl_->CommitManifest(next_);
} catch (...) {
  return StatusOfException();
}

// --- The public class
// --------------------------------------------------------------------------------

ArrayChange::ArrayChange(Store& store) : impl_(std::make_unique<Impl>(store)) {}
ArrayChange::ArrayChange(ArrayChange&&) noexcept = default;
ArrayChange& ArrayChange::operator=(ArrayChange&&) noexcept = default;
ArrayChange::~ArrayChange() = default;
const Manifest& ArrayChange::manifest() const { return impl_->next_; }
Store& ArrayChange::store() const { return *impl_->store_; }

Result<std::string> ArrayChange::Add(const ArraySource& source) { return impl_->Add(source); }
Result<std::string> ArrayChange::AddVersion(const ArraySource& source, std::string_view name) {
  return impl_->AddVersion(source, name);
}
Result<std::string> ArrayChange::Replace(std::string_view reference, const ArraySource& source) {
  return impl_->Replace(reference, source);
}
Status ArrayChange::Drop(std::string_view reference, bool all_versions) {
  return impl_->Drop(reference, all_versions);
}
Status ArrayChange::DropLost(std::string_view stored) { return impl_->DropLost(stored); }
Status ArrayChange::PatchLost(std::span<const ArrayEntry> arrays,
                              std::span<const FileEntry> files) {
  return impl_->PatchLost(arrays, files);
}

Status ArrayChange::SetEdgeEnds(std::vector<EdgeEnds> ends) {
  return impl_->SetEdgeEnds(std::move(ends));
}
Status ArrayChange::Rename(std::string_view from, std::string_view to) {
  return impl_->Rename(from, to);
}
Status ArrayChange::SetAlias(std::string_view name, std::string_view alias, std::uint64_t version) {
  return impl_->SetAlias(name, alias, version);
}
Status ArrayChange::DropAlias(std::string_view name, std::string_view alias) {
  return impl_->DropAlias(name, alias);
}
Result<std::uint64_t> ArrayChange::RollBack(std::string_view name, std::string_view alias) {
  return impl_->RollBack(name, alias);
}
Result<std::vector<std::uint64_t>> ArrayChange::KeepNewest(std::string_view name,
                                                           std::uint64_t count) {
  return impl_->KeepNewest(name, count);
}
Status ArrayChange::Commit() { return impl_->Commit(); }

}  // namespace rhizome
