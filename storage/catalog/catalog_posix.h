#pragma once

#include <rocksdb/env.h>

namespace rhizome {
inline namespace internal {

/// Returns RocksDB's environment for the real disk. It opens, creates and removes the files of a
/// catalogue through FileSystem::Posix(): regular files only, without waiting for a pipe, and
/// without following links below an enclosed folder. A file that RocksDB reads as a whole and that
/// is longer than any such file of RocksDB is Corruption. The environment is never destroyed.
/// Threads: any.
rocksdb::Env& PosixCatalogEnv();

}  // namespace internal
}  // namespace rhizome
