#pragma once

#include <rocksdb/env.h>

namespace rhizome::inline internal {

/// RocksDB's environment on the disk of this machine, which opens, makes and removes the files of a
/// catalogue as FileSystem::Posix() does: regular files only, never by waiting for a pipe, and
/// below an enclosed folder through no link. A file that is longer than RocksDB's can be, and that
/// RocksDB would read as a whole, is kCorruption. Never destroyed. Threads: any.
rocksdb::Env& PosixCatalogEnv();

}  // namespace rhizome::inline internal
