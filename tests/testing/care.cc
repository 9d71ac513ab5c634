#include "testing/care.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rhizome/storage/backup.h"
#include "rhizome/storage/catalog.h"
#include "rhizome/storage/damage.h"
#include "rhizome/storage/forwarding_file_system.h"
#include "rhizome/storage/job_folder.h"
#include "rhizome/storage/little_endian.h"
#include "rhizome/storage/repair.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/verify.h"
#include "storage/array_fixture.h"

namespace rhizome::testing {
namespace {

constexpr const char* kRows = "generations/000001/arrays/feat/c.0.0";

FileSystem& Disk() { return FileSystem::Posix(); }

/// A file system whose operations can be watched, and refused.
class Watched final : public ForwardingFileSystem {
 public:
  using Watch = std::function<Status(const Path& path)>;
  explicit Watched(Watch watch) : ForwardingFileSystem(Disk()), watch_(std::move(watch)) {}

  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::OpenRead(path, options);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const Path& path) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::CreateFile(path);
  }
  Result<std::vector<DirectoryEntry>> List(const Path& path) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::List(path);
  }
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    RHIZOME_RETURN_IF_ERROR(watch_(path));
    return ForwardingFileSystem::Lock(path, mode, content);
  }

 private:
  const Watch watch_;
};

/// A file that returns one byte wrongly.
class WrongByte final : public ReadableFile {
 public:
  explicit WrongByte(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    auto got = file_->ReadAt(offset_bytes, out);
    if (got && offset_bytes == 0 && *got > 0) out.front() ^= std::byte{1};
    return got;
  }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  const Path& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<ReadableFile> file_;
};

/// Returns one file's bytes wrongly, the first time only.
class WrongOnce final : public ForwardingFileSystem {
 public:
  WrongOnce(Path file) : ForwardingFileSystem(Disk()), file_(std::move(file)) {}
  Result<std::unique_ptr<ReadableFile>> OpenRead(const Path& path,
                                                 const ReadOptions& options) override {
    if (path != file_ || std::exchange(done_, true))
      return ForwardingFileSystem::OpenRead(path, options);
    RHIZOME_ASSIGN_OR_RETURN(auto file, ForwardingFileSystem::OpenRead(path, {}));
    return std::make_unique<WrongByte>(std::move(file));
  }

 private:
  const Path file_;
  bool done_ = false;
};

/// Starts a writer whenever a verification takes the writer's lock to see whether there is one.
class WriterAtEveryLook final : public ForwardingFileSystem {
 public:
  WriterAtEveryLook(Path store, std::atomic<int>& writers)
      : ForwardingFileSystem(Disk()), store_(std::move(store)), writers_(writers) {}
  ~WriterAtEveryLook() override { Join(); }

  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    if (path != store_ / "LOCK") return ForwardingFileSystem::Lock(path, mode, content);
    Join();  // one writer at a time
    auto lock = ForwardingFileSystem::Lock(path, mode, content);
    ++count_;
    writer_ = std::thread(
        [this] { writers_ += Store::Open(Disk(), store_, Store::Mode::kWrite).has_value(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return lock;
  }

  /// Returns how often the lock was tried; all writers have ended.
  int count() {
    Join();
    return count_;
  }

 private:
  void Join() {
    if (writer_.joinable()) writer_.join();
  }
  const Path store_;
  std::atomic<int>& writers_;
  int count_ = 0;
  std::thread writer_;
};

std::string BytesOf(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns all files below a folder except LOCK, which names its last holder.
std::map<std::string, std::string> Tree(const Path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != "LOCK")
      files[entry.path().lexically_relative(folder)] = BytesOf(entry.path());
  return files;
}

void Change(const Path& path, std::initializer_list<std::size_t> places) {
  std::string bytes = BytesOf(path);
  for (const std::size_t at : places) bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x5a);
  std::ofstream(path, std::ios::binary) << bytes;
}

const std::array<Status, 6>& Faults() {
  static const std::array<Status, 6> faults = {
      Status::IoError("Too many open files"), Status::PermissionDenied("Permission denied"),
      Status::OutOfMemory("Cannot allocate"), Status::OutOfSpace("No space left on device"),
      Status::IoError("Operation canceled"),  Status::IoError("Input/output error")};
  return faults;
}

/// A fault must not make verify report damage of a sound store, nor make repair report damage.
Complaint Judge(const Result<VerifyReport>& report, const std::string& when) {
  if (!report && ProvesDamage(report.error()))
    return "verify fails with " + report.error().ToString() + " " + when;
  if (report && !report->damaged.empty())
    return "verify calls " + report->damaged.front().file + " damaged (" +
           report->damaged.front().what + ") " + when;
  return std::nullopt;
}

/// Runs `run` with only `count` free descriptors.
template <typename Run>
void WithDescriptors(std::uint64_t count, const Run& run) {
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  std::uint64_t first_free = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    first_free = std::max<std::uint64_t>(first_free, std::stoull(entry.path().filename()));
  rlimit less = before;
  less.rlim_cur = first_free + count;
  setrlimit(RLIMIT_NOFILE, &less);
  run();
  setrlimit(RLIMIT_NOFILE, &before);
}

constexpr int kDeltaCommits = 3;

/// Makes a store in which each commit of the delta is in a catalogue table of its own.
Status MakeStoreWithDelta(const Path& store) {
  RHIZOME_RETURN_IF_ERROR(MakeStore(Disk(), store));
  // A record that names no commit before it, and itself; see "Catalogue records" in FORMAT.md.
  for (int i = 0; i < kDeltaCommits; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const auto writer, Store::Open(Disk(), store, Store::Mode::kWrite));
    std::vector<std::byte> record(17);
    RHIZOME_RETURN_IF_ERROR(writer->CommitDelta(true, [&](std::uint64_t first) {
      StoreLittle(record.data() + 1, first);
      StoreLittle(record.data() + 9, i == 0 ? std::uint64_t{0} : first - 1);
      return std::vector<DeltaCommit>{{.sequence = first, .record = record, .rows = {}}};
    }));
  }
  return Status::Ok();
}

}  // namespace

