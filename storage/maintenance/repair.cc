#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "rhizome/array_change.h"
#include "rhizome/chunk_array.h"
#include "rhizome/verify.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/coordinates.h"
#include "storage/array/file_copy.h"
#include "storage/array/manifest_format.h"
#include "storage/array/text_files.h"
#include "storage/array/zarr_format.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog.h"
#include "storage/io/files.h"
#include "storage/io/forwarding_file_system.h"
#include "storage/io/job_folder.h"
#include "storage/maintenance/byte_repair.h"
#include "storage/maintenance/catalog_repair.h"
#include "storage/maintenance/lost_rows.h"
#include "storage/maintenance/manifest_repair.h"
#include "storage/maintenance/repair_store.h"
#include "storage/maintenance/verify_files.h"
#include "storage/section/section_salvage.h"
#include "storage/store/caller_path.h"
#include "storage/store/store_files.h"

namespace rhizome {

namespace {

using Kind = DirectoryEntry::Kind;

constexpr std::string_view kDiffers =
    "was read twice with different results, so nothing was repaired; the disk, its controller or "
    "the memory is faulty";
constexpr std::string_view kTextsOfCommits =
    "texts of its codes lost; commits since the last compaction have values of this edge "
    "attribute, "
    "so it cannot be dropped";
constexpr std::string_view kRestore = "restore the store from a backup, or ingest it again";

std::string TimeStamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char text[32] = "";
  if (gmtime_r(&now, &parts) != nullptr)
    std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

/// Returns the array to which a file of a generation belongs; empty if there is none.
std::string ArrayOf(std::string_view relative) { return std::string(ArrayOfFile(relative)); }

/// The files of an array, and the entries of the array and of its sidecar.
struct ArrayFiles {
  std::vector<FileEntry> files;
  std::vector<ArrayEntry> arrays;
};

/// A file system for a caller that already holds a lock and keeps it: taking this lock always
/// succeeds.
class LockIsHeld final : public ForwardingFileSystem {
 public:
  LockIsHeld(FileSystem& base, Path lock) : ForwardingFileSystem(base), lock_(std::move(lock)) {}

  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    if (path == lock_) return std::make_unique<FileLock>();
    return ForwardingFileSystem::Lock(path, mode, content);
  }

 private:
  const Path lock_;
};

/// One run of RepairStore. The steps are listed at Run. Threads: one.
class Repair {
 public:
  Repair(FileSystem& fs, Path store, const RepairOptions& options, const JobControl& control)
      : fs_(fs), store_(std::move(store)), options_(options), control_(control) {}
  Result<RepairReport> Run();

 private:
  Result<std::optional<StoreId>> IdOfManifests() const;
  Result<std::optional<Damage>> ReadFormatState();
  Status CheckId();
  Result<VerifyReport> VerifyTwice();
  Status FindManifest();
  Status RepairFormat();
  Status RepairOne(const Damage& damage);
  Status RepairInGeneration(const std::string& file, const std::string& relative);
  Status RepairArrayFile(const std::string& file, const std::string& relative);
  Status RepairCoordinate(const std::string& file, const FileEntry& entry, const std::string& name);
  Status RepairTexts(const std::string& file, const FileEntry& entry, const ArrayEntry& array);
  Status QuarantineManifests(const std::string& folder);
  Status Rebuild(const std::string& file, const FileEntry& entry, std::span<const std::byte> bytes,
                 std::string_view from);
  Result<bool> TryDerive(const std::string& file, const FileEntry& entry);
  Result<bool> DeriveFrom(const Path& place, const std::string& file, const FileEntry& entry);
  Result<std::vector<Path>> PlacesOf(const std::string& file);
  Result<bool> PutBack(const std::string& file, const FileEntry& entry,
                       std::span<const std::byte> bytes, std::string_view from);
  Result<bool> MoveSpecial();
  Result<bool> RepairRoots(const VerifyReport& before);
  Status RepairManifest();
  Result<std::optional<std::vector<std::byte>>> ManifestFrom(const Path& place,
                                                             const FileEntry& entry,
                                                             std::string& from) const;
  Status RepairCatalog();
  Result<bool> SalvageInto(const Path& fresh);
  Status RebuildSidecar(const std::string& file, const FileEntry& entry, const ArrayEntry& sidecar,
                        std::uint64_t chunk);
  bool WasFound(const std::string& relative) const;
  bool WillBePutRight(const std::string& array) const;
  Result<std::vector<std::byte>> SumsOf(const ArrayEntry& rows, const ArrayEntry& sidecar,
                                        std::uint64_t chunk) const;
  Status Quarantine(const std::string& file, bool keep = false);
  Status QuarantineEarlier(const std::string& file, const std::string& relative);
  Status GiveSecondName(const Path& from, const Path& to, const FileInfo& info);
  Path NewQuarantine();
  Status QuarantineArray(const std::string& array);
  std::string HowLost(const std::string& array, const std::set<std::uint64_t>& chunks,
                      const SoundRows& rows, bool fill) const;
  Status FindFaults();
  void NoteChunkFault(const ChunkFault& fault);
  bool IsLeftOut(const ArrayEntry& entry, std::uint64_t chunk,
                 const std::vector<std::uint64_t>& listed) const;
  Status RewriteBoundArrays();
  Status RewriteEnds();
  Status TakeCareOfLostArrays();
  Result<bool> TryRows(const std::string& file, const FileEntry& entry, const ArrayEntry& array,
                       std::uint64_t chunk);
  Status FillHoles(SoundRows& rows);
  Status FillEdgeHoles(SoundRows& rows);
  Result<ArrayFiles> WriteFilled(SoundRows& rows);
  Result<bool> HasCommits() const;
  Status ChangeArrays(const std::function<Status(ArrayChange&)>& steps);
  Status TakeScratch();
  Status RemoveScratch();
  Path Scratch() const { return store_ / kScratchName / "repair"; }
  Status Replace(const std::string& file, std::span<const std::byte> bytes);
  void Lost(std::string what, std::string how) {
    report_.lost.push_back({std::move(what), std::move(how)});
  }

