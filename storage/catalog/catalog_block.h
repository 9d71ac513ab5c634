#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace rhizome::inline internal {

/// Visits an entry of a block. Returns false to refuse the block.
using BlockEntryFunction =
    std::function<bool(std::string_view key, std::span<const std::byte> value)>;

/// The form of the values in a block: kSized, behind their length; kHandles, a block handle (offset
/// and size in the file), which needs no length.
enum class BlockValues { kSized, kHandles };

/// Reads a block of one of RocksDB's tables, without its trailer. A block holds entries, each of
/// which shares a prefix of its key with the one before except at restarts, then the offsets of the
/// restarts, then their count. Returns false unless the block is exactly what RocksDB writes;
/// RocksDB itself does not check for offsets outside of the block or lengths beyond its end.
/// Touches no file.
/// Source: RocksDB, table/block_based/block_builder.cc, without the index of hashes.
bool ReadRocksBlock(std::span<const std::byte> block, BlockValues values,
                    const BlockEntryFunction& visit);

}  // namespace rhizome::inline internal
