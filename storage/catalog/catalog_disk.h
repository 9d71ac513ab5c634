#pragma once

namespace rocksdb {
class Env;
}

namespace rhizome::inline internal {

/// Where RocksDB keeps the catalogues of one FileSystem, if that is not the disk of the machine: a
/// fake that counts, fails and forgets RocksDB's operations together with those of the store.
/// Private: RocksDB's types are no part of the interface.
/// Threads: any. Ownership: the FileSystem's.
class CatalogDisk {
 public:
  virtual ~CatalogDisk() = default;
  virtual rocksdb::Env& env() = 0;
};

}  // namespace rhizome::inline internal