  FileSystem& fs_;
  const Path store_;
  const RepairOptions& options_;
  const JobControl& control_;
  RepairReport report_;
  std::unique_ptr<FileLock> lock_;  // the writer's, from first check to last change
  std::unique_ptr<FileLock> scratch_lock_;
  std::optional<StoreId> id_;
  std::optional<CommitRecord> record_;
  std::optional<Manifest> current_;
  std::string generation_;      // folder of the current generation, relative to the store
  std::set<std::string> done_;  // files that were restored
  std::map<std::string, std::set<std::uint64_t>> lost_chunks_;  // by array
  std::set<std::string> lost_texts_;                            // arrays that lost texts of codes
  ManifestFaults faults_;
  // Chunks of bound arrays that the manifest lacks, with their rows of the type; by array.
  std::map<std::string, std::map<std::uint64_t, std::vector<RowRange>>> unlisted_;
  // Chunks that it should not have; by array. An empty set: only checksums are wrong.
  std::map<std::string, std::set<std::uint64_t>> superfluous_;
  std::vector<std::shared_ptr<FolderEnclosure>> enclosed_;  // quarantine folders
};

/// Returns the store's id from an intact manifest; nullopt if there is none.
Result<std::optional<StoreId>> Repair::IdOfManifests() const {
  constexpr std::size_t kIdOffset = 16;  // storage/FORMAT.md, "Manifest"
  const auto generations = fs_.List(store_ / kGenerationsName);
  if (!generations && !ProvesDamage(generations.error())) return Fail(generations.error());
  if (!generations) return std::optional<StoreId>();
  for (const DirectoryEntry& generation : *generations) {
    if (generation.kind != Kind::kDirectory) continue;
    const Path folder = store_ / kGenerationsName / generation.name;
    RHIZOME_ASSIGN_OR_RETURN(const auto files, fs_.List(folder));
    for (const DirectoryEntry& file : files) {
      if (!ParseNumbered(file.name, kManifestPrefix) || file.kind != Kind::kFile) continue;
      const auto bytes = ReadWholeFile(fs_, folder / file.name, kMaxManifestBytes);
      if (!bytes && !ProvesDamage(bytes.error())) return Fail(bytes.error());
      StoreId id;
      if (!bytes || bytes->size() < kIdOffset + id.bytes.size()) continue;
      std::copy_n(bytes->begin() + kIdOffset, id.bytes.size(), id.bytes.begin());
      if (DecodeManifest(*bytes, id)) return std::optional(id);
    }
  }
  return std::optional<StoreId>();
}

/// Sets id_. Returns the damage of FORMAT, if there is any.
Result<std::optional<Damage>> Repair::ReadFormatState() {
  const auto format = ReadFormat(fs_, store_);
  const bool newer = !format && format.error().code() == StatusCode::kUnsupported;
  const auto info = fs_.Stat(store_ / kFormatName);
  const bool other_kind = info && info->kind != Kind::kFile;
  if (newer || (!format && !ProvesDamage(format.error()) && !other_kind))
    return Fail(format.error());
  RHIZOME_ASSIGN_OR_RETURN(id_, IdOfManifests());
  if (!id_ && !format) return Fail(format.error());
  if (!id_) id_ = *format;
  if (format && *format == *id_) return std::optional<Damage>();
  return std::optional(Damage{std::string(kFormatName), 0,
                              format ? "its store id differs from the store id of the manifests"
                                     : format.error().message()});
}

/// Finds the store's id, and repairs FORMAT if needed. This comes first, because files that contain
/// the store's id are compared with it.
Status Repair::CheckId() {
  RHIZOME_ASSIGN_OR_RETURN(const auto first, ReadFormatState());
  if (!first) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(const auto second, ReadFormatState());
  if (!second)
    return Status::IoError(fmt::format("'{}' {}", (store_ / kFormatName).string(), kDiffers));
  report_.found.push_back(*second);
  return RepairFormat();
}

/// Verifies the store, and a second time if there is damage. Fails if the two results differ, or if
/// any file could not be read.
Result<VerifyReport> Repair::VerifyTwice() {
  const auto look = [&]() -> Result<VerifyReport> {
    auto report = VerifyFiles(fs_, store_, control_);
    if (!report || report->unread.empty() || RHIZOME_MUTANT("shortage is damage")) return report;
    const Unread& first = report->unread.front();
    return Fail(first.why.WithContext(
        fmt::format("'{}' cannot be read, so nothing was repaired (if the disk has lost it "
                    "permanently, replace it by a file with the bytes that remain)",
                    first.file)));
  };
  const auto files_of = [](const VerifyReport& report) {
    std::set<std::string> files;
    for (const Damage& damage : report.damaged) files.insert(damage.file);
    return files;
  };
  RHIZOME_ASSIGN_OR_RETURN(VerifyReport first, look());
  if (first.damaged.empty() || RHIZOME_MUTANT("damage is believed at once")) return first;
  RHIZOME_ASSIGN_OR_RETURN(VerifyReport second, look());
  const auto before = files_of(first);
  const auto now = files_of(second);
  if (before == now) return second;
  std::vector<std::string> differ;
  std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(),
                                std::back_inserter(differ));
  return Fail(Status::IoError(fmt::format("'{}' {}", differ.front(), kDiffers)));
}

/// Reads the commit record and the manifest that it names, as far as they are readable.
Status Repair::FindManifest() {
  const auto fault = [](const Status& status) {
    return ProvesDamage(status) ? Status::Ok() : status;
  };
  const auto catalog = Catalog::Open(fs_, store_ / kCatalogName, Catalog::Mode::kRead, *id_);
  if (!catalog) return fault(catalog.error());
  const auto record = (*catalog)->Current();
  if (!record) return fault(record.error());
  record_ = *record;
  generation_ = fmt::format("{}/{}", kGenerationsName, GenerationName(record->generation));
  auto manifest = ReadCommittedManifest(fs_, store_, *id_, *record);
  if (!manifest) return fault(manifest.error());
  current_ = *std::move(manifest);
  return Status::Ok();
}

/// Returns a new path for the quarantine. Does not reuse the quarantine of an earlier repair.
Path Repair::NewQuarantine() {
  const std::string name = fmt::format("{}.quarantine-{}", store_.string(), TimeStamp());
  Path unused = name;
  for (int i = 2; fs_.Stat(unused); ++i) unused = fmt::format("{}-{}", name, i);
  enclosed_.push_back(fs_.Enclose(unused));
  return unused;
}

/// Returns the paths at which bytes of a file may be: its own, then quarantines, latest first. A
/// repair that was killed may have moved a damaged file away before it put the intact one in its
/// place.
Result<std::vector<Path>> Repair::PlacesOf(const std::string& file) {
  if (RHIZOME_MUTANT("quarantine is forgotten")) return std::vector<Path>{store_ / file};
  std::vector<Path> places;
  const Path parent = store_.has_parent_path() ? store_.parent_path() : Path(".");
  const std::string prefix = store_.filename().string() + ".quarantine-";
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(parent));
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(prefix)) continue;
    // A quarantine may contain links that were in the store.
    enclosed_.push_back(fs_.Enclose(parent / entry.name));
    const auto info = fs_.Stat(parent / entry.name / file);
    if (!info && !ProvesDamage(info.error())) return Fail(info.error());
    if (info) places.push_back(parent / entry.name / file);
  }
  places.push_back(store_ / file);
  std::sort(places.begin(), places.end() - 1);
  std::reverse(places.begin(), places.end());
  return places;
}

/// Links or copies an entry. A link, a pipe or a device can only be linked, because it has no bytes
/// to copy.
Status Repair::GiveSecondName(const Path& from, const Path& to, const FileInfo& info) {
  if (info.kind == Kind::kFile) return LinkOrCopyFile(fs_, from, to, info.size_bytes);
  const Status linked = fs_.LinkFile(from, to);
  if (linked.code() != StatusCode::kUnsupported) return linked;
  return Status::Corruption(fmt::format(
      "'{}' is a link, a pipe or a device, which repair cannot move; remove it", from.string()));
}