Complaint FaultsAreNoDamage() {
  TempDir dir;
  const Path store = dir / "s";
  const Path harmed = dir / "h";
  if (!MakeStore(Disk(), store).ok() || !MakeStore(Disk(), harmed).ok()) return "no store";
  Change(harmed / kRows, {5, 300});
  const auto sound = Tree(store);
  const auto damaged = Tree(harmed);
  std::size_t next = 0;
  for (const auto& [file, _] : sound) {
    const Status& fault = Faults()[next++ % Faults().size()];
    const std::string when = fmt::format("while '{}' cannot be opened ({})", file, fault.message());
    // The fault hits each folder on the path and the file itself.
    Watched of_file([&, file = file](const Path& path) {
      return path == store / file || path == harmed / file ? fault : Status::Ok();
    });
    Watched of_folder([&, folder = Path(file).parent_path()](const Path& path) {
      const bool top = folder.empty();
      return path == (top ? store : store / folder) || path == (top ? harmed : harmed / folder)
                 ? fault
                 : Status::Ok();
    });
    for (FileSystem* const fs :
         {static_cast<FileSystem*>(&of_file), static_cast<FileSystem*>(&of_folder)}) {
      if (auto wrong = Judge(VerifyFiles(*fs, store, JobControl()), when)) return wrong;
      const auto again = VerifyFiles(*fs, store, JobControl());
      const bool of_rocksdb = file.starts_with("catalog/");
      if (again && again->ok() && !of_rocksdb) return "verify does not notice it " + when;
      if (of_rocksdb) continue;  // RocksDB opens this file itself
      const auto repaired = RepairStore(*fs, harmed, {}, JobControl());
      if (repaired) return "repair ends well " + when;
      if (Tree(harmed) != damaged) return "repair changes a file " + when;
    }
  }
  return std::nullopt;
}

Complaint FewDescriptorsAreNoDamage() {
  TempDir dir;
  const Path store = dir / "s";
  if (const Status made = MakeStoreWithDelta(store); !made.ok()) return made.ToString();
  const auto sound = Tree(store);
  for (std::uint64_t count = 0; count <= 60; count += 3) {
    const std::string when = fmt::format("with {} free descriptors", count);
    Result<VerifyReport> report = VerifyReport();
    Result<RepairReport> repaired = RepairReport();
    WithDescriptors(count, [&] {
      report = VerifyFiles(Disk(), store, JobControl());
      repaired = RepairStore(Disk(), store, {}, JobControl());
    });
    if (auto wrong = Judge(report, when)) return wrong;
    if (!repaired && ProvesDamage(repaired.error()))
      return "repair fails with " + repaired.error().ToString() + " " + when;
    if (repaired && !repaired->found.empty()) return "repair finds damage " + when;
    if (Tree(store) != sound) return "repair changes a file " + when;
    if (count == 60 && (!report || !report->ok())) return "60 descriptors are not enough";
  }
  return std::nullopt;
}

