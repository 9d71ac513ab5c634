#include "storage/catalog/catalog.h"

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <tuple>

#include "storage/base/bytes.h"
#include "storage/base/damage.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/library_threads.h"
#include "storage/base/mutant.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"
#include "storage/base/quietly.h"
#include "storage/catalog/catalog_disk.h"
#include "storage/catalog/catalog_env.h"
#include "storage/catalog/catalog_key.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/catalog_manifest.h"
#include "storage/catalog/catalog_posix.h"
#include "storage/catalog/catalog_seal.h"
#include "storage/catalog/catalog_threads.h"
#include "storage/catalog/delta_head.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"

namespace rhizome {
inline namespace internal {

namespace {

// The catalogue is a RocksDB database whose files are all accessed through catalog_env.h. A writer
// opens it with DB::Open and writes each commit as one WriteBatch that starts with a SyncMark;
// closing flushes and seals it (catalog_seal.h). A reader opens a secondary instance, which RocksDB
// does not protect against concurrent writers and damaged tables: OpenBesideWriters,
// CheckShowsLatest and CatchUp make sure that it shows the latest state. If RocksDB throws, the
// database is abandoned (LeaveBehind).

constexpr std::uint8_t kRecordVersion = 2;

/// Forwards RocksDB's warnings and errors to the store's log and drops its other lines: outcomes
/// are returned as a status, and a store contains no log files. RocksDB may call it while holding
/// its own locks, which is why Logger delivers lines later, from its own thread.
class CatalogLogger : public rocksdb::Logger {
 public:
  explicit CatalogLogger(std::shared_ptr<const rhizome::Logger> logger)
      : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL), logger_(std::move(logger)) {}

  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}  // headers, and lines without a level
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override {
    const LogLevel own =
        level >= rocksdb::InfoLogLevel::ERROR_LEVEL ? LogLevel::kError : LogLevel::kWarning;
    const bool chatter = level < GetInfoLogLevel() || level >= rocksdb::InfoLogLevel::HEADER_LEVEL;
    if (chatter || logger_ == nullptr || !logger_->Wants(own)) return;
    std::array<char, 1024> text{};
    (void)std::vsnprintf(text.data(), text.size(), format, arguments);
    logger_->Log(own, "catalogue", "RocksDB says", {{"text", std::string(text.data())}});
  }

 private:
  const std::shared_ptr<const rhizome::Logger> logger_;
};

Status Translate(const rocksdb::Status& status, const Path& path) {
  if (status.ok()) return Status::Ok();
  const std::string where = fmt::format("catalogue '{}'", path.string());
  std::string message = fmt::format("{}: {}", where, status.ToString());
  if (status.IsNotFound()) return Status::NotFound(std::move(message));
  // RocksDB has no status code for a lock that another process holds, only message text. A message
  // about a bad block ("block checksum") must not match it.
  const bool locked = status.IsIOError() && (message.find("lock hold by") != std::string::npos ||
                                             message.find("While lock file") != std::string::npos);
  if (status.IsBusy() || locked) return Status::Busy(std::move(message));
  if (status.IsCorruption() || status.IsInvalidArgument() || status.IsPathNotFound())
    return Status::Corruption(std::move(message));
  return TranslateFault(status, where);
}

rocksdb::Env& EnvOf(FileSystem& fs) {
  CatalogDisk* const disk = fs.catalog_disk();
  return disk == nullptr ? PosixCatalogEnv() : disk->env();
}

// With these options bad bytes are errors, a failed sync remains failed, and recovery after a crash
// accepts only a torn tail of the write-ahead log (docs/DESIGN.md, section 3).
rocksdb::DBOptions DatabaseOptions(rocksdb::Env& env, Catalog::Mode mode,
                                   const CatalogOptions& given = {}) {
  rocksdb::DBOptions options;
  options.env = &env;
  options.create_if_missing = mode == Catalog::Mode::kCreate;
  options.create_missing_column_families = mode == Catalog::Mode::kCreate;
  options.error_if_exists = mode == Catalog::Mode::kCreate;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.max_bgerror_resume_count = 0;
  options.track_and_verify_wals_in_manifest = true;
  options.max_open_files = -1;  // a secondary must keep files that the writer deletes
  // By default RocksDB starts 15 threads per column family to open tables, which takes longer than
  // opening our few tables.
  options.max_file_opening_threads = 1;
  options.max_background_jobs = 2;
  options.max_manifest_file_size = kMaxCatalogManifestBytes / 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.keep_log_file_num = 1;
  options.info_log = std::make_shared<CatalogLogger>(given.logger);
  options.db_write_buffer_size = given.write_bytes;
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Families(const CatalogOptions& given = {}) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(given.cache_bytes);
  table.format_version = 5;                    // the last that CatalogTable supports
  table.cache_index_and_filter_blocks = true;  // counts their memory in the budget
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = std::min<std::size_t>(std::size_t{4} << 20, given.write_bytes / 2);
  options.compression = rocksdb::kNoCompression;
  options.paranoid_file_checks = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const char* name : kFamilyNames) families.emplace_back(name, options);
  return families;
}