/// Moves a file or folder out of the store: creates a second name in the quarantine, then removes
/// the first. With `keep` the first name is kept for now.
Status Repair::Quarantine(const std::string& file, bool keep) {
  const Path from = store_ / file;
  const auto info = fs_.Stat(from);
  if (!info && info.error().code() == StatusCode::kNotFound) return Status::Ok();
  if (!info) return info.error();
  if (info->kind == Kind::kDirectory) {
    std::vector<std::string> inside;
    RHIZOME_RETURN_IF_ERROR(WalkFiles(fs_, from, [&](const std::string& relative, Kind) {
      inside.push_back(file + "/" + relative);
      return Status::Ok();
    }));
    for (const std::string& one : inside) RHIZOME_RETURN_IF_ERROR(Quarantine(one, keep));
    return keep || options_.dry_run ? Status::Ok() : RemoveTree(fs_, from);
  }
  if (report_.quarantine.empty()) report_.quarantine = NewQuarantine().string();
  const Path to = Path(report_.quarantine) / file;
  report_.quarantined.push_back({file, to.string()});
  if (options_.dry_run) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, to.parent_path()));
  if (!fs_.Stat(to)) RHIZOME_RETURN_IF_ERROR(GiveSecondName(from, to, *info));
  RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(to.parent_path()));
  if (keep) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(from));
  return fs_.SyncDirectory(from.parent_path());
}

/// Moves a file that only earlier manifests name out of the store, together with these manifests,
/// since they would refer to a missing file.
Status Repair::QuarantineEarlier(const std::string& file, const std::string& relative) {
  RHIZOME_RETURN_IF_ERROR(Quarantine(file));
  RHIZOME_ASSIGN_OR_RETURN(const auto entries, fs_.List(store_ / generation_));
  for (const DirectoryEntry& entry : entries) {
    const auto version = ParseNumbered(entry.name, kManifestPrefix);
    if (!version || *version >= current_->version) continue;
    const auto manifest = ReadManifestFile(fs_, store_ / generation_ / entry.name, *id_);
    if (!manifest && !ProvesDamage(manifest.error())) return manifest.error();
    if (manifest && manifest->FindFile(relative) != nullptr)
      RHIZOME_RETURN_IF_ERROR(Quarantine(generation_ + "/" + entry.name));
  }
  return Status::Ok();
}

/// Replaces a damaged or missing file by a complete one.
Status Repair::Replace(const std::string& file, std::span<const std::byte> bytes) {
  RHIZOME_RETURN_IF_ERROR(Quarantine(file));
  if (options_.dry_run) return Status::Ok();
  const Path path = store_ / file;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, path.parent_path()));
  RHIZOME_RETURN_IF_ERROR(WriteWholeFile(fs_, path, bytes));
  return fs_.SyncDirectory(path.parent_path());
}

/// Replaces a file if the bytes have the committed hash; otherwise reports it as lost.
Status Repair::Rebuild(const std::string& file, const FileEntry& entry,
                       std::span<const std::byte> bytes, std::string_view from) {
  if (bytes.size() != entry.size_bytes || Xxh3(bytes) != entry.xxh3) {
    Lost(file,
         fmt::format("the bytes derived from {} are not the committed ones; {}", from, kRestore));
    return Status::Ok();
  }
  RHIZOME_RETURN_IF_ERROR(Replace(file, bytes));
  report_.rebuilt.push_back({file, fmt::format("from {}", from)});
  return Status::Ok();
}

/// Replaces a file if these bytes have the committed hash; returns whether they do.
Result<bool> Repair::PutBack(const std::string& file, const FileEntry& entry,
                             std::span<const std::byte> bytes, std::string_view from) {
  if (bytes.size() != entry.size_bytes || Xxh3(bytes) != entry.xxh3) return false;
  RHIZOME_RETURN_IF_ERROR(Replace(file, bytes));
  report_.rebuilt.push_back({file, fmt::format("from {}", from)});
  done_.insert(file);
  return true;
}

std::optional<FileKind> KindOf(std::string_view relative) {
  if (relative.starts_with("topology/")) return FileKind::kPartition;
  if (relative.starts_with("order/")) return FileKind::kOrder;
  if (relative.starts_with("ids/")) return FileKind::kVertexIds;
  return std::nullopt;
}

/// Reads a file, and a second time if that fails, since a device error may be transient.
Result<std::vector<std::byte>> ReadTwice(FileSystem& fs, const Path& path, std::uint64_t most) {
  auto bytes = ReadWholeFile(fs, path, most);
  return bytes || bytes.error().code() == StatusCode::kNotFound ? std::move(bytes)
                                                                : ReadWholeFile(fs, path, most);
}

/// Reads what is left of a file, and pads it with zeros. Returns nullopt if more is missing than
/// the checksums and footer of a section file, which can be derived from the rest.
Result<std::optional<std::vector<std::byte>>> LeftOf(FileSystem& fs, const Path& path,
                                                     const FileEntry& entry) {
  constexpr std::uint64_t kEnds = std::uint64_t{16} << 10;
  auto bytes = ReadTwice(fs, path, entry.size_bytes + kEnds);
  const auto info = fs.Stat(path);
  const bool other_kind = info && info->kind != Kind::kFile;
  if (!bytes && !ProvesDamage(bytes.error()) && !other_kind) return Fail(bytes.error());
  if (!bytes || entry.size_bytes > kEnds + bytes->size() + bytes->size() / 512)
    return std::optional<std::vector<std::byte>>();
  bytes->resize(entry.size_bytes);
  return std::optional(*std::move(bytes));
}

/// Tries to derive a file from its bytes, at each of the paths where they may be.
Result<bool> Repair::TryDerive(const std::string& file, const FileEntry& entry) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Path> places, PlacesOf(file));
  for (const Path& place : places) {
    RHIZOME_ASSIGN_OR_RETURN(const bool done, DeriveFrom(place, file, entry));
    if (done) return true;
  }
  return false;
}

/// Tries to derive a file from the bytes at `place`: by correcting one byte, by rewriting checksums
/// and footer, and by the deriver, which knows the rest of the graph.
Result<bool> Repair::DeriveFrom(const Path& place, const std::string& file,
                                const FileEntry& entry) {
  RHIZOME_ASSIGN_OR_RETURN(auto left, LeftOf(fs_, place, entry));
  if (!left) return false;
  const auto fits = [&] { return Xxh3(*left) == entry.xxh3; };
  if (CorrectByte(*left, entry.crc32c, fits))
    return PutBack(file, entry, *left, "its checksums, which locate the one wrong byte");
  const auto kind = KindOf(entry.path);
  if (!kind) return false;
  std::vector<std::byte> sealed = *left;
  if (ResealSections(sealed, *kind, *id_)) {
    RHIZOME_ASSIGN_OR_RETURN(
        const bool done,
        PutBack(file, entry, sealed, "its sections; only checksums and footer were damaged"));
    if (done) return true;
  }
  if (options_.deriver == nullptr) return false;
  RHIZOME_ASSIGN_OR_RETURN(const auto derived,
                           options_.deriver->Derive({fs_, store_ / generation_, *id_, *current_},
                                                    entry, *std::move(left)));
  return derived ? PutBack(file, entry, derived->bytes, derived->from) : Result<bool>(false);
}

/// Corrects a manifest in which one byte, or only the seal, is wrong. Returns false, and changes
/// nothing, if the result does not have the committed hash.
bool CorrectManifest(const FileEntry& entry, std::vector<std::byte>& bytes) {
  if (bytes.size() != entry.size_bytes || bytes.size() < sizeof(std::uint32_t)) return false;
  const std::vector<std::byte> before = bytes;
  const auto body = std::span(bytes).first(bytes.size() - sizeof(std::uint32_t));
  std::byte* const seal = bytes.data() + body.size();
  const auto fits = [&] { return Xxh3(bytes) == entry.xxh3; };
  if (!CorrectByte(body, LoadLittle<std::uint32_t>(seal), fits)) StoreLittle(seal, Crc32c(body));
  if (fits()) return true;
  bytes = before;
  return false;
}