Complaint FewDescriptorsKeepTheDelta() {
  TempDir dir;
  const Path kept = dir / "k";
  if (const Status made = MakeStoreWithDelta(kept); !made.ok()) return made.ToString();
  std::filesystem::remove(kept / "catalog/CURRENT");
  std::size_t done = 0;
  for (std::uint64_t count = 5; count <= 41; count += 2) {
    const Path store = dir / fmt::format("s{}", count);
    std::filesystem::copy(kept, store, std::filesystem::copy_options::recursive);
    Result<RepairReport> repaired = RepairReport();
    WithDescriptors(count, [&] { repaired = RepairStore(Disk(), store, {}, JobControl()); });
    if (!repaired && ProvesDamage(repaired.error())) return repaired.error().ToString();
    // The repair runs again with enough descriptors: what the first run began must not cost
    // anything.
    if (!repaired)
      repaired = RepairStore(Disk(), store, {}, JobControl());
    else
      ++done;
    if (!repaired) return repaired.error().ToString();
    const auto reader = Store::Open(Disk(), store, Store::Mode::kRead);
    if (!reader) return reader.error().ToString();
    int commits = 0;
    const Status scanned = (*reader)->ScanDelta(0, [&](std::uint64_t, std::span<const std::byte>) {
      ++commits;
      return Status::Ok();
    });
    if (!scanned.ok()) return scanned.ToString();
    if (commits != kDeltaCommits)
      return fmt::format("{} commits of the delta are left after a repair with {} free descriptors",
                         commits, count);
  }
  return done > 0 ? std::nullopt : Complaint("41 descriptors are not enough");
}

Complaint DamageIsReadTwice() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  for (const char* file : {kRows, "generations/000001/topology/part-0000.adj",
                           "generations/000001/MANIFEST-000001", "FORMAT"}) {
    const auto before = Tree(store);
    WrongOnce fs(store / file);
    const auto report = RepairStore(fs, store, {}, JobControl());
    if (Tree(store) != before) return std::string(file) + " was read wrongly once, and repaired";
    if (report && !report->found.empty()) return std::string(file) + " counts as damaged";
  }
  return std::nullopt;
}

Complaint RepairKeepsTheLock() {
  for (const bool fill : {false, true}) {
    TempDir dir;
    const Path store = dir / "s";
    if (!MakeStore(Disk(), store).ok()) return "no store";
    Change(store / kRows, {5, 300});
    bool changed = false;
    Complaint wrong;
    Watched fs([&](const Path& path) {
      // The last check of the lock, without holding it, comes after the last change.
      changed = changed || path.filename() == "MANIFEST-000002";
      if (path.filename() == "LOCK") return Status::Ok();
      if (!changed && Disk().Lock(store / "LOCK", FileSystem::LockMode::kExclusive, "thief\n"))
        wrong = "the lock is free when " + path.string() + " is opened";
      return Status::Ok();
    });
    const auto report = RepairStore(fs, store, {.fill_holes = fill}, JobControl());
    if (!report) return report.error().ToString();
    if (!changed) return "nothing was changed";
    if (wrong) return wrong;
  }
  return std::nullopt;
}

Complaint RepairKeepsOtherJobs() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  std::filesystem::create_directories(store / "scratch/infer-emb");
  const auto job = Disk().Lock(store / "scratch/infer-emb/LOCK", FileSystem::LockMode::kExclusive,
                               "rhizome 1\n");
  if (!job) return job.error().ToString();
  std::ofstream(store / "scratch/infer-emb/LOG") << "hours of work";
  Change(store / kRows, {5, 300});
  const auto report = RepairStore(Disk(), store, {.fill_holes = true}, JobControl());
  if (!report) return report.error().ToString();
  if (BytesOf(store / "scratch/infer-emb/LOG") != "hours of work")
    return "a running job lost its files";
  if (std::filesystem::exists(store / "scratch/repair")) return "repair leaves its own";
  return std::nullopt;
}

