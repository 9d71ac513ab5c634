#include "tools/bench/store/bench_database.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace rhizome {
namespace {

constexpr std::size_t kBlockCacheBytes = std::size_t{4} << 30;

Status Translate(const rocksdb::Status& status) {
  return status.ok() ? Status::Ok() : Status::IoError("RocksDB: " + status.ToString());
}

}  // namespace

Result<std::unique_ptr<BenchDatabase>> BenchDatabase::Create(const Path& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.max_background_jobs = 2;
  options.write_buffer_size = std::size_t{4} << 20;
  options.compression = rocksdb::kNoCompression;
  options.paranoid_file_checks = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* db = nullptr;
  RHIZOME_RETURN_IF_ERROR(Translate(rocksdb::DB::Open(options, path.string(), &db)));
  return std::unique_ptr<BenchDatabase>(new BenchDatabase(db));
}

BenchDatabase::BenchDatabase(rocksdb::DB* db) : db_(db) {}
BenchDatabase::~BenchDatabase() = default;

Status BenchDatabase::Write(const std::vector<Entry>& entries, bool sync) {
  rocksdb::WriteBatch batch;
  for (const Entry& entry : entries)
    RHIZOME_RETURN_IF_ERROR(Translate(batch.Put(entry.key, entry.value)));
  rocksdb::WriteOptions options;
  options.sync = sync;
  return Translate(db_->Write(options, &batch));
}

Status BenchDatabase::Settle() {
  RHIZOME_RETURN_IF_ERROR(Translate(db_->Flush({})));
  return Translate(db_->CompactRange({}, nullptr, nullptr));
}

Status BenchDatabase::Get(std::string_view key, std::string& value) const {
  rocksdb::PinnableSlice pinned(&value);
  const rocksdb::Status status = db_->Get({}, db_->DefaultColumnFamily(), key, &pinned);
  if (status.ok() && pinned.IsPinned()) value.assign(pinned.data(), pinned.size());
  return Translate(status);
}

Status BenchDatabase::MultiGet(const std::vector<std::string>& keys,
                               std::vector<std::string>& values) const {
  const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> pinned(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db_->MultiGet({}, db_->DefaultColumnFamily(), keys.size(), slices.data(), pinned.data(),
                statuses.data());
  values.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(Translate(statuses[i]));
    values[i].assign(pinned[i].data(), pinned[i].size());
  }
  return Status::Ok();
}

std::string BenchDatabase::Key(std::uint64_t number, char kind) {
  std::string key;
  for (int shift = 56; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>(number >> static_cast<unsigned>(shift) & 0xFF));
  key.push_back(kind);
  return key;
}

}  // namespace rhizome