/// Repairs the committed manifest from its bytes, at each of the paths where they may be: by its
/// seal if one byte is wrong, otherwise from the files that it lists.
Status Repair::RepairManifest() {
  const FileEntry entry{.path = ManifestName(record_->manifest_version),
                        .size_bytes = record_->manifest_bytes,
                        .xxh3 = record_->manifest_xxh3,
                        .crc32c = 0};
  if (entry.size_bytes > kMaxManifestBytes) return Status::Ok();
  const std::string file = generation_ + "/" + entry.path;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Path> places, PlacesOf(file));
  for (const Path& place : places) {
    std::string from;
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ManifestFrom(place, entry, from));
    if (!bytes) continue;
    auto manifest = DecodeManifest(*bytes, *id_);
    if (!manifest) continue;
    RHIZOME_ASSIGN_OR_RETURN(const bool done, PutBack(file, entry, *bytes, from));
    if (!done) continue;
    current_ = *std::move(manifest);
    break;
  }
  return Status::Ok();
}

Result<std::optional<std::vector<std::byte>>> Repair::ManifestFrom(const Path& place,
                                                                   const FileEntry& entry,
                                                                   std::string& from) const {
  auto bytes = ReadTwice(fs_, place, kMaxManifestBytes);
  const auto info = fs_.Stat(place);
  const bool other_kind = info && info->kind != Kind::kFile;
  if (!bytes && !ProvesDamage(bytes.error()) && !other_kind) return Fail(bytes.error());
  from = "its seal, which locates the one wrong byte";
  if (bytes && CorrectManifest(entry, *bytes)) return std::optional(*std::move(bytes));
  from = "the files that it lists, and its remaining bytes";
  return RebuildManifest(fs_, store_ / generation_, *id_, *record_,
                         bytes ? *std::move(bytes) : std::vector<std::byte>(), control_);
}

/// Creates a new catalogue from what is left of the damaged one:
///   1. completes it in the scratch folder, before anything is moved (SalvageInto); if an earlier
///      repair was killed after that, its catalogue is found there and used;
///   2. moves CURRENT, then the rest of the damaged catalogue, to quarantine;
///   3. puts the new catalogue in its place, CURRENT last.
Status Repair::RepairCatalog() {
  const std::string name(kCatalogName);
  if (options_.dry_run) {
    report_.rebuilt.push_back(
        {name, "from the entries that RocksDB can recover, or else from a manifest"});
    Lost("delta", "commits that RocksDB cannot recover, if there are any");
    return Status::Ok();
  }
  const Path fresh = Scratch() / "fresh";
  // While CURRENT exists nothing was moved, and it is better to start over.
  const auto current = fs_.Stat(store_ / name / kCatalogCurrent);
  const bool begun = !current && current.error().code() == StatusCode::kNotFound;
  bool made_before = false;
  if (begun) {
    RHIZOME_ASSIGN_OR_RETURN(made_before, HoldsCommit(fs_, *id_, fresh));
  }
  if (made_before) {
    report_.rebuilt.push_back({name, "from the catalogue that an interrupted repair had created"});
    Lost("delta",
         fmt::format("commits that could not be recovered, if there were any; {}", kRestore));
  } else {
    RHIZOME_RETURN_IF_ERROR(TakeScratch());
    RHIZOME_ASSIGN_OR_RETURN(const bool made, SalvageInto(fresh));
    if (!made) return RemoveScratch();
  }
  // Without CURRENT, remains of the old or the new catalogue do not count as a catalogue.
  RHIZOME_RETURN_IF_ERROR(Quarantine(name + "/" + std::string(kCatalogCurrent)));
  RHIZOME_RETURN_IF_ERROR(Quarantine(name));
  RHIZOME_RETURN_IF_ERROR(PutCatalog(fs_, fresh, store_ / name));
  return RemoveScratch();
}

/// Creates an empty folder below scratch/, with a job's lock, as other jobs may use scratch/
/// concurrently. An existing folder is removed and created again.
Status Repair::TakeScratch() {
  for (int i = 0; i < 2; ++i) {
    scratch_lock_.reset();
    RHIZOME_ASSIGN_OR_RETURN(scratch_lock_, ClaimJobFolder(fs_, Scratch()));
    if (i == 0) RHIZOME_RETURN_IF_ERROR(RemoveJobFolder(fs_, Scratch()));
  }
  return Status::Ok();
}

Status Repair::RemoveScratch() {
  const bool all = RHIZOME_MUTANT("repair clears scratch");
  RHIZOME_RETURN_IF_ERROR(all ? RemoveTree(fs_, store_ / kScratchName)
                              : RemoveJobFolder(fs_, Scratch()));
  scratch_lock_.reset();
  return Status::Ok();
}

/// Creates the new catalogue in the folder `fresh`. Returns false if there is neither a commit
/// record nor an intact manifest.
Result<bool> Repair::SalvageInto(const Path& fresh) {
  const std::string name(kCatalogName);
  RHIZOME_ASSIGN_OR_RETURN(CatalogSalvage salvage,
                           SalvageCatalog(fs_, store_, *id_, fresh.parent_path() / name));
  if (!salvage.record) {
    Lost(name, fmt::format("it records which files are current, and no manifest is intact; {}",
                           kRestore));
    return false;
  }
  const CommitRecord& record = *salvage.record;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, fresh));
  RHIZOME_ASSIGN_OR_RETURN(const auto catalog,
                           Catalog::Open(fs_, fresh, Catalog::Mode::kCreate, *id_));
  if (salvage.from_catalog) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t last,
                             CopyDelta(*salvage.left, record.base_sequence, *catalog));
    report_.rebuilt.push_back({name, "from the entries that RocksDB could recover"});
    Lost("delta", fmt::format("commits after {}, if there were any; {}",
                              std::max(last, record.base_sequence), kRestore));
  } else {
    report_.rebuilt.push_back({name, fmt::format("from manifest {} of generation {}",
                                                 record.manifest_version, record.generation)});
    Lost("delta", fmt::format("all writes since generation {} was created; {}", record.generation,
                              kRestore));
  }
  RHIZOME_RETURN_IF_ERROR(catalog->Commit(record));
  RHIZOME_RETURN_IF_ERROR(catalog->Close());
  RHIZOME_RETURN_IF_ERROR(fs_.SyncDirectory(fresh));
  return true;
}

Status Repair::RepairFormat() {
  const std::string name(kFormatName);
  const std::string text = FormatText(*id_);
  RHIZOME_RETURN_IF_ERROR(Replace(name, std::as_bytes(std::span(text))));
  report_.rebuilt.push_back({name, "from a manifest"});
  return Status::Ok();
}

