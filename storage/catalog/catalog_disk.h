#pragma once

namespace rocksdb {
class Env;
}

namespace rhizome::inline internal {

/// The disk on which RocksDB keeps the catalogues of one FileSystem, if that is not the disk of the
/// machine: a fake that counts, fails and forgets RocksDB's operations together with those of the
/// store. It is not public, since RocksDB's types are no part of the interface.
/// Threads: any. Ownership: the FileSystem owns it.
class CatalogDisk {
 public:
  virtual ~CatalogDisk() = default;
  virtual rocksdb::Env& env() = 0;
};

}  // namespace rhizome::inline internal