std::string EncodeRecord(const CommitRecord& record, const StoreId& id) {
  ByteWriter out;
  out.Number(kRecordVersion);
  out.Bytes(id.bytes);
  out.Number(record.generation);
  out.Number(record.manifest_version);
  out.Number(record.manifest_bytes);
  out.Bytes(record.manifest_xxh3);
  out.Number(record.sequence);
  out.Number(record.base_sequence);
  WriteHistoryState(out, record.base_state);
  out.Number(Crc32c(out.bytes()));
  return {reinterpret_cast<const char*>(out.bytes().data()), out.bytes().size()};
}

Result<CommitRecord> DecodeRecord(std::string_view value, const StoreId& id) {
  const auto bytes = std::as_bytes(std::span(value));
  if (bytes.size() < 5) return Fail(Status::Corruption("offset 0, length: too short"));
  const std::size_t end = bytes.size() - sizeof(std::uint32_t);
  if (LoadLittle<std::uint32_t>(bytes.data() + end) != Crc32c(bytes.first(end)))
    return Fail(Status::Corruption(fmt::format("offset {}, checksum: does not match", end)));
  ByteReader in(bytes.first(end));
  const auto version = in.Number<std::uint8_t>("version");
  if (version > kRecordVersion)
    return Fail(
        Status::Unsupported(fmt::format("version {}; use a newer version of Rhizome", version)));
  if (version == 0) in.Refuse("version", "is 0");
  const auto found = in.Bytes("store id", id.bytes.size());
  if (!std::equal(found.begin(), found.end(), id.bytes.begin(), id.bytes.end()))
    in.Refuse("store id", "is the id of another store, or FORMAT is damaged");
  CommitRecord record;
  record.generation = in.Number<std::uint64_t>("generation");
  record.manifest_version = in.Number<std::uint64_t>("manifest version");
  record.manifest_bytes = in.Number<std::uint64_t>("manifest length");
  const auto hash = in.Bytes("manifest hash", record.manifest_xxh3.size());
  std::copy(hash.begin(), hash.end(), record.manifest_xxh3.begin());
  record.sequence = in.Number<std::uint64_t>("sequence");
  record.base_sequence = in.Number<std::uint64_t>("base sequence");
  if (record.base_sequence > record.sequence) in.Refuse("base sequence", "is above the sequence");
  if (version >= 2) record.base_state = ReadHistoryState(in);
  if (in.left() > 0) in.Refuse("end", "has extra bytes");
  RHIZOME_RETURN_IF_ERROR(in.status());
  return record;
}

void AppendBig(std::string& key, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFF));
}

std::string RecordKey(std::uint64_t sequence) {
  std::string key;
  AppendBig(key, sequence);
  key.push_back(static_cast<char>(DeltaKey::kRecord));
  return key;
}

std::string RowKey(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex) {
  std::string key;
  AppendBig(key, sequence);
  key.push_back(static_cast<char>(DeltaKey::kRow));
  AppendBig(key, array_id);
  AppendBig(key, static_cast<std::uint64_t>(vertex));
  return key;
}

// A value is its content followed by the CRC-32C of key and content, so that a value under a wrong
// key is detected.
std::uint32_t ValueCrc(std::string_view key, std::span<const std::byte> content) {
  return Crc32c(content, Crc32c(std::as_bytes(std::span(key))));
}

std::string SealValue(std::string_view key, std::span<const std::byte> content) {
  std::string value(content.size() + sizeof(std::uint32_t), '\0');
  std::copy(content.begin(), content.end(), reinterpret_cast<std::byte*>(value.data()));
  StoreLittle(reinterpret_cast<std::byte*>(value.data()) + content.size(), ValueCrc(key, content));
  return value;
}

/// Returns the content of a sealed value; nullopt if it is damaged.
std::optional<std::span<const std::byte>> OpenValue(std::string_view key, std::string_view value) {
  const auto bytes = std::as_bytes(std::span(value));
  if (bytes.size() < sizeof(std::uint32_t)) return std::nullopt;
  const auto content = bytes.first(bytes.size() - sizeof(std::uint32_t));
  if (LoadLittle<std::uint32_t>(bytes.data() + content.size()) != ValueCrc(key, content))
    return std::nullopt;
  return content;
}

// RocksDB requires a folder in which a secondary may write an info log. DatabaseOptions passes a
// logger instead, and nothing can be created in this folder.
constexpr const char* kNoFolder = "/dev/null/rhizome";

// Checks that the creation of the catalogue was completed. RocksDB creates column families one
// after another, so a killed creation leaves some of them, and nothing was ever committed. Errors:
// kNotFound; kCorruption.
Status CheckComplete(FileSystem& fs, rocksdb::Env& env, const Path& path) {
  const auto current = fs.Stat(path / "CURRENT");
  if (!current && current.error().code() == StatusCode::kNotFound)
    return Status::NotFound(fmt::format("'{}' has no catalogue", path.string()));
  if (!current) return current.error();
  // If RocksDB cannot read this file, it ends the process by an assertion.
  constexpr std::uint64_t kMaxIdentityBytes = 4096;
  const auto identity = fs.Stat(path / "IDENTITY");
  if (identity && identity->size_bytes > kMaxIdentityBytes)
    return Status::Corruption(
        fmt::format("'{}' has {} bytes, but RocksDB's files of this kind have at most {}",
                    (path / "IDENTITY").string(), identity->size_bytes, kMaxIdentityBytes));
  std::vector<std::string> names;
  const rocksdb::DBOptions options = DatabaseOptions(env, Catalog::Mode::kRead);
  RHIZOME_RETURN_IF_ERROR(
      Translate(rocksdb::DB::ListColumnFamilies(options, path.string(), &names), path));
  for (const char* family : kFamilyNames) {
    if (std::find(names.begin(), names.end(), family) == names.end())
      return Status::NotFound(
          fmt::format("the creation of catalogue '{}' did not finish", path.string()));
  }
  return Status::Ok();
}

}  // namespace