/// Computes the bytes of a sidecar's chunk from chunks of the array that have the committed hash.
Result<std::vector<std::byte>> Repair::SumsOf(const ArrayEntry& rows, const ArrayEntry& sidecar,
                                              std::uint64_t chunk) const {
  // zarr.json may be damaged too, so the chunks are read using only the manifest.
  const std::uint64_t first = chunk * sidecar.chunk_rows;
  const std::uint64_t count = std::min(sidecar.chunk_rows, rows.rows - first);
  const std::uint64_t row_bytes = rows.row_bytes();
  std::vector<std::uint32_t> sums(sidecar.chunk_rows);
  std::vector<std::byte> bytes;
  std::uint64_t loaded = UINT64_MAX;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = first + i;
    const std::uint64_t from = row / rows.chunk_rows;
    if (from != loaded) {
      const FileEntry* file = current_->FindFile(ChunkPath(rows.name, from));
      if (file == nullptr) return Fail(Status::Corruption("a chunk is not in the manifest"));
      auto chunk_bytes = ReadTwice(fs_, store_ / generation_ / file->path, kMaxChunkBytes);
      // The array must not be given up because of a chunk that was intact before and cannot be read
      // now.
      const bool fault = !chunk_bytes && !ProvesDamage(chunk_bytes.error());
      if (fault || (!chunk_bytes && !WasFound(file->path))) return Fail(chunk_bytes.error());
      if (!chunk_bytes || chunk_bytes->size() != file->size_bytes ||
          Xxh3(*chunk_bytes) != file->xxh3)
        return Fail(Status::Corruption(fmt::format("'{}' is damaged too", file->path)));
      bytes = *std::move(chunk_bytes);
      loaded = from;
    }
    sums[i] =
        RowCrc(rows.array_id, row,
               std::span(bytes).subspan((row - from * rows.chunk_rows) * row_bytes, row_bytes));
  }
  const auto out = std::as_bytes(std::span(sums));
  return std::vector<std::byte>(out.begin(), out.end());
}

/// Returns whether a file of the current generation is among the damaged ones.
bool Repair::WasFound(const std::string& relative) const {
  const std::string file = generation_ + "/" + relative;
  return std::any_of(report_.found.begin(), report_.found.end(),
                     [&](const Damage& damage) { return damage.file == file; });
}

/// Returns, in a dry run, whether some chunks of the array are damaged and all of them would be
/// repaired. Must be called after the array's chunks were handled.
bool Repair::WillBePutRight(const std::string& array) const {
  const std::string folder = generation_ + "/" + ArrayFolder(array) + "/";
  const auto first = done_.lower_bound(folder);
  return !lost_chunks_.contains(array) && first != done_.end() && first->starts_with(folder);
}

Status Repair::RebuildSidecar(const std::string& file, const FileEntry& entry,
                              const ArrayEntry& sidecar, std::uint64_t chunk) {
  const std::string_view name = sidecar.name;
  const std::string array(name.substr(0, name.size() - kSidecarSuffix.size()));
  const ArrayEntry* rows = FindStoredArray(current_->arrays, array);
  const bool fits = rows != nullptr && rows->rows == sidecar.rows && chunk < sidecar.chunk_count();
  const auto bytes =
      fits ? SumsOf(*rows, sidecar, chunk)
           : Result<std::vector<std::byte>>(Fail(Status::Corruption("its array does not exist")));
  if (bytes) return Rebuild(file, entry, *bytes, "the rows");
  if (bytes.error().code() != StatusCode::kCorruption) return bytes.error();
  if (options_.dry_run && WillBePutRight(array)) {
    report_.rebuilt.push_back({file, "from the rows, once they are repaired"});
    return Status::Ok();
  }
  lost_chunks_[array];  // without its checksums the array cannot be read row by row
  return Status::Ok();
}

Status Repair::RepairArrayFile(const std::string& file, const std::string& relative) {
  const FileEntry* entry = current_->FindFile(relative);
  const std::string name = ArrayOf(relative);
  const ArrayEntry* array = FindStoredArray(current_->arrays, name);
  if (entry == nullptr) return Quarantine(file);
  if (array == nullptr) return RepairCoordinate(file, *entry, name);
  if (relative.starts_with(kTextsPrefix)) return RepairTexts(file, *entry, *array);
  if (relative.ends_with("/zarr.json")) {
    const std::string text = EncodeArrayJson(*array);
    return Rebuild(file, *entry, std::as_bytes(std::span(text)), "the manifest");
  }
  const auto chunk = ChunkOfFile(relative);
  if (!chunk) return Quarantine(file);
  RHIZOME_ASSIGN_OR_RETURN(const bool done, TryDerive(file, *entry));
  if (done) return Status::Ok();
  if (name.ends_with(kSidecarSuffix)) return RebuildSidecar(file, *entry, *array, *chunk);
  if (array->layout == ArrayLayout::kRow && *chunk < array->chunk_count()) {
    RHIZOME_ASSIGN_OR_RETURN(const bool from_rows, TryRows(file, *entry, *array, *chunk));
    if (from_rows) return Status::Ok();
  }
  lost_chunks_[name].insert(*chunk);
  return Status::Ok();
}