Complaint JobsGoOnAfterARepair() {
  TempDir dir;
  const Path store = dir / "s";
  const Path scratch = store / "scratch/infer-emb";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  const auto job = ClaimJobFolder(Disk(), scratch);
  if (!job) return job.error().ToString();
  const auto made = WriteByFormula(Disk(), scratch,
                                   MakeEntry("emb", 300, 4, DataType::kFloat32, ArrayLayout::kRow));
  if (!made) return made.error().ToString();
  auto reader = Store::Open(Disk(), store, Store::Mode::kRead);
  if (!reader) return reader.error().ToString();
  Change(store / kRows, {5, 300});
  {
    const auto harmed = Tree(store);
    const auto writer = Disk().Lock(store / "LOCK", FileSystem::LockMode::kExclusive, "w\n");
    if (!writer) return writer.error().ToString();
    const auto refused = RepairStore(Disk(), store, {.fill_holes = true}, JobControl());
    if (refused || refused.error().code() != StatusCode::kBusy) return "a repair beside a writer";
    if (Tree(store) != harmed) return "a refused repair changes a file";
  }
  const auto report = RepairStore(Disk(), store, {.fill_holes = true}, JobControl());
  if (!report) return "repair: " + report.error().ToString();
  if (const Status refreshed = (*reader)->Refresh(); !refreshed.ok()) return refreshed.ToString();
  const std::uint64_t generation = (*reader)->manifest().generation;
  const Status published =
      Store::PublishArray(Disk(), store, generation, made->arrays, scratch, made->files);
  if (!published.ok()) return "a job cannot publish: " + published.ToString();
  if (const Status again = (*reader)->Refresh(); !again.ok()) return again.ToString();
  for (const char* name : {"feat", "emb"}) {
    const auto array = (*reader)->OpenArray(name);
    if (!array) return array.error().ToString();
    std::vector<std::byte> rows((*array)->entry().rows * (*array)->entry().row_bytes());
    if (const Status read = (*array)->ReadRows(0, (*array)->entry().rows, rows); !read.ok())
      return std::string(name) + " is not read: " + read.ToString();
    if (name == std::string("emb") && rows != RowsByFormula(0, 300, 16)) return "other rows";
  }
  // While the reader was there, the generation that it had open was kept, damage included.
  reader->reset();
  if (const auto writer = Store::Open(Disk(), store, Store::Mode::kWrite); !writer)
    return writer.error().ToString();
  const auto verified = VerifyFiles(Disk(), store, JobControl());
  if (!verified) return verified.error().ToString();
  return verified->ok() ? std::nullopt : Complaint("then " + verified->verdict().ToString());
}

Complaint OneRowCostsOneRow() {
  constexpr std::size_t kRowBytes = 12;
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  // Damages rows 1 and 7, and in the sidecar the checksums of rows 9 (whose chunk is damaged) and
  // 2.
  Change(store / kRows, {kRowBytes + 2, kRowBytes + 9, 7 * kRowBytes});
  Change(store / "generations/000001/sums/feat.crc32c/c.0.0", {9 * 4, 9 * 4 + 1});
  const auto report = RepairStore(Disk(), store, {.fill_holes = true}, JobControl());
  if (!report) return report.error().ToString();
  if (!report->after.ok()) return "damage is left";
  const auto opened = Store::Open(Disk(), store, Store::Mode::kRead);
  if (!opened) return opened.error().ToString();
  const auto array = (*opened)->OpenArray("feat");
  if (!array) return array.error().ToString();
  std::string listed;
  for (const auto& [key, value] : (*array)->entry().attributes)
    if (key == "lost_rows") listed = value;
  if (listed != "1,7,9") return "lost are rows " + listed;
  std::vector<std::byte> rows(300 * kRowBytes);
  if (const Status read = (*array)->ReadRows(0, 300, rows); !read.ok()) return read.ToString();
  auto wanted = RowsByFormula(0, 300, kRowBytes);
  for (const std::size_t row : {1, 7, 9})
    std::fill_n(wanted.begin() + static_cast<std::ptrdiff_t>(row * kRowBytes), kRowBytes,
                std::byte{0});
  return rows == wanted ? std::nullopt : Complaint("other rows have changed");
}

