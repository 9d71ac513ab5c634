#include "storage/catalog/catalog_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"
#include "storage/catalog/catalog_key.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/catalog_manifest.h"

namespace rhizome {
inline namespace internal {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

void CatalogClaims::Put(std::uint64_t table, TableClaim claim) {
  const MutexLock lock(mutex_);
  tables_.insert_or_assign(table, std::move(claim));
}

std::optional<TableClaim> CatalogClaims::Of(std::uint64_t table) {
  const MutexLock lock(mutex_);
  const auto at = tables_.find(table);
  return at == tables_.end() ? std::nullopt : std::optional(at->second);
}

void CatalogClaims::PutManifest(const ManifestEdits& edits) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t family : {kMetaFamily, kDeltaFamily})
    families_[family] = edits.ClaimOf(family);
  first_log_ = edits.first_log();
  last_change_ = edits.last_change();
}

std::string_view CatalogClaims::PutLog(std::uint64_t log, const LogBatches& batches) {
  const MutexLock lock(mutex_);
  const std::string_view misfit = Misfit(log, batches);
  if (!misfit.empty() || batches.changes().last == 0) return misfit;
  const auto at = logs_.insert_or_assign(log, batches.changes().last).first;
  const bool ordered = at == logs_.begin() || std::prev(at)->second < batches.changes().first;
  return ordered ? "" : "an earlier log holds later changes";
}

// The MANIFEST may have been read before the log, so it may be older than the log, but never newer.
std::string_view CatalogClaims::Misfit(std::uint64_t log, const LogBatches& batches) const {
  for (const auto& [family, claim] : families_) {
    const LoggedChanges changes = batches.ChangesOf(family);
    if (changes.first == 0) continue;
    const bool passed_over = log < std::max(first_log_, claim.first_log);
    if (passed_over && changes.last > last_change_)
      return "the MANIFEST marks it as obsolete, but it holds later changes";
    if (!passed_over && changes.first <= claim.last_change)
      return "it holds changes that are earlier than changes in tables";
  }
  return "";
}

std::optional<std::uint64_t> NumberOfRocksFile(const std::string& name) {
  std::string_view digits = name;
  for (const std::string_view prefix : {"MANIFEST-", "OPTIONS-"})
    if (digits.starts_with(prefix)) digits.remove_prefix(prefix.size());
  std::uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ptr == digits.data()) return std::nullopt;
  if (read.ec != std::errc() || number > kMaxRocksNumber) return ~std::uint64_t{0};
  return number;
}

namespace {

/// Checks the records of a log before RocksDB sees them.
class RecordChecker {
 public:
  virtual ~RecordChecker() = default;
  /// Processes the next record; returns false if the record is refused.
  virtual bool Apply(std::span<const std::byte> record) = 0;

  /// Called after all currently available records were applied. Errors: Corruption, the records are
  /// not consistent with each other.
  virtual IOStatus Finish() = 0;
};

/// Checks a write-ahead log.
class BatchChecker final : public RecordChecker {
 public:
  BatchChecker(const std::string& path, std::shared_ptr<CatalogClaims> claims)
      : path_(path), claims_(std::move(claims)) {}

  bool Apply(std::span<const std::byte> record) override { return batches_.Apply(record); }
  IOStatus Finish() override {
    const auto number = NumberOfRocksFile(std::filesystem::path(path_).filename().string());
    if (!number) return IOStatus::OK();
    const std::string_view misfit = claims_->PutLog(*number, batches_);
    if (misfit.empty()) return IOStatus::OK();
    return IOStatus::Corruption(fmt::format("{}: {}", path_, misfit));
  }

 private:
  const std::string path_;
  const std::shared_ptr<CatalogClaims> claims_;
  LogBatches batches_;
};

/// Checks a MANIFEST.
class EditChecker final : public RecordChecker {
 public:
  EditChecker(const std::string& path, rocksdb::FileSystem& files,
              std::shared_ptr<CatalogClaims> claims)
      : path_(path), files_(files), claims_(std::move(claims)) {}