/// Repairs a file of an array's dictionary of texts. zarr.json follows from the array's attributes.
Status Repair::RepairTexts(const std::string& file, const FileEntry& entry,
                           const ArrayEntry& array) {
  if (entry.path == TextsJsonPath(array.name)) {
    if (const auto shape = ShapeOfTexts(array)) {
      const std::string text = EncodeTextsJson(*shape);
      return Rebuild(file, entry, std::as_bytes(std::span(text)), "the manifest");
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(const bool done, TryDerive(file, entry));
  if (done) return Status::Ok();
  lost_chunks_[array.name];
  lost_texts_.insert(array.name);
  return Status::Ok();
}

/// Repairs a chunk all of whose rows are intact; the rest of its file is zeros.
Result<bool> Repair::TryRows(const std::string& file, const FileEntry& entry,
                             const ArrayEntry& array, std::uint64_t chunk) {
  RHIZOME_ASSIGN_OR_RETURN(
      auto rows, SoundRows::Find(fs_, store_ / generation_, *current_, array.name, {chunk}));
  if (!rows.lost().empty()) return false;
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, rows.WholeFile(chunk));
  return PutBack(file, entry, bytes, "its rows, whose checksums match");
}

/// Repairs a file of a coordinate, which can be derived from order and ids.
Status Repair::RepairCoordinate(const std::string& file, const FileEntry& entry,
                                const std::string& name) {
  for (const Coordinate& coordinate : CoordinatesOf(*current_)) {
    if (coordinate.name != name) continue;
    if (entry.path == CoordinateJsonPath(coordinate)) {
      const std::string text = EncodeCoordinateJson(coordinate, current_->info);
      return Rebuild(file, entry, std::as_bytes(std::span(text)), "the manifest");
    }
    RHIZOME_ASSIGN_OR_RETURN(bool done, TryDerive(file, entry));
    if (!done && options_.deriver != nullptr) {
      // The deriver does not need the bytes of the file itself.
      RHIZOME_ASSIGN_OR_RETURN(
          const auto derived,
          options_.deriver->Derive({fs_, store_ / generation_, *id_, *current_}, entry, {}));
      if (derived) {
        RHIZOME_ASSIGN_OR_RETURN(done, PutBack(file, entry, derived->bytes, derived->from));
      }
    }
    if (!done)
      Lost(file,
           fmt::format(
               "it derives from the vertex order and the external ids, which are lost too; {}",
               kRestore));
    return Status::Ok();
  }
  return Quarantine(file);
}

Status Repair::RepairInGeneration(const std::string& file, const std::string& relative) {
  if (relative == kPinName) {
    RHIZOME_RETURN_IF_ERROR(Replace(file, {}));
    report_.rebuilt.push_back({file, "as an empty file"});
    return Status::Ok();
  }
  if (!current_ ||
      (relative.starts_with(kManifestPrefix) && relative == ManifestName(current_->version))) {
    Lost(file, fmt::format("it lists the generation's files, and cannot be derived from them and "
                           "its remaining bytes; {}",
                           kRestore));
    return Status::Ok();
  }
  // The file is an earlier manifest, or only such manifests name it: readers of that version cannot
  // use it.
  if (relative.starts_with(kManifestPrefix)) return Quarantine(file);
  const FileEntry* entry = current_->FindFile(relative);
  if (entry == nullptr) return QuarantineEarlier(file, relative);
  if (relative == kGroupPath) {
    std::string text = EncodeGroupJson(current_->generation, CoordinatesOf(*current_),
                                       current_->info.vertex_types);
    if (text.size() != entry->size_bytes) text = EncodeGroupJson(0, {}, {});
    return Rebuild(file, *entry, std::as_bytes(std::span(text)), "the manifest");
  }
  if (!ArrayOf(relative).empty()) return RepairArrayFile(file, relative);
  RHIZOME_ASSIGN_OR_RETURN(const bool done, TryDerive(file, *entry));
  if (!done) Lost(file, fmt::format("it cannot be derived from other files; {}", kRestore));
  return Status::Ok();
}

Status Repair::RepairOne(const Damage& damage) {
  RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "repair", .detail = damage.file}));
  const std::string& file = damage.file;
  if (file == kFormatName) return RepairFormat();
  if (file == kCatalogName) return Status::Ok();  // handled by RepairRoots
  if (file == kGenerationsName) {
    Lost(file, fmt::format("it records which files are current; {}", kRestore));
    return Status::Ok();
  }
  if (!generation_.empty() && file == generation_) {
    Lost(file, fmt::format("the current generation; {}", kRestore));
    return Status::Ok();
  }
  if (!generation_.empty() && file.starts_with(generation_ + "/"))
    return RepairInGeneration(file, file.substr(generation_.size() + 1));
  // Without a catalogue it is unknown which generation is current, so none is changed.
  if (generation_.empty() && file.starts_with(kGenerationsName)) {
    Lost(file, fmt::format("the current generation is unknown; {}", kRestore));
    return Status::Ok();
  }
  // Nothing depends on an earlier generation. Without manifests, it is removed by the next opening
  // for writing.
  const Path path(file);
  if (file.starts_with(kGenerationsName) && path.begin() != path.end()) {
    const std::string name = std::next(path.begin())->string();
    const auto generation = ParseNumbered(name, "");
    if (record_ && generation && *generation < record_->generation)
      return QuarantineManifests(fmt::format("{}/{}", kGenerationsName, name));
  }
  return Quarantine(file);
}

Status Repair::QuarantineManifests(const std::string& folder) {
  const auto entries = fs_.List(store_ / folder);
  if (!entries) return entries.error();
  for (const DirectoryEntry& entry : *entries)
    if (entry.name.starts_with(kManifestPrefix))
      RHIZOME_RETURN_IF_ERROR(Quarantine(folder + "/" + entry.name));
  return Status::Ok();
}

/// Moves all files of an array that will be dropped into the quarantine, intact or not.
Status Repair::QuarantineArray(const std::string& array) {
  const std::string sidecar = SidecarName(array);
  for (const FileEntry& file : current_->files) {
    const std::string_view owner = ArrayOfFile(file.path);
    if (owner == array || owner == sidecar)
      RHIZOME_RETURN_IF_ERROR(Quarantine(generation_ + "/" + file.path, /*keep=*/true));
  }
  return Status::Ok();
}

/// Compares the manifest with order and topology, twice if it is wrong.
Status Repair::FindFaults() {
  if (options_.deriver == nullptr || !current_) return Status::Ok();
  const FileDeriver::Source source{fs_, store_ / generation_, *id_, *current_};
  RHIZOME_ASSIGN_OR_RETURN(faults_, options_.deriver->FindFaults(source));
  if (faults_ == ManifestFaults()) return Status::Ok();
  const std::string manifest = generation_ + "/" + ManifestName(current_->version);
  RHIZOME_ASSIGN_OR_RETURN(const ManifestFaults second, options_.deriver->FindFaults(source));
  if (second != faults_)
    return Status::IoError(fmt::format("'{}' {}", (store_ / manifest).string(), kDiffers));
  for (const ChunkFault& fault : faults_.chunks) NoteChunkFault(fault);
  if (faults_.ends) report_.found.push_back({manifest, 0, faults_.what_ends});
  return Status::Ok();
}

/// Decides what to do about a wrong chunk. The checksums of a sidecar follow from the rows.
void Repair::NoteChunkFault(const ChunkFault& fault) {
  report_.found.push_back({generation_ + "/" + fault.file, 0, fault.what});
  const std::string_view name = fault.array;
  if (name.ends_with(kSidecarSuffix)) {
    superfluous_[std::string(name.substr(0, name.size() - kSidecarSuffix.size()))];
  } else if (fault.rows.empty()) {
    superfluous_[fault.array].insert(fault.chunk);
  } else {
    unlisted_[fault.array][fault.chunk] = fault.rows;
    lost_chunks_[fault.array];
  }
}

/// Returns whether a chunk of a bound array has no row of its type. `listed` are the chunks that
/// the manifest lists.
bool Repair::IsLeftOut(const ArrayEntry& entry, std::uint64_t chunk,
                       const std::vector<std::uint64_t>& listed) const {
  if (BoundType(entry).empty()) return false;
  const auto added = unlisted_.find(entry.name);
  if (added != unlisted_.end() && added->second.contains(chunk)) return false;
  const auto removed = superfluous_.find(entry.name);
  if (removed != superfluous_.end() && removed->second.contains(chunk)) return true;
  return !std::ranges::binary_search(listed, chunk);
}

/// Rewrites the bound arrays that lost nothing, with exactly the chunks that they should have.
Status Repair::RewriteBoundArrays() {
  for (const auto& [array, chunks] : superfluous_) {
    if (lost_chunks_.contains(array)) continue;
    const ArrayEntry& entry = *FindStoredArray(current_->arrays, array);
    for (const std::uint64_t chunk : chunks)
      RHIZOME_RETURN_IF_ERROR(
          Quarantine(generation_ + "/" + ChunkPath(array, chunk, entry.form), /*keep=*/true));
    report_.rebuilt.push_back({fmt::format("array '{}'", ShownName(array)),
                               "with the chunks that have rows of its type"});
    if (options_.dry_run) continue;
    RHIZOME_ASSIGN_OR_RETURN(
        auto rows, SoundRows::Find(fs_, store_ / generation_, *current_, array, /*damaged=*/{}));
    RHIZOME_RETURN_IF_ERROR(FillHoles(rows));
  }
  return Status::Ok();
}

/// Commits the right ends of the edge types.
Status Repair::RewriteEnds() {
  if (!faults_.ends) return Status::Ok();
  report_.rebuilt.push_back(
      {generation_ + "/" + ManifestName(current_->version), "with the ends that the edges have"});
  if (options_.dry_run) return Status::Ok();
  return ChangeArrays([&](ArrayChange& change) { return change.SetEdgeEnds(*faults_.ends); });
}