Complaint RottenSharedFilesAreCopiedAgain() {
  TempDir dir;
  const Path store = dir / "s";
  const Path backups = dir / "b";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  const auto back = [&](bool trust) {
    return BackupStore(Disk(), store, backups, {.keep = 0, .trust = trust}, JobControl());
  };
  if (const auto first = back(false); !first) return first.error().ToString();
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(backups / "files"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Change(files.at(0), {0});
  std::filesystem::remove(files.at(1));
  const auto verified = VerifyBackups(Disk(), backups, JobControl());
  if (!verified || verified->damaged.size() != 2) return "verify overlooks rotten files";
  if (const auto trusting = back(true); !trusting || trusting->mended.size() != 1)
    return "a missing file is not copied again";
  const auto second = back(false);
  if (!second) return second.error().ToString();
  if (second->mended.size() != 1) return "a rotten file is shared";
  const auto after = VerifyBackups(Disk(), backups, JobControl());
  if (!after || !after->ok()) return "rotten files are left";
  for (const std::uint64_t number : {1, 2, 3}) {
    const auto restored =
        RestoreStore(Disk(), backups, dir / fmt::format("r{}", number), number, JobControl());
    if (!restored) return restored.error().ToString();
  }
  return std::nullopt;
}

Complaint VerifyLetsWritersIn() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  std::mutex one_at_a_time;  // files are read by several threads, which would exclude each other
  bool free = false;
  Watched fs([&](const Path& path) {
    const std::lock_guard lock(one_at_a_time);
    if (path.filename() == "c.0.0")
      free |= Disk().Lock(store / "LOCK", FileSystem::LockMode::kExclusive, "x\n").has_value();
    return Status::Ok();
  });
  const auto report = VerifyFiles(fs, store, JobControl());
  if (!report || !report->ok()) return "the store is not sound";
  if (!free) return "no writer comes in while chunks are read";
  std::atomic<int> writers = 0;
  WriterAtEveryLook looks(store, writers);
  const auto again = VerifyFiles(looks, store, JobControl());
  if (!again || !again->ok()) return "the store is not sound beside writers";
  const int count = looks.count();
  if (count == 0) return "verify looks for no writer: this test sees nothing";
  return writers == count ? std::nullopt : Complaint("a look at the lock refuses a writer");
}

const std::map<std::string, std::function<Complaint()>>& Complaints() {
  static const std::map<std::string, std::function<Complaint()>> complaints = {
      {"FaultsAreNoDamage", FaultsAreNoDamage},
      {"FewDescriptorsAreNoDamage", FewDescriptorsAreNoDamage},
      {"FewDescriptorsKeepTheDelta", FewDescriptorsKeepTheDelta},
      {"DamageIsReadTwice", DamageIsReadTwice},
      {"RepairKeepsTheLock", RepairKeepsTheLock},
      {"RepairKeepsOtherJobs", RepairKeepsOtherJobs},
      {"JobsGoOnAfterARepair", JobsGoOnAfterARepair},
      {"OneRowCostsOneRow", OneRowCostsOneRow},
      {"RottenSharedFilesAreCopiedAgain", RottenSharedFilesAreCopiedAgain},
      {"VerifyLetsWritersIn", VerifyLetsWritersIn},
      {"LinksAreNotFollowed", LinksAreNotFollowed},
      {"UnmarkedFoldersStay", UnmarkedFoldersStay},
      {"OutputsStayOutside", OutputsStayOutside},
      {"MissingFilesAreDamage", MissingFilesAreDamage},
      {"ClaimedLengthsAreCompared", ClaimedLengthsAreCompared},
      {"ForksAreNoticed", ForksAreNoticed},
      {"ForksMayExit", ForksMayExit},
      {"ThreadsThatDoNotStartAreErrors", ThreadsThatDoNotStartAreErrors},
  };
  return complaints;
}

std::string UnfitForSanitizers(const std::string& name) {
  static const std::map<std::string, std::string> reasons = {
      // The sanitizer tests with a pipe whether a vtable can be read, and calls a sound object
      // invalid if it gets none (LLVM, IsAccessibleMemoryRange).
      {"FewDescriptorsAreNoDamage", "a sanitizer needs descriptors to look at a vtable"},
      {"FewDescriptorsKeepTheDelta", "a sanitizer needs descriptors to look at a vtable"},
      {"ForksAreNoticed", "children of a sanitized process with threads hang"},
      {"ForksMayExit", "children of a sanitized process with threads hang"},
      {"ThreadsThatDoNotStartAreErrors", "a sanitizer makes the stacks of threads itself"},
  };
  const auto reason = reasons.find(name);
  return reason == reasons.end() ? std::string() : reason->second;
}

}  // namespace rhizome::testing
