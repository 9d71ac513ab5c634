#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/io/job_folder.h"
#include "storage/maintenance/repair_store.h"
#include "storage/maintenance/verify_files.h"
#include "testing/care.h"
#include "testing/harmed_store.h"

// Checks of care.h about repair: transient read errors, locks and concurrent jobs, and the rows
// lost in a damaged chunk. Each check creates a store, damages it, runs repair, and examines the
// report and the files.

namespace rhizome::testing {
namespace {

/// A file in which one byte is read wrongly.
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

/// Returns wrong bytes for one file, the first time only.
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

}  // namespace

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
    std::mutex mutex;  // files are read by several threads
    Complaint wrong;
    Watched fs([&](const Path& path) {
      const std::lock_guard lock(mutex);
      // The last check of the lock comes after the last change and happens without holding the
      // lock.
      if (path.filename() == "MANIFEST-000002") changed = true;
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
  // The generation that the reader had open was kept, with its damage, until the reader closed.
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
  // Damages rows 1 and 7, and in the sidecar the checksums of row 2 and of row 9, which is in a
  // damaged chunk.
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

}  // namespace rhizome::testing
