#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The extent of a sampled minibatch in the superbatch's file.
struct SuperbatchEntry {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;
};

/// Encodes a minibatch without its features. The bytes live in scratch for minutes and on one
/// machine only, so they are in native byte order; the entry's checksum guards them. They are
/// packed into few bits (packed_numbers.h), as they are most of the scratch: a row takes as many
/// bits as its class; a neighbour that appears for the first time takes about 2 bits, as its number
/// is the next one; lengths are written instead of offsets, and only the count of the last hop's
/// empty lists; a type takes as many bits as its class, a weight 32 at most. (Rows are in the
/// sampler's order, which must be restored: sorted differences plus the permutation would take more
/// bits than the rows.)
std::vector<std::byte> EncodeMinibatch(const Minibatch& minibatch);

/// Decodes a minibatch. Errors: kCorruption, lengths that do not add up.
Result<Minibatch> DecodeMinibatch(std::span<const std::byte> bytes);

/// Writes the minibatches of a superbatch, one after another, to a scratch file.
/// Threads: one at a time.
class SuperbatchWriter {
 public:
  static Result<SuperbatchWriter> Create(FileSystem& fs, const Path& path);
  Status Append(const Minibatch& minibatch);

  /// Closes the file and returns the extents of all minibatches, in order.
  Result<std::vector<SuperbatchEntry>> Finish();

 private:
  explicit SuperbatchWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
  std::vector<SuperbatchEntry> entries_;
};

/// Reads one minibatch back. Errors: kCorruption, kIoError, naming file and offset.
Result<Minibatch> ReadMinibatch(ReadableFile& file, const SuperbatchEntry& entry);

}  // namespace rhizome::inline internal
