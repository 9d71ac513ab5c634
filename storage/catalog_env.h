#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <memory>

namespace rhizome {

/// RocksDB's environment `base`, but that it bears power cuts which RocksDB does not:
///   - a file is moved over CURRENT only when all names in the folder are durable, that of the
///     MANIFEST which the new CURRENT names among them. RocksDB syncs the folder once, afterwards:
///     a disk that brings names back in another order than they were given would leave a catalogue
///     that cannot be opened;
///   - a last record of a log (write-ahead log, MANIFEST) that was not synced and whose length came
///     before its bytes is the end of the log. RocksDB would refuse the catalogue;
/// that it overlooks no damage of a log which RocksDB takes for such an end (catalog_log.h), and
/// that it shows no table to RocksDB whose damage would end the process (catalog_table.h).
/// Ownership: `base` and the result must outlive the databases that use them.
std::unique_ptr<rocksdb::Env> MakeCatalogEnv(rocksdb::Env& base);

/// The same for RocksDB's repair of a copy: once a write failed all later ones do, and `*broken` is
/// set. RocksDB goes on after some that failed, and comes upon an assertion that ends the process,
/// or says that all is well.
std::unique_ptr<rocksdb::Env> MakeRepairEnv(rocksdb::Env& base,
                                            std::shared_ptr<std::atomic<bool>> broken);

}  // namespace rhizome