class Catalog::Impl {
 public:
  Impl(FileSystem& fs, Path path, const StoreId& id, const CatalogOptions& options)
      : fs_(fs),
        path_(std::move(path)),
        id_(id),
        options_(options),
        env_(MakeCatalogEnv(EnvOf(fs), fault_, threads_, gate_)) {}
  ~Impl() {
    Quietly([&] { (void)Close(); });
    if (abandoned()) LeaveBehind();
  }

  /// Opens the catalogue in these steps:
  ///   1. Checks that the folder contains only plain files.
  ///   2. A reader continues in OpenBesideWriters.
  ///   3. A writer checks the seal and that the catalogue is complete, then breaks the seal.
  ///   4. Starts the threads for RocksDB's background work, and opens the database.
  Status Open(Mode mode) {
    // RocksDB ends the process if it cannot read some of its files.
    RHIZOME_RETURN_IF_ERROR(CheckPlain(fs_, path_));
    if (mode == Mode::kRead) return OpenBesideWriters();
    if (mode == Mode::kWrite) {
      RHIZOME_RETURN_IF_ERROR(CheckWhole());
      if (!RHIZOME_MUTANT("writer keeps the seal"))
        RHIZOME_RETURN_IF_ERROR(BreakCatalogSeal(fs_, path_));
    }
    writable_ = true;
    RHIZOME_RETURN_IF_ERROR(threads_->Start());
    timer_ = std::make_unique<LibraryThreads>();
    rocksdb::DB* db = nullptr;
    const rocksdb::DBOptions options = DatabaseOptions(*env_, mode, options_);
    const auto families = Families(options_);
    const rocksdb::Status status =
        Ask([&] { return rocksdb::DB::Open(options, path_.string(), families, &families_, &db); });
    db_.reset(db);
    if (db != nullptr) LibraryThreads::AreAwaitedFromNowOn();
    return UnlessFault(Translate(status, path_));
  }

  Result<CommitRecord> Current() {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    std::string value;
    const rocksdb::Slice key(kCurrentKey.data(), kCurrentKey.size());
    const rocksdb::Status status =
        Ask([&] { return db_->Get(options, families_[kMetaFamily], key, &value); });
    if (status.IsNotFound())
      return Fail(Status::NotFound(fmt::format("'{}': nothing was committed", path_.string())));
    RHIZOME_RETURN_IF_ERROR(Translate(status, path_));
    RHIZOME_ASSIGN_OR_RETURN(CommitRecord record, Decode(value));
    return in_tables_ && IsBefore(record, *in_tables_) ? *in_tables_ : record;
  }