/// Writes the array to the scratch folder, with the values of FillLostRows in the lost rows.
Result<ArrayFiles> Repair::WriteFilled(SoundRows& rows) {
  ArrayEntry entry = rows.entry();
  const std::string array = entry.name;
  std::string lost = DescribeRows(rows.lost());
  if (lost.size() > kMaxAttributeBytes) lost = fmt::format("{} ranges of rows", rows.lost().size());
  if (!lost.empty()) {
    std::erase_if(entry.attributes,
                  [](const auto& one) { return one.first == kLostRowsAttribute; });
    entry.attributes.emplace_back(kLostRowsAttribute, lost);
    std::sort(entry.attributes.begin(), entry.attributes.end());
  }
  if (lost_texts_.contains(array)) RemoveTexts(entry);
  RHIZOME_RETURN_IF_ERROR(TakeScratch());
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, ChunkArrayWriter::Create(fs_, Scratch(), entry));
  std::vector<std::byte> bytes;
  const auto listed = ListedChunks(rows.entry(), current_->files);
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control_.Report({.phase = "fill holes",
                                             .done = chunk,
                                             .total = entry.chunk_count(),
                                             .detail = ShownName(array)}));
    if (IsLeftOut(entry, chunk, listed)) {
      RHIZOME_RETURN_IF_ERROR(writer->LeaveOut(chunk));
      continue;
    }
    bytes.resize(std::min(entry.chunk_rows, entry.rows - chunk * entry.chunk_rows) *
                 entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(rows.ReadChunk(chunk, bytes));
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, bytes));
  }
  ArrayFiles written;
  RHIZOME_ASSIGN_OR_RETURN(written.files, writer->Finish());
  written.arrays = writer->arrays();
  return written;
}

/// Replaces an array of vertices by one without holes.
Status Repair::FillHoles(SoundRows& rows) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayFiles written, WriteFilled(rows));
  RHIZOME_RETURN_IF_ERROR(ChangeArrays([&](ArrayChange& change) -> Status {
    RHIZOME_RETURN_IF_ERROR(
        change.Replace(rows.entry().name, {written.arrays, Scratch(), written.files}));
    return Status::Ok();
  }));
  return RemoveScratch();
}

/// Fills the holes of an array of edges. It has no versions, so its lost files are replaced by
/// others with the same paths. The manifest is committed first: after a crash in between, these
/// files are still damaged, and the next repair finds the same holes.
Status Repair::FillEdgeHoles(SoundRows& rows) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayFiles written, WriteFilled(rows));
  RHIZOME_RETURN_IF_ERROR(ChangeArrays(
      [&](ArrayChange& change) { return change.PatchLost(written.arrays, written.files); }));
  for (const FileEntry& file : written.files) {
    const FileEntry* const before = current_->FindFile(file.path);
    if (before != nullptr && *before == file) continue;
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                             ReadWholeFile(fs_, Scratch() / file.path, file.size_bytes));
    RHIZOME_RETURN_IF_ERROR(Replace(generation_ + "/" + file.path, bytes));
  }
  return RemoveScratch();
}

/// Returns whether there are commits since the last compaction.
Result<bool> Repair::HasCommits() const {
  RHIZOME_ASSIGN_OR_RETURN(const auto catalog,
                           Catalog::Open(fs_, store_ / kCatalogName, Catalog::Mode::kRead, *id_));
  RHIZOME_ASSIGN_OR_RETURN(const CommitRecord record, catalog->Current());
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t last, catalog->LastDelta());
  return last > record.base_sequence;
}

/// Changes arrays under the lock that was held when the damage was found, so that the generation is
/// the same.
Status Repair::ChangeArrays(const std::function<Status(ArrayChange&)>& steps) {
  if (RHIZOME_MUTANT("repair lets go of the lock")) {
    lock_.reset();
    return ArrayChange::Run(fs_, store_, {}, steps);
  }
  LockIsHeld held(fs_, store_ / kLockName);
  return ArrayChange::Run(held, store_, {.generation = current_->generation, .id = id_}, steps);
}

/// Returns what is lost of an array, and what the repair does about it.
std::string Repair::HowLost(const std::string& array, const std::set<std::uint64_t>& chunks,
                            const SoundRows& rows, bool fill) const {
  const std::string_view dropped = "the array was dropped, and its files moved to quarantine";
  if (lost_texts_.contains(array) && rows.lost().empty())
    return fmt::format("texts of its codes lost; {}",
                       fill ? "the codes are kept as integers without texts"
                            : fmt::format("{} (`fill_holes` keeps its codes)", dropped));
  const std::string which = chunks.empty() && rows.lost().empty()
                                ? "its row checksums"
                                : "rows " + DescribeRows(rows.lost());
  const std::string_view filled =
      IsOfEdges(rows.entry())
          ? "these edges now have no value (NaN, null or 0), and are listed in lost_rows"
          : "they now count as rows that were never put, and are listed in lost_rows";
  return fmt::format(
      "{} lost; {}", which,
      fill ? std::string(filled) : fmt::format("{} (`fill_holes` keeps its other rows)", dropped));
}

Status Repair::TakeCareOfLostArrays() {
  const auto is_of_edges = [this](const auto& lost) {
    return IsOfEdges(*FindStoredArray(current_->arrays, lost.first));
  };
  bool has_commits = false;
  if (std::ranges::any_of(lost_chunks_, is_of_edges)) {
    RHIZOME_ASSIGN_OR_RETURN(has_commits, HasCommits());
  }
  std::vector<std::string> drop;
  for (const auto& [array, chunks] : lost_chunks_) {
    const bool edges = IsOfEdges(*FindStoredArray(current_->arrays, array));
    // The commits have values of all edge attributes by position, so none of them can be dropped.
    const bool commits = edges && has_commits;
    const bool fill = commits || (options_.fill_holes && !(edges && lost_texts_.contains(array)));
    if (!(edges && fill)) RHIZOME_RETURN_IF_ERROR(QuarantineArray(array));
    RHIZOME_ASSIGN_OR_RETURN(auto rows,
                             SoundRows::Find(fs_, store_ / generation_, *current_, array, chunks));
    for (const auto& [_, unlisted] : unlisted_[array]) rows.LoseRows(unlisted);
    if (commits && lost_texts_.contains(array)) {
      Lost(fmt::format("array '{}'", ShownName(array)), std::string(kTextsOfCommits));
      continue;
    }
    Lost(fmt::format("array '{}'", ShownName(array)), HowLost(array, chunks, rows, fill));
    if (options_.dry_run) continue;
    if (!fill)
      drop.push_back(array);
    else if (edges)
      RHIZOME_RETURN_IF_ERROR(FillEdgeHoles(rows));
    else
      RHIZOME_RETURN_IF_ERROR(FillHoles(rows));
  }
  if (drop.empty()) return Status::Ok();
  return ChangeArrays([&](ArrayChange& change) -> Status {
    for (const std::string& array : drop) RHIZOME_RETURN_IF_ERROR(change.DropLost(array));
    return Status::Ok();
  });
}

