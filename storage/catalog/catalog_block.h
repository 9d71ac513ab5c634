#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace rhizome {

/// What is to be done with an entry of a block; false: the block is refused.
using BlockEntryFunction =
    std::function<bool(std::string_view key, std::span<const std::byte> value)>;

/// How the values of a block are stored: behind their length, or as a place in the file, which
/// shows where it ends.
enum class BlockValues { kSized, kHandles };

/// Reads a block of one of RocksDB's tables, without its checksum: entries, each sharing the
/// beginning of its key with the one before, or not where a restart is; the offsets of the
/// restarts; their count. False unless it is exactly what RocksDB writes: what it reads itself it
/// does not check (an offset outside of the block, a length beyond its end). Touches no file.
/// Source: RocksDB, table/block_based/block_builder.cc, without the index of hashes.
bool ReadRocksBlock(std::span<const std::byte> block, BlockValues values,
                    const BlockEntryFunction& visit);

}  // namespace rhizome