  Status Commit(const CommitRecord& record) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const MutexLock lock(writes_);
    rocksdb::WriteBatch batch;
    RHIZOME_RETURN_IF_ERROR(Translate(batch.PutLogData(SyncMark(synced_change_)), path_));
    const rocksdb::Slice key(kCurrentKey.data(), kCurrentKey.size());
    RHIZOME_RETURN_IF_ERROR(
        Translate(batch.Put(families_[kMetaFamily], key, EncodeRecord(record, id_)), path_));
    return Write(batch, /*sync=*/true);
  }

  Status AppendDelta(std::span<const DeltaCommit> commits, bool sync) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const MutexLock lock(writes_);
    rocksdb::WriteBatch batch;
    RHIZOME_RETURN_IF_ERROR(Translate(batch.PutLogData(SyncMark(synced_change_)), path_));
    const auto put = [&](const std::string& key, std::span<const std::byte> content) {
      return batch.Put(families_[kDeltaFamily], key, SealValue(key, content));
    };
    for (const DeltaCommit& commit : commits) {
      RHIZOME_RETURN_IF_ERROR(Translate(put(RecordKey(commit.sequence), commit.record), path_));
      for (const DeltaRow& row : commit.rows)
        RHIZOME_RETURN_IF_ERROR(
            Translate(put(RowKey(commit.sequence, row.array_id, row.vertex), row.bytes), path_));
    }
    return Write(batch, sync);
  }

  Status ScanDelta(std::uint64_t after,
                   const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const std::unique_ptr<rocksdb::Iterator> at = NewDeltaIterator();
    // A commit's rows follow its record; Seek skips them.
    for (SeekTo(*at, RecordKey(after + 1)); at->Valid();) {
      const std::string key = at->key().ToString();
      const std::uint64_t sequence = CommitOfDeltaKey(key);
      const auto content = OpenValue(key, at->value().ToStringView());
      if (key != RecordKey(sequence) || !content)
        return Status::Corruption(
            fmt::format("catalogue '{}', delta: the record of commit {} is {}", path_.string(),
                        sequence, content ? "missing" : "damaged"));
      RHIZOME_RETURN_IF_ERROR(visit(sequence, *content));
      SeekTo(*at, RecordKey(sequence + 1));
    }
    return Translate(at->status(), path_);
  }

  Status ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                      std::span<std::byte> out) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    const std::shared_lock<std::shared_mutex> reading(replacing_);
    rocksdb::PinnableSlice value;
    const std::string key = RowKey(sequence, array_id, vertex);
    const rocksdb::Status status =
        Ask([&] { return db_->Get(options, families_[kDeltaFamily], key, &value); });
    if (!status.ok() && !status.IsNotFound()) return Translate(status, path_);
    const auto content = status.ok() ? OpenValue(key, value.ToStringView()) : std::nullopt;
    if (!content || content->size() != out.size())
      return Status::Corruption(fmt::format(
          "catalogue '{}', delta: the row of vertex {} in array {} of commit {} is {}",
          path_.string(), vertex, array_id, sequence, status.ok() ? "damaged" : "missing"));
    std::copy(content->begin(), content->end(), out.begin());
    return Status::Ok();
  }

  Result<HistoryState> StateAfter(std::uint64_t last, std::uint64_t base,
                                  const HistoryState& base_state) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    const std::shared_lock<std::shared_mutex> reading(replacing_);
    const std::unique_ptr<rocksdb::Iterator> at = NewDeltaIterator();
    std::string end;
    AppendBig(end, last);
    end += '\xFF';  // also past the rows of commit `last`
    Ask([&] { at->SeekForPrev(end); });
    RHIZOME_RETURN_IF_ERROR(Translate(at->status(), path_));
    if (!at->Valid() || CommitOfDeltaKey(at->key().ToStringView()) <= base) return base_state;
    const std::uint64_t commit = CommitOfDeltaKey(at->key().ToStringView());
    std::string value;
    const std::string key = RecordKey(commit);
    const rocksdb::Status status =
        Ask([&] { return db_->Get(options, families_[kDeltaFamily], key, &value); });
    if (!status.ok() && !status.IsNotFound()) return Fail(Translate(status, path_));
    const auto content = status.ok() ? OpenValue(key, value) : std::nullopt;
    if (!content)
      return Fail(Status::Corruption(
          fmt::format("catalogue '{}', delta: the record of commit {} is {}", path_.string(),
                      commit, status.ok() ? "damaged" : "missing")));
    const auto head = ReadDeltaHead(*content);
    if (head && head->state.known()) return head->state;
    return HashEntries(base, commit, base_state);
  }

  Result<std::uint64_t> LastDelta() {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const std::unique_ptr<rocksdb::Iterator> at = NewDeltaIterator();
    Ask([&] { at->SeekToLast(); });
    RHIZOME_RETURN_IF_ERROR(Translate(at->status(), path_));
    return at->Valid() ? CommitOfDeltaKey(at->key().ToStringView()) : 0;
  }

  Status DropDelta(std::uint64_t last) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    // This write is not synced. The lock prevents a concurrent synced write from recording it as
    // durable (SyncMark).
    const MutexLock lock(writes_);
    {
      const std::unique_ptr<rocksdb::Iterator> at = NewDeltaIterator();
      Ask([&] { at->SeekToFirst(); });
      RHIZOME_RETURN_IF_ERROR(Translate(at->status(), path_));
      if (!at->Valid() || CommitOfDeltaKey(at->key().ToStringView()) > last) return Status::Ok();
    }
    const std::string first = RecordKey(0);
    const std::string end = RecordKey(last + 1);
    return Translate(Ask([&] { return db_->DeleteRange({}, families_[kDeltaFamily], first, end); }),
                     path_);
  }

  Status ScanDeltaEntries(
      std::uint64_t after,
      const std::function<Status(std::string_view key, std::string_view value)>& visit) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const std::unique_ptr<rocksdb::Iterator> at = NewDeltaIterator();
    for (SeekTo(*at, RecordKey(after + 1)); at->Valid(); Ask([&] { at->Next(); })) {
      RHIZOME_RETURN_IF_ERROR(CheckEntry(at->key().ToStringView(), at->value().ToStringView()));
      RHIZOME_RETURN_IF_ERROR(visit(at->key().ToStringView(), at->value().ToStringView()));
    }
    return Translate(at->status(), path_);
  }

  Status PutDeltaEntries(std::span<const std::pair<std::string, std::string>> entries) {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    const MutexLock lock(writes_);
    rocksdb::WriteBatch batch;
    for (const auto& [key, value] : entries) {
      RHIZOME_RETURN_IF_ERROR(CheckEntry(key, value));
      RHIZOME_RETURN_IF_ERROR(Translate(batch.Put(families_[kDeltaFamily], key, value), path_));
    }
    return Translate(Ask([&] { return db_->Write({}, &batch); }), path_);
  }

  /// Follows the writer. When a secondary (RocksDB 7.8) encounters a table that a writer has
  /// already removed, it shows nothing newer until the MANIFEST reports the removal. If the next
  /// writer has already begun a new MANIFEST, which does not mention that table, this never
  /// happens. So a secondary is reused only as long as it shows all tables; otherwise a new one
  /// replaces it.
  Status CatchUp() {
    RHIZOME_RETURN_IF_ERROR(CheckProcess());
    if (!abandoned() && !shown_.name.empty() &&
        Ask([&] { return db_->TryCatchUpWithPrimary(); }).ok() && ShowsLatest())
      return Status::Ok();
    shown_ = {};
    Impl fresh(fs_, path_, id_, options_);
    RHIZOME_RETURN_IF_ERROR(Guarded([&] { return fresh.OpenBesideWriters(); }));
    TakePlace(fresh);
    return Status::Ok();
  }

  Status VerifyChecksums() {
    RHIZOME_RETURN_IF_ERROR(CheckUsable());
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    // RocksDB opens the tables by name, and a writer may have removed some since.
    Status status;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      status = UnlessFault(Translate(Ask([&] { return db_->VerifyChecksum(options); }), path_));
      if (status.ok() || writable_ || CurrentManifest() == shown_) return status;
      RHIZOME_RETURN_IF_ERROR(CatchUp());
    }
    return status;
  }

  Status Close() {
    if (abandoned()) return LeaveBehind(), CheckUsable();
    if (db_ == nullptr) return Status::Ok();
    // A forked child does not have RocksDB's threads: closing would hang, and flushing would write
    // into the parent's files. So it leaves the database untouched.
    if (!CheckProcess().ok()) {
      families_.clear();
      static_cast<void>(db_.release());
      static_cast<void>(env_.release());
      return Status::Ok();
    }
    rocksdb::Status flushed;
    if (writable_) flushed = Ask([&] { return db_->Flush({}, families_); });
    const rocksdb::Status closed = CloseDatabase();
    RHIZOME_RETURN_IF_ERROR(Translate(flushed.ok() ? closed : flushed, path_));
    return writable_ ? SealCatalog(fs_, path_) : Status::Ok();
  }

  Status CheckProcess() const {
    return process_.here() ? Status::Ok()
                           : process_.Check(fmt::format("the catalogue '{}'", path_.string()));
  }

 private:
  /// Name and length of the current MANIFEST. A writer only appends to it, so equal states mean
  /// that nothing changed.
  struct ManifestState {
    std::string name;
    std::uint64_t bytes = 0;
    bool operator==(const ManifestState&) const = default;
  };

  Result<CommitRecord> Decode(std::string_view value) const {
    auto record = DecodeRecord(value, id_);
    if (!record)
      return Fail(record.error().WithContext(
          fmt::format("catalogue '{}', record '{}'", path_.string(), kCurrentKey)));
    return record;
  }

  static bool IsBefore(const CommitRecord& a, const CommitRecord& b) {
    return std::tie(a.generation, a.manifest_version) < std::tie(b.generation, b.manifest_version);
  }

  /// Finds the latest commit in the tables. A secondary keeps what it has read from a log until a
  /// later log has a record of the same column family. If the log with the next commit is gone
  /// before it was read, the commit in memory hides the later one in a table.
  Status ReadTables() {
    std::optional<CommitRecord> latest;
    std::vector<rocksdb::LiveFileMetaData> tables;
    Ask([&] { db_->GetLiveFilesMetaData(&tables); });
    rocksdb::Options options;
    options.env = env_.get();
    for (const rocksdb::LiveFileMetaData& table : tables) {
      if (table.column_family_name != kFamilyNames[kMetaFamily]) continue;
      rocksdb::SstFileReader reader(options);
      RHIZOME_RETURN_IF_ERROR(Translate(
          reader.Open((path_ / fmt::format("{:06}.sst", table.file_number)).string()), path_));
      rocksdb::ReadOptions read;
      read.verify_checksums = true;
      const std::unique_ptr<rocksdb::Iterator> at(reader.NewIterator(read));
      at->Seek(kCurrentKey);
      RHIZOME_RETURN_IF_ERROR(Translate(at->status(), path_));
      if (!at->Valid() || at->key() != rocksdb::Slice(kCurrentKey)) continue;
      const auto record = Decode(at->value().ToStringView());
      if (!record) continue;  // Current reports it
      if (!latest || IsBefore(*latest, *record)) latest = *record;
    }
    in_tables_ = latest;  // after an error, the state before remains
    return Status::Ok();
  }

  Status CheckWhole() {
    RHIZOME_RETURN_IF_ERROR(CheckCatalogSeal(fs_, path_));
    return CheckComplete(fs_, *env_, path_);
  }

  /// Opens for reading:
  ///   1. checks the seal and that the catalogue is complete;
  ///   2. opens RocksDB as a secondary;
  ///   3. checks that it shows the latest state (CheckShowsLatest).
  /// A writer that concurrently opens, closes or compacts the catalogue removes files that the
  /// reader is about to open. So an error counts only if the MANIFEST is the same before and after;
  /// otherwise the steps are retried.
  Status OpenBesideWriters() {
    Status status;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const ManifestState before = CurrentManifest();
      status = CheckWhole();
      if (status.ok()) status = OpenSecondary();
      if (status.ok()) status = CheckShowsLatest();
      if (status.ok() || CurrentManifest() == before) return status;
      if (db_ != nullptr) (void)CloseDatabase();
    }
    return status;
  }

  ManifestState CurrentManifest() {
    ManifestState state;
    (void)LookAtManifest(state);
    return state;
  }

  Status OpenSecondary() {
    // A new environment drops the claims of an earlier MANIFEST (CatalogClaims), which may not hold
    // for the files of the next one.
    env_ = MakeCatalogEnv(EnvOf(fs_), fault_, threads_, gate_);
    rocksdb::DB* db = nullptr;
    const rocksdb::DBOptions options = DatabaseOptions(*env_, Mode::kRead, options_);
    const auto families = Families(options_);
    const rocksdb::Status status = Ask([&] {
      return rocksdb::DB::OpenAsSecondary(options, path_.string(), kNoFolder, families, &families_,
                                          &db);
    });
    db_.reset(db);
    return UnlessFault(Translate(status, path_));
  }

  rocksdb::Status CloseDatabase() {
    const rocksdb::Status closed = Ask([&] {
      for (auto* family : families_) (void)db_->DestroyColumnFamilyHandle(family);
      return db_->Close();
    });
    families_.clear();
    db_.reset();
    return closed;
  }

  /// Runs a call of RocksDB. An exception may leave RocksDB's locks held, and dead writers in its
  /// queue: any further call, and closing, could then wait forever.
  template <typename Call>
  auto Ask(const Call& call) -> decltype(call()) {
    try {
      return call();
    } catch (...) {
      why_abandoned_ = StatusOfException().code();
      throw;
    }
  }
  bool abandoned() const { return why_abandoned_.load() != StatusCode::kOk; }

  /// Abandons a database that cannot be closed, together with the objects that its threads use. The
  /// next opening recovers everything that was committed, as after a crash.
  void LeaveBehind() noexcept {
    gate_->Shut();
    families_.clear();
    static_cast<void>(db_.release());
    static_cast<void>(env_.release());
    static_cast<void>(timer_.release());
  }

  Status CheckUsable() const {
    RHIZOME_RETURN_IF_ERROR(CheckProcess());
    if (!abandoned()) return Status::Ok();
    return {why_abandoned_.load(),
            fmt::format("catalogue '{}': an earlier call failed midway; open the store again",
                        path_.string())};
  }

  std::unique_ptr<rocksdb::Iterator> NewDeltaIterator() {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    return std::unique_ptr<rocksdb::Iterator>(
        Ask([&] { return db_->NewIterator(options, families_[kDeltaFamily]); }));
  }
  void SeekTo(rocksdb::Iterator& at, const std::string& key) {
    Ask([&] { at.Seek(key); });
  }

  /// Exchanges the databases of this object and `fresh`.
  void TakePlace(Impl& fresh) {
    const std::unique_lock<std::shared_mutex> replacing(replacing_);
    fault_.swap(fresh.fault_);
    threads_.swap(fresh.threads_);
    gate_.swap(fresh.gate_);
    why_abandoned_ = fresh.why_abandoned_.exchange(why_abandoned_);
    env_.swap(fresh.env_);
    db_.swap(fresh.db_);
    families_.swap(fresh.families_);
    std::swap(shown_, fresh.shown_);
    std::swap(in_tables_, fresh.in_tables_);
  }

  /// Moves to the current state of the catalogue. If a secondary failed to show the tables of one
  /// MANIFEST, because a writer had removed some, then following to the next MANIFEST would end the
  /// process by an assertion of RocksDB 7.8 (BaseReferencedVersionBuilder). So it is reopened until
  /// it has shown one MANIFEST completely.
  Status ShowMore() {
    RHIZOME_RETURN_IF_ERROR(Translate(CloseDatabase(), path_));
    return OpenSecondary();
  }

  Status Write(rocksdb::WriteBatch& batch, bool sync) RHIZOME_REQUIRES(writes_) {
    rocksdb::WriteOptions options;
    options.sync = sync && !RHIZOME_MUTANT("commit is not synced");
    // Commit and AppendDelta guarantee to throw only before they write.
    RHIZOME_RETURN_IF_ERROR(Guarded(
        [&] { return Translate(Ask([&] { return db_->Write(options, &batch); }), path_); }));
    if (sync) synced_change_ = db_->GetLatestSequenceNumber();
    return Status::Ok();
  }

  /// Returns the recorded fault instead of `status` if there was a fault and `status` reports
  /// damage: RocksDB reports some faults as damage.
  Status UnlessFault(const Status& status) const {
    const Status fault = fault_->status();
    return !status.ok() && ProvesDamage(status) && !fault.ok() ? fault : status;
  }

  // Checks that the secondary shows the latest state. When a table is damaged or missing, RocksDB's
  // secondary silently shows an earlier state, so this compares the tables that it shows with the
  // tables that the MANIFEST names. A writer may change both at any time, so a difference counts as
  // damage only if the MANIFEST remains the same:
  //   1. if name and length of the MANIFEST are unchanged since the last check, nothing changed;
  //   2. if the database shows every table that the MANIFEST names, it is up to date;
  //   3. if some are missing although the MANIFEST did not change since the previous attempt, finds
  //      out which are damaged (DamageOf), and reports them if the MANIFEST is still the same;
  //   4. otherwise reopens the secondary (ShowMore) and tries again.
  Status CheckShowsLatest() {
    if (RHIZOME_MUTANT("an earlier catalogue is shown")) return Status::Ok();
    ManifestState before;
    int unshown = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      ManifestState now;
      std::string bytes;
      rocksdb::Status read = LookAtManifest(now);
      if (read.ok() && now == shown_) return Status::Ok();
      if (read.ok())
        read = rocksdb::ReadFileToString(env_.get(), (path_ / now.name).string(), &bytes);
      if (read.ok()) {
        RHIZOME_ASSIGN_OR_RETURN(const auto missing,
                                 MissingTables(std::as_bytes(std::span(bytes))));
        if (missing.empty()) {
          const Status tables = ReadTables();
          if (!tables.ok() && CurrentManifest() == now) return UnlessFault(tables);
          if (tables.ok()) {
            shown_ = now;
            return Status::Ok();
          }
        }
        if (now == before && !missing.empty()) {
          const Status damage = DamageOf(missing);
          if (!damage.ok() && CurrentManifest() == now) return damage;
          // All tables can be opened now, although RocksDB could not open them.
          if (damage.ok() && ++unshown > kLooks) return NotShown(missing);
          std::this_thread::sleep_for(unshown * std::chrono::milliseconds(1));
        }
        before = now;
      } else if (!read.IsPathNotFound() && !read.IsNotFound()) {
        return Translate(read, path_);
      }
      RHIZOME_RETURN_IF_ERROR(ShowMore());
    }
    return Status::IoError(fmt::format(
        "catalogue '{}': its MANIFEST changes during every attempt to read it; try again",
        path_.string()));
  }

  /// Checks once whether the database shows all tables that the MANIFEST names. Returns false also
  /// if this cannot be determined.
  bool ShowsLatest() {
    if (RHIZOME_MUTANT("an earlier catalogue is shown")) return true;
    ManifestState now;
    std::string bytes;
    if (!LookAtManifest(now).ok()) return false;
    if (now == shown_) return true;
    const std::string path = (path_ / now.name).string();
    if (!rocksdb::ReadFileToString(env_.get(), path, &bytes).ok()) return false;
    const auto missing = MissingTables(std::as_bytes(std::span(bytes)));
    if (!missing || !missing->empty() || !ReadTables().ok()) return false;
    shown_ = now;
    return true;
  }

  rocksdb::Status LookAtManifest(ManifestState& state) {
    std::string current;
    rocksdb::Status status =
        rocksdb::ReadFileToString(env_.get(), (path_ / "CURRENT").string(), &current);
    if (!status.ok()) return status;
    state.name = ManifestNameIn(std::as_bytes(std::span(current)));
    if (!state.name.starts_with("MANIFEST-") || !CheckName("file", state.name).ok())
      return rocksdb::Status::Corruption("CURRENT names no MANIFEST");
    status = env_->GetFileSize((path_ / state.name).string(), &state.bytes);
    if (status.ok() && state.bytes > kMaxCatalogManifestBytes)
      return rocksdb::Status::Corruption(state.name + " is too long");
    return status;
  }

  static constexpr int kAttempts = 1000;  // max retries while writers change the MANIFEST
  static constexpr int kLooks = 10;       // max retries while the MANIFEST remains the same

  using Tables = std::map<std::uint64_t, std::uint64_t>;  // table numbers and lengths

  /// Returns the tables that the MANIFEST names and the database does not show.
  Result<Tables> MissingTables(std::span<const std::byte> manifest) {
    auto live = LiveTables(manifest);
    if (!live) return Fail(live.error().WithContext(fmt::format("catalogue '{}'", path_.string())));
    std::vector<rocksdb::LiveFileMetaData> shown;
    Ask([&] { db_->GetLiveFilesMetaData(&shown); });
    for (const rocksdb::LiveFileMetaData& file : shown) live->erase(file.file_number);
    return live;
  }

  Status NotShown(const Tables& missing) const {
    std::string names;
    for (const auto& [number, length] : missing) names += fmt::format(" {:06}.sst", number);
    return Status::Corruption(
        fmt::format("catalogue '{}': one of its tables belongs to another catalogue:{}",
                    path_.string(), names));
  }

  /// Returns why some tables are not shown. (RocksDB leaves out intact tables together with a
  /// damaged one.) Returns OK if all of them can be opened now.
  Status DamageOf(const Tables& missing) {
    rocksdb::Options options;
    options.env = env_.get();
    for (const auto& [number, length] : missing) {
      const std::string name = fmt::format("{:06}.sst", number);
      const auto damaged = [&](std::string_view what) {
        return Status::Corruption(
            fmt::format("catalogue '{}': its table {} {}", path_.string(), name, what));
      };
      std::uint64_t bytes = 0;
      const rocksdb::Status stat = env_->GetFileSize((path_ / name).string(), &bytes);
      if (stat.IsPathNotFound() || stat.IsNotFound()) return damaged("is missing");
      if (!stat.ok()) return Translate(stat, path_);
      if (bytes != length)
        return damaged(fmt::format("is {} bytes long, but was {}", bytes, length));
      rocksdb::SstFileReader reader(options);
      rocksdb::Status status = reader.Open((path_ / name).string());
      if (status.ok()) status = reader.VerifyChecksum();
      const Status said = Translate(status, path_);
      if (ProvesDamage(said)) return damaged(fmt::format("is damaged: {}", status.ToString()));
      RHIZOME_RETURN_IF_ERROR(said);
    }
    return fault_->status();
  }

  /// Returns the state after commit `last`, for commits whose record does not contain it.
  Result<HistoryState> HashEntries(std::uint64_t base, std::uint64_t last,
                                   const HistoryState& base_state) {
    StreamHash hash;
    hash.Update(base_state.commits);
    const Status scanned =
        ScanDeltaEntries(base, [&](std::string_view key, std::string_view value) -> Status {
          if (CommitOfDeltaKey(key) > last) return Status::Interrupted("all entries were seen");
          hash.Update(std::as_bytes(std::span(key)));
          hash.Update(std::as_bytes(std::span(value)));
          return Status::Ok();
        });
    if (!scanned.ok() && scanned.code() != StatusCode::kInterrupted) return Fail(scanned);
    return HistoryState{.commits = hash.xxh3(), .leader = base_state.leader};
  }

  Status CheckEntry(std::string_view key, std::string_view value) const {
    if (key.size() > sizeof(std::uint64_t) && OpenValue(key, value)) return Status::Ok();
    return Status::Corruption(fmt::format("catalogue '{}', delta: an entry of commit {} is damaged",
                                          path_.string(), CommitOfDeltaKey(key)));
  }

  FileSystem& fs_;
  const Path path_;
  const StoreId id_;
  const CatalogOptions options_;
  const OwnerProcess process_;
  std::shared_ptr<CatalogFault> fault_ = std::make_shared<CatalogFault>();
  bool writable_ = false;
  ManifestState shown_;                    // the MANIFEST all of whose tables a reader shows
  std::optional<CommitRecord> in_tables_;  // for a reader: the latest commit in these tables
  Mutex writes_;  // serialises writes and reading the resulting change number
  std::uint64_t synced_change_ RHIZOME_GUARDED_BY(writes_) =
      0;                                   // the last durable change since the catalogue was opened
  std::unique_ptr<LibraryThreads> timer_;  // RocksDB has a timer thread while a writer is open
  std::shared_mutex replacing_;  // exclusive while TakePlace swaps what rows are read from
  std::atomic<StatusCode> why_abandoned_{StatusCode::kOk};  // the code of the exception
  std::shared_ptr<CatalogThreads> threads_ = std::make_shared<CatalogThreads>();
  std::shared_ptr<CatalogGate> gate_ = std::make_shared<CatalogGate>();
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

