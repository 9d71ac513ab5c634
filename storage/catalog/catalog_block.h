#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace rhizome {
inline namespace internal {

/// Visits an entry of a block. Returns false to refuse the block.
using BlockEntryFunction =
    std::function<bool(std::string_view key, std::span<const std::byte> value)>;

/// The encoding of the values in a block: kSized values are preceded by their length; kHandles
/// values are block handles (offset and size in the file), which need no length.
enum class BlockValues { kSized, kHandles };

/// Reads a block of a RocksDB table, without its trailer. A block contains entries, then the
/// offsets of the restarts, then their number. Except at restarts, an entry shares a prefix of its
/// key with the previous one. Returns false unless the block is exactly as RocksDB writes it;
/// RocksDB itself does not check for offsets outside the block or lengths beyond its end. Accesses
/// no file.
/// Source: RocksDB, table/block_based/block_builder.cc, without the hash index.
bool ReadRocksBlock(std::span<const std::byte> block, BlockValues values,
                    const BlockEntryFunction& visit);

}  // namespace internal
}  // namespace rhizome