  bool Apply(std::span<const std::byte> record) override { return edits_.Apply(record); }

  IOStatus Finish() override {
    if (!edits_.Good())
      return IOStatus::Corruption(path_ + ": its entries about files contradict each other");
    for (auto& [number, claim] : edits_.TakeAdded()) {
      const IOStatus sized = CheckSize(number, claim.bytes);
      if (!sized.ok()) return sized;
      claims_->Put(number, claim);
    }
    claims_->PutManifest(edits_);
    return edits_.first_log() == first_log_ ? IOStatus::OK() : CheckPassedOver();
  }

 private:
  // Checks logs that still exist although RocksDB no longer needs them: all their changes must be
  // in tables.
  IOStatus CheckPassedOver() {
    first_log_ = edits_.first_log();
    const auto folder = std::filesystem::path(path_).parent_path();
    std::vector<std::string> names;
    const IOStatus listed = files_.GetChildren(folder.string(), {}, &names, nullptr);
    if (!listed.ok()) return listed;
    for (const std::string& name : names) {
      const auto number = NumberOfRocksFile(name);
      if (!name.ends_with(".log") || !number || *number >= first_log_) continue;
      const std::string path = (folder / name).string();
      const IOStatus read = CheckPassedOver(path, *number);
      if (!read.ok() && !read.IsPathNotFound() && !read.IsNotFound()) return read;
    }
    return IOStatus::OK();
  }

  // Reads up to the first incomplete record; later ones were never visible.
  IOStatus CheckPassedOver(const std::string& path, std::uint64_t number) {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    const IOStatus opened = files_.NewSequentialFile(path, {}, &file, nullptr);
    if (!opened.ok()) return opened;
    LogBatches batches;
    LogRecords records;
    std::vector<char> block(kLogBlockBytes);
    bool whole = true;
    while (whole) {
      rocksdb::Slice got;
      const IOStatus read = file->Read(block.size(), {}, &got, block.data(), nullptr);
      if (!read.ok()) return read;
      const auto bytes = std::as_bytes(std::span(got.data(), got.size()));
      const std::uint64_t good = ScanLog(bytes).good_bytes;
      whole = bytes.size() == kLogBlockBytes && bytes.size() - good < kLogHeaderBytes;
      const auto apply = [&](std::span<const std::byte> record) { return batches.Apply(record); };
      if (records.Read(bytes.first(good), 0, apply)) break;
    }
    const std::string_view misfit = claims_->PutLog(number, batches);
    if (misfit.empty()) return IOStatus::OK();
    return IOStatus::Corruption(fmt::format("{}: {}", path, misfit));
  }

  // RocksDB opens a table with the length that the MANIFEST claims, so that length must be correct.
  IOStatus CheckSize(std::uint64_t number, std::uint64_t claimed) {
    const std::string name = fmt::format("{:06}.sst", number);
    const auto table = std::filesystem::path(path_).parent_path() / name;
    std::uint64_t bytes = 0;
    const IOStatus stat = files_.GetFileSize(table.string(), {}, &bytes, nullptr);
    if (stat.IsPathNotFound() || stat.IsNotFound()) return IOStatus::OK();  // a writer's compaction
    if (!stat.ok() || bytes == claimed) return stat;
    return IOStatus::Corruption(
        fmt::format("its table {} is {} bytes long, but was {}", name, bytes, claimed));
  }

  const std::string path_;
  rocksdb::FileSystem& files_;
  const std::shared_ptr<CatalogClaims> claims_;
  ManifestEdits edits_;
  std::uint64_t first_log_ = 0;
};

/// A log that shows RocksDB only complete, checked records. Read does the work:
///   1. when all checked bytes were shown, ReadMore reads to the end of the file;
///   2. ScanLog finds the end of the complete records, or damage;
///   3. the checker processes each new record (Apply), then checks them together (Finish);
///   4. RocksDB receives the next checked bytes.
class CheckedLog final : public rocksdb::FSSequentialFile {
 public:
  CheckedLog(std::unique_ptr<rocksdb::FSSequentialFile> file, std::string name,
             std::uint64_t file_bytes, std::unique_ptr<RecordChecker> checker)
      : file_(std::move(file)),
        name_(std::move(name)),
        file_bytes_(file_bytes),
        checker_(std::move(checker)) {}