/// Moves links, pipes and devices out of the catalogue. Returns whether it is intact now.
Result<bool> Repair::MoveSpecial() {
  std::vector<std::string> special;
  const Status walked =
      WalkFiles(fs_, store_ / kCatalogName, [&](const std::string& name, Kind kind) {
        if (kind == Kind::kOther) special.push_back(fmt::format("{}/{}", kCatalogName, name));
        return Status::Ok();
      });
  if (!walked.ok() && !ProvesDamage(walked)) return Fail(walked);
  for (const std::string& file : special) RHIZOME_RETURN_IF_ERROR(Quarantine(file));
  if (special.empty() || options_.dry_run) return false;
  const auto catalog = Catalog::Open(fs_, store_ / kCatalogName, Catalog::Mode::kRead, *id_);
  Status status = catalog ? (*catalog)->VerifyChecksums() : catalog.error();
  if (status.ok()) {
    const auto record = (*catalog)->Current();
    status = record ? Status::Ok() : record.error();
  }
  if (!status.ok() && !ProvesDamage(status)) return Fail(status);
  for (const std::string& file : special)
    if (status.ok()) report_.rebuilt.push_back({file, "by moving away links, pipes and devices"});
  return status.ok();
}

/// Repairs the catalogue and the manifest that it names, without which no other file can be
/// checked. Returns whether either was repaired.
Result<bool> Repair::RepairRoots(const VerifyReport& before) {
  const auto damaged = [&](std::string_view file) {
    return std::any_of(before.damaged.begin(), before.damaged.end(),
                       [&](const Damage& damage) { return damage.file == file; });
  };
  const bool catalog = damaged(kCatalogName);
  if (catalog) {
    RHIZOME_ASSIGN_OR_RETURN(const bool sound, MoveSpecial());
    if (!sound) RHIZOME_RETURN_IF_ERROR(RepairCatalog());
  }
  RHIZOME_RETURN_IF_ERROR(FindManifest());
  const bool manifest = record_ && !current_;
  if (manifest) RHIZOME_RETURN_IF_ERROR(RepairManifest());
  return !options_.dry_run && current_ && (catalog || manifest);
}

/// Repairs in these steps:
///   1. Checks that this is a store, and takes the writer's lock.
///   2. Finds the store's id, and repairs FORMAT (CheckId).
///   3. Verifies the store twice (VerifyTwice).
///   4. Repairs the catalogue and the manifest (RepairRoots); if they were damaged, verifies again,
///      now that the set of expected files is known.
///   5. Repairs the other files (RepairOne): chunks before row checksums, which are derived from
///      them, and coordinates last, which are derived from order and ids.
///   6. Compares the manifest with order and topology (FindFaults), and rewrites bound arrays and
///      the ends of edge types that are wrong (RewriteBoundArrays, RewriteEnds).
///   7. Drops arrays that lost rows, or fills their holes (TakeCareOfLostArrays).
///   8. Releases the lock, and verifies the store for the report.
Result<RepairReport> Repair::Run() {
  const auto info = fs_.Stat(store_);
  if (!info) return Fail(info.error());
  // Taking the lock creates a file, which must not appear in a folder that was named by mistake.
  const auto format = fs_.Stat(store_ / kFormatName);
  const auto generations = fs_.Stat(store_ / kGenerationsName);
  for (const auto* one : {&format, &generations})
    if (!*one && one->error().code() != StatusCode::kNotFound) return Fail(one->error());
  if (!format && !generations)
    return Fail(Status::NotFound(fmt::format("no Rhizome store at '{}'", store_.string())));
  RHIZOME_ASSIGN_OR_RETURN(lock_, LockForWriting(fs_, store_, options_.wait));
  RHIZOME_RETURN_IF_ERROR(CheckId());
  std::set<std::string> seen;  // files that were handled; a file may have several damages
  for (const Damage& damage : report_.found) seen.insert(damage.file);
  if (options_.dry_run && !report_.found.empty()) {
    report_.after.damaged = report_.found;  // the rest can be checked only with the right id
    return std::move(report_);
  }
  RHIZOME_ASSIGN_OR_RETURN(VerifyReport before, VerifyTwice());
  report_.found.insert(report_.found.end(), before.damaged.begin(), before.damaged.end());
  RHIZOME_ASSIGN_OR_RETURN(const bool again, RepairRoots(before));
  if (again) {
    // Only now the set of expected files is known.
    RHIZOME_ASSIGN_OR_RETURN(before, VerifyTwice());
    const std::vector<Damage> first = report_.found;
    for (const Damage& damage : before.damaged) {
      const auto same = [&](const Damage& one) { return one.file == damage.file; };
      if (std::none_of(first.begin(), first.end(), same)) report_.found.push_back(damage);
    }
  }
  // Row checksums are derived from chunks, so chunks come first.
  const auto is_sidecar = [](const std::string& file) {
    return Path(file).parent_path().native().ends_with(kSidecarSuffix);
  };
  std::vector<Damage> in_order = report_.found;
  std::stable_partition(in_order.begin(), in_order.end(),
                        [&](const Damage& damage) { return !is_sidecar(damage.file); });
  // Coordinates are derived from order and ids, so they come last.
  const auto is_coordinate = [&](const std::string& file) {
    const std::string prefix = generation_ + "/";
    const bool there = current_ && !generation_.empty() && file.starts_with(prefix);
    const std::string array = there ? ArrayOf(file.substr(prefix.size())) : std::string();
    return !array.empty() && FindStoredArray(current_->arrays, array) == nullptr;
  };
  std::stable_partition(in_order.begin(), in_order.end(),
                        [&](const Damage& damage) { return !is_coordinate(damage.file); });
  for (const Damage& damage : in_order) {
    const bool first = seen.insert(damage.file).second;
    if (first && !done_.contains(damage.file)) RHIZOME_RETURN_IF_ERROR(RepairOne(damage));
  }
  RHIZOME_RETURN_IF_ERROR(FindFaults());
  RHIZOME_RETURN_IF_ERROR(RewriteBoundArrays());
  RHIZOME_RETURN_IF_ERROR(RewriteEnds());
  if (!lost_chunks_.empty()) RHIZOME_RETURN_IF_ERROR(TakeCareOfLostArrays());
  lock_.reset();
  if (options_.dry_run) {
    report_.after = before;
    return std::move(report_);
  }
  RHIZOME_ASSIGN_OR_RETURN(report_.after, VerifyFiles(fs_, store_, control_));
  return std::move(report_);
}

}  // namespace

Result<RepairReport> RepairStore(FileSystem& fs, const Path& store, const RepairOptions& options,
                                 const JobControl& control) try {
  return WithAbsolute(fs, store, [&](const Path& folder) -> Result<RepairReport> {
    const auto enclosed = fs.Enclose(folder);
    static_cast<void>(HoldFolder(enclosed));  // Run has the better message for an absent store
    RHIZOME_RETURN_IF_ERROR(CheckScratch(fs, folder));
    RHIZOME_ASSIGN_OR_RETURN(RepairReport report, Repair(fs, folder, options, control).Run());
    // The path of the quarantine is reported in the form in which the caller wrote the store's
    // path.
    const auto as_written = [&](std::string& path) {
      if (path.starts_with(folder.string()))
        path.replace(0, folder.string().size(), store.string());
    };
    as_written(report.quarantine);
    for (RepairNote& note : report.quarantined) as_written(note.how);
    return report;
  });
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
