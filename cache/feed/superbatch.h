#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Where one sampled minibatch lies in its superbatch's file.
struct SuperbatchEntry {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;
};

/// A minibatch without its features, as bytes, and back. The bytes live in scratch for minutes and
/// only on one machine: native byte order, guarded by the entry's checksum. In few bits
/// (packed_numbers.h), as they are most of the scratch: rows as wide as the greatest; neighbours at
/// first sight, whose numbers follow one another, 2 bits each; lengths of lists instead of offsets,
/// and of the last hop's empty ones only how many there are. (Rows are in the sampler's order,
/// which must come back: sorted, their differences and the permutation take more bits than the
/// rows.)
std::vector<std::byte> EncodeMinibatch(const Minibatch& minibatch);

/// Errors: kCorruption, lengths that do not add up.
Result<Minibatch> DecodeMinibatch(std::span<const std::byte> bytes);

/// Writes the minibatches of a superbatch, one after another, to a scratch file.
/// Threads: one at a time.
class SuperbatchWriter {
 public:
  static Result<SuperbatchWriter> Create(FileSystem& fs, const Path& path);
  Status Append(const Minibatch& minibatch);

  /// Closes the file and returns where everything lies.
  Result<std::vector<SuperbatchEntry>> Finish();

 private:
  explicit SuperbatchWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
  std::vector<SuperbatchEntry> entries_;
};

/// Reads one minibatch back. Errors: kCorruption, kIoError, naming file and offset.
Result<Minibatch> ReadMinibatch(ReadableFile& file, const SuperbatchEntry& entry);

}  // namespace rhizome::inline internal
