#pragma once

namespace rocksdb {
class Env;
}

namespace rhizome {
inline namespace internal {

/// The disk for RocksDB's catalogues of a FileSystem that is not the real one: a fake that counts,
/// fails and forgets the operations of RocksDB together with the operations of the store. It is not
/// public, because RocksDB's types are not part of the interface.
/// Threads: any. Ownership: the FileSystem owns it.
class CatalogDisk {
 public:
  virtual ~CatalogDisk() = default;
  virtual rocksdb::Env& env() = 0;
};

}  // namespace internal
}  // namespace rhizome
