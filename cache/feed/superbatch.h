#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/loader.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Position of a sampled minibatch in the file of its superbatch.
struct SuperbatchEntry {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;
};

/// Encodes a minibatch without its features. The encoding is used in scratch files for minutes, on
/// one machine, so numbers are in native byte order; the checksum of the entry protects them. The
/// numbers are packed into few bits (packed_numbers.h), because they are most of the scratch space.
/// A row takes the bits of its class. A neighbour that appears for the first time takes about 2
/// bits, because its number is the next one. Lengths are written instead of offsets, and for the
/// empty lists of the last hop only their count. A type takes the bits of its class, a weight up to
/// 32 bits. (Rows are in the sampler's order, which must be restored: sorted differences plus the
/// permutation would take more bits than the rows.)
std::vector<std::byte> EncodeMinibatch(const Minibatch& minibatch);

/// Decodes a minibatch. Errors: kCorruption, inconsistent lengths.
Result<Minibatch> DecodeMinibatch(std::span<const std::byte> bytes);

/// Writes the minibatches of a superbatch sequentially to a scratch file.
/// Threads: one at a time.
class SuperbatchWriter {
 public:
  static Result<SuperbatchWriter> Create(FileSystem& fs, const Path& path);
  Status Append(const Minibatch& minibatch);

  /// Closes the file and returns the positions of all minibatches, in order.
  Result<std::vector<SuperbatchEntry>> Finish();

 private:
  explicit SuperbatchWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
  std::vector<SuperbatchEntry> entries_;
};

/// Reads one minibatch. Errors: kCorruption, kIoError, naming file and offset.
Result<Minibatch> ReadMinibatch(ReadableFile& file, const SuperbatchEntry& entry);

}  // namespace internal
}  // namespace rhizome
