#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Layout of a table of rows on disk: blocks, each with two slots.
struct TableShape {
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t rows_per_block = 0;
  std::uint64_t blocks = 0;

  /// `rows` and `row_bytes` are at least 1.
  static TableShape Of(std::uint64_t rows, std::uint64_t row_bytes);

  std::uint64_t file_bytes() const { return 2 * blocks * block_bytes; }
  std::uint64_t OffsetOf(std::uint64_t block, bool slot) const {
    return ((slot ? blocks : 0) + block) * block_bytes;
  }
  std::uint64_t RowsIn(std::uint64_t block) const {
    return block + 1 == blocks ? rows - block * rows_per_block : rows_per_block;
  }
};

/// A bit for each block.
class BlockBits {
 public:
  explicit BlockBits(std::uint64_t blocks = 0) : bytes_((blocks + 7) / 8) {}
  bool operator[](std::uint64_t block) const {
    return (static_cast<unsigned>(bytes_[block / 8]) >> (block % 8) & 1U) != 0;
  }
  void Set(std::uint64_t block, bool bit) {
    const auto mask = static_cast<std::byte>(1U << (block % 8));
    bytes_[block / 8] = bit ? bytes_[block / 8] | mask : bytes_[block / 8] & ~mask;
  }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// The content of a checkpoint: which slot of each block is valid, with its checksum, and the
/// progress of the caller.
struct TableCheckpoint {
  std::uint64_t number = 0;  ///< checkpoints of a table count from 1
  BlockBits slots;
  std::vector<std::uint32_t> crcs;  ///< by block
  std::vector<std::byte> progress;
};

Path TableRowsPath(const Path& folder, const std::string& name);
Path TableCheckpointPath(const Path& folder, const std::string& name, std::uint64_t number);

/// Returns the bytes of a checkpoint's file, without the caller's progress.
std::uint64_t TableCheckpointBytes(const TableShape& shape);

/// Returns the numbers of the checkpoint files in the folder, ascending; some may be incomplete.
Result<std::vector<std::uint64_t>> ListTableCheckpoints(FileSystem& fs, const Path& folder,
                                                        const std::string& name);

/// Writes the file of a checkpoint and syncs it and its name. Errors: kIoError, kOutOfSpace.
Status WriteTableCheckpoint(FileSystem& fs, const Path& folder, const std::string& name,
                            const TableShape& shape, const TableCheckpoint& checkpoint);

/// Reads and verifies the file of a checkpoint. Errors: kCorruption, it is incomplete or damaged;
/// kInvalidArgument, it is of a table of another shape; kUnsupported, a newer format; kIoError.
Result<TableCheckpoint> ReadTableCheckpoint(FileSystem& fs, const Path& folder,
                                            const std::string& name, const TableShape& shape,
                                            std::uint64_t number);

}  // namespace internal
}  // namespace rhizome
