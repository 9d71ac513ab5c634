#pragma once

#include <rocksdb/env.h>

namespace rhizome::inline internal {

/// Returns RocksDB's environment for the disk of this machine. It opens, makes and removes the
/// files of a catalogue by FileSystem::Posix(): regular files only, without waiting for a pipe, and
/// without following links below an enclosed folder. A file that RocksDB would read as a whole, and
/// that is longer than RocksDB's can be, is Corruption. It is never destroyed. Threads: any.
rocksdb::Env& PosixCatalogEnv();

}  // namespace rhizome::inline internal