Status RepairDatabase(FileSystem& fs, const Path& path) {
  RHIZOME_RETURN_IF_ERROR(BreakCatalogSeal(fs, path));
  const auto fault = std::make_shared<CatalogFault>();
  const auto env = MakeRepairEnv(EnvOf(fs), fault);
  const rocksdb::Status repaired =
      rocksdb::RepairDB(path.string(), DatabaseOptions(*env, Catalog::Mode::kWrite), Families());
  RHIZOME_RETURN_IF_ERROR(fault->status());
  return Translate(repaired, path);
}

Catalog::Catalog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::Open(FileSystem& fs, const Path& path, Mode mode,
                                               const StoreId& id, const CatalogOptions& options) {
  static const OwnerProcess first;  // RocksDB's threads belong to the process that used it first
  if (mode != Mode::kRead && !first.here())
    return Fail(Status::InvalidArgument(fmt::format(
        "catalogue '{}': this process is a fork of one that had a store open, and can only read; "
        "start a new process (exec) to write",
        path.string())));
  auto impl = std::make_unique<Impl>(fs, path, id, options);
  // RocksDB starts threads, and throws if the system grants none.
  RHIZOME_RETURN_IF_ERROR(Guarded([&] { return impl->Open(mode); }));
  return std::unique_ptr<Catalog>(new Catalog(std::move(impl)));
}

