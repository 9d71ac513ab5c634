#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rocksdb {
class DB;
}

namespace rhizome {

/// Bare RocksDB, the peer of `bench write` and `bench lookup`, with the catalogue's options and a
/// block cache that holds everything.
/// Threads: all functions from many.
class BenchDatabase {
 public:
  struct Entry {
    std::string key;
    std::string value;
  };

  static Result<std::unique_ptr<BenchDatabase>> Create(const Path& path);
  ~BenchDatabase();

  /// One write of all entries.
  Status Write(const std::vector<Entry>& entries, bool sync);

  /// Flushes and compacts, so that reads find one sorted run.
  Status Settle();
  Status Get(std::string_view key, std::string& value) const;
  Status MultiGet(const std::vector<std::string>& keys, std::vector<std::string>& values) const;

  /// Big-endian, so that keys are in order of numbers.
  static std::string Key(std::uint64_t number, char kind);

 private:
  explicit BenchDatabase(rocksdb::DB* db);
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace rhizome