  IOStatus Read(std::size_t size, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) override {
    if (at_ == good_) {
      const IOStatus more = ReadMore(options, context);
      if (!more.ok()) return more;
    }
    const std::size_t count = std::min<std::size_t>(size, good_ - at_);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), count, scratch);
    at_ += count;
    *result = rocksdb::Slice(scratch, count);
    return IOStatus::OK();
  }
  IOStatus Skip(std::uint64_t) override {
    return IOStatus::NotSupported("a log is read from front to back");
  }

 private:
  // Reads to the end of the file at once. RocksDB treats a short read as the end of the log, and
  // would neither see later records nor notice that they are damaged.
  IOStatus ReadMore(const IOOptions& options, IODebugContext* context) {
    if (refused_) return RefusedAt(0);
    DropShown();
    rocksdb::Slice got;
    do {
      std::vector<char> piece(kPieceBytes);
      const IOStatus read = file_->Read(piece.size(), options, &got, piece.data(), context);
      if (!read.ok()) return read;
      bytes_.insert(bytes_.end(), got.data(), got.data() + got.size());
    } while (!got.empty());
    if (base_ + bytes_.size() < file_bytes_)
      return IOStatus::Corruption(fmt::format("{}: ends at offset {}, but is {} bytes long", name_,
                                              base_ + bytes_.size(), file_bytes_));
    const auto bytes = std::as_bytes(std::span(bytes_));
    const LogScan scan = ScanLog(bytes, good_, last_change_);
    if (scan.damaged)
      return IOStatus::Corruption(
          fmt::format("{}: the record at offset {} is damaged", name_, base_ + scan.good_bytes));
    const auto refused =
        records_.Read(bytes.first(scan.good_bytes), good_,
                      [&](std::span<const std::byte> record) { return checker_->Apply(record); });
    if (refused) return RefusedAt(base_ + *refused);
    good_ = scan.good_bytes;
    last_change_ = scan.last_change;
    return checker_->Finish();
  }

  IOStatus RefusedAt(std::uint64_t offset) {
    if (!refused_) refused_ = offset;
    return IOStatus::Corruption(
        fmt::format("{}: the record at offset {} does not belong to a catalogue, or was written by "
                    "a newer RocksDB",
                    name_, *refused_));
  }

  void DropShown() {
    const std::uint64_t shown = at_ / kLogBlockBytes * kLogBlockBytes;
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(shown));
    base_ += shown;
    at_ -= shown;
    good_ -= shown;
  }

  static constexpr std::size_t kPieceBytes = std::size_t{8} * kLogBlockBytes;

  const std::unique_ptr<rocksdb::FSSequentialFile> file_;
  const std::string name_;
  const std::uint64_t file_bytes_;
  const std::unique_ptr<RecordChecker> checker_;
  LogRecords records_;
  std::optional<std::uint64_t> refused_;
  std::vector<char> bytes_;  // the bytes of the file from base_ (start of a block) on
  std::uint64_t base_ = 0;
  std::uint64_t at_ = 0;           // end of the shown bytes, relative to base_
  std::uint64_t good_ = 0;         // end of the complete records, relative to base_
  std::uint64_t last_change_ = 0;  // last change in the complete records
};

IOStatus ToRocks(const Status& status, const std::string& name) {
  const std::string message = fmt::format("{}: {}", name, status.message());
  return status.code() == StatusCode::kCorruption ? IOStatus::Corruption(message)
                                                  : IOStatus::IOError(message);
}