Result<CommitRecord> Catalog::Current() { return impl_->Current(); }
Status Catalog::Commit(const CommitRecord& record) { return impl_->Commit(record); }
Status Catalog::AppendDelta(std::span<const DeltaCommit> commits, bool sync) {
  return impl_->AppendDelta(commits, sync);
}
Status Catalog::ScanDelta(
    std::uint64_t after,
    const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit) {
  return impl_->ScanDelta(after, visit);
}
Status Catalog::ReadDeltaRow(std::uint64_t sequence, std::uint64_t array_id, std::int64_t vertex,
                             std::span<std::byte> out) {
  return impl_->ReadDeltaRow(sequence, array_id, vertex, out);
}
Result<HistoryState> Catalog::StateAfter(std::uint64_t last, std::uint64_t base,
                                         const HistoryState& base_state) {
  return impl_->StateAfter(last, base, base_state);
}
Result<std::uint64_t> Catalog::LastDelta() { return impl_->LastDelta(); }
Status Catalog::DropDelta(std::uint64_t last) { return impl_->DropDelta(last); }
Status Catalog::ScanDeltaEntries(
    std::uint64_t after,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return impl_->ScanDeltaEntries(after, visit);
}
Status Catalog::PutDeltaEntries(std::span<const std::pair<std::string, std::string>> entries) {
  return impl_->PutDeltaEntries(entries);
}
Status Catalog::CatchUp() { return impl_->CatchUp(); }
Status Catalog::VerifyChecksums() { return impl_->VerifyChecksums(); }
Status Catalog::Close() { return impl_->Close(); }
Status Catalog::CheckProcess() const { return impl_->CheckProcess(); }

}  // namespace internal
}  // namespace rhizome
