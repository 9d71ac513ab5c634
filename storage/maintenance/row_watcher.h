#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/chunk_array.h"
#include "storage/io/file_scan.h"

namespace rhizome {
inline namespace internal {

/// Compares the rows of one chunk of a row array with the checksums in its sidecar while the chunk
/// is scanned. Threads: one at a time.
class RowWatcher : public FileWatcher {
 public:
  using SeeRow = std::function<void(std::uint64_t row, std::span<const std::byte> bytes)>;

  /// The first callback receives the first row that differs; `see`, if set, receives each
  /// row. Errors: errors of reading the checksums.
  static Result<std::unique_ptr<RowWatcher>> Make(const ArrayEntry& rows, std::uint64_t chunk,
                                                  const ChunkArray& sums,
                                                  std::function<void(std::uint64_t row)> tell,
                                                  SeeRow see = {});

  void See(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;

 private:
  RowWatcher() = default;
  void Check(std::span<const std::byte> row);

  std::uint64_t array_id_ = 0;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t first_row_ = 0;
  std::uint64_t seen_ = 0;  // rows so far
  std::vector<std::uint32_t> sums_;
  std::vector<std::byte> begun_;  // the beginning of a row that continues in the next piece
  bool differs_ = false;
  std::function<void(std::uint64_t)> tell_;
  SeeRow see_;
};

}  // namespace internal
}  // namespace rhizome