/// Fills all of `out` from a file. Errors: kIoError; kCorruption, the file ends too early.
Status ReadAt(const rocksdb::FSRandomAccessFile& file, std::uint64_t offset,
              std::span<std::byte> out, const IOOptions& options, IODebugContext* context) {
  auto* const scratch = reinterpret_cast<char*>(out.data());
  rocksdb::Slice got;
  const IOStatus status = file.Read(offset, out.size(), options, &got, scratch, context);
  if (!status.ok()) return Status::IoError(status.ToString());
  if (got.size() != out.size()) return Status::Corruption("the table is cut off");
  if (got.data() != scratch) std::copy_n(got.data(), got.size(), scratch);
  return Status::Ok();
}

/// A table whose data blocks are checked at each read.
class CheckedTable final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  CheckedTable(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string name,
               CatalogTable table)
      : FSRandomAccessFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        table_(std::move(table)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options,
                rocksdb::Slice* result, char* scratch, IODebugContext* context) const override {
    const IOStatus read = target()->Read(offset, size, options, result, scratch, context);
    if (!read.ok()) return read;
    const auto shown = std::as_bytes(std::span(result->data(), result->size()));
    const auto [first, last] = table_.BlocksIn(offset, shown.size());
    for (std::size_t block = first; block < last; ++block) {
      const Status checked = CheckBlock(block, offset, shown, options, context);
      if (!checked.ok()) return ToRocks(checked, name_);
    }
    return IOStatus::OK();
  }

  // These two use the base class, which calls Read, so that no read bypasses the checks.
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* context) override {
    return FSRandomAccessFile::MultiRead(requests, count, options, context);
  }
  IOStatus ReadAsync(rocksdb::FSReadRequest& request, const IOOptions& options,
                     std::function<void(const rocksdb::FSReadRequest&, void*)> done, void* argument,
                     void** handle, rocksdb::IOHandleDeleter* deleter,
                     IODebugContext* context) override {
    return FSRandomAccessFile::ReadAsync(request, options, std::move(done), argument, handle,
                                         deleter, context);
  }

 private:
  // If RocksDB reads only part of a block (readahead), the whole block is read to check it.
  Status CheckBlock(std::size_t block, std::uint64_t offset, std::span<const std::byte> shown,
                    const IOOptions& options, IODebugContext* context) const {
    const auto [begin, end] = table_.PlaceOf(block);
    if (offset <= begin && end - offset <= shown.size())
      return table_.CheckBlock(block, shown.subspan(begin - offset, end - begin));
    std::vector<std::byte> whole(end - begin);
    RHIZOME_RETURN_IF_ERROR(ReadAt(*target(), begin, whole, options, context));
    return table_.CheckBlock(block, whole);
  }

  const std::string name_;
  const CatalogTable table_;
};

}  // namespace

std::unique_ptr<rocksdb::FSSequentialFile> MakeCheckedLog(
    std::unique_ptr<rocksdb::FSSequentialFile> file, const std::string& path,
    std::uint64_t file_bytes, rocksdb::FileSystem& files, std::shared_ptr<CatalogClaims> claims) {
  std::unique_ptr<RecordChecker> checker;
  if (std::filesystem::path(path).extension() == ".log")
    checker = std::make_unique<BatchChecker>(path, std::move(claims));
  else
    checker = std::make_unique<EditChecker>(path, files, std::move(claims));
  return std::make_unique<CheckedLog>(std::move(file), path, file_bytes, std::move(checker));
}

IOStatus MakeCheckedTable(std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                          const std::string& path, std::uint64_t file_bytes, CatalogClaims& claims,
                          IODebugContext* context) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return ReadAt(**file, offset, out, {}, context);
  };
  const auto number = NumberOfRocksFile(std::filesystem::path(path).filename().string());
  auto table = CatalogTable::Open(file_bytes, read, number ? claims.Of(*number) : std::nullopt);
  if (!table) return ToRocks(table.error(), path);
  *file = std::make_unique<CheckedTable>(std::move(*file), path, *std::move(table));
  return IOStatus::OK();
}

}  // namespace internal
}  // namespace rhizome
