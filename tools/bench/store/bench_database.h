#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rocksdb {
class DB;
}

namespace rhizome {

/// Plain RocksDB, the reference of `bench write` and `bench lookup`. Has the options of the
/// catalogue and a block cache that holds all data.
/// Threads: all functions may be called concurrently.
class BenchDatabase {
 public:
  struct Entry {
    std::string key;
    std::string value;
  };

  static Result<std::unique_ptr<BenchDatabase>> Create(const Path& path);
  ~BenchDatabase();

  /// Writes all entries in one batch.
  Status Write(const std::vector<Entry>& entries, bool sync);

  /// Flushes and compacts, so that reads search one sorted run.
  Status Settle();
  Status Get(std::string_view key, std::string& value) const;
  Status MultiGet(const std::vector<std::string>& keys, std::vector<std::string>& values) const;

  /// Returns the key of a number and a kind. Big-endian, so that keys are ordered by number.
  static std::string Key(std::uint64_t number, char kind);

 private:
  explicit BenchDatabase(rocksdb::DB* db);
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace rhizome
