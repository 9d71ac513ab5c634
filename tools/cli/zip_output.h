#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/io/files.h"

namespace rhizome {

/// Writes a zip archive of stored (uncompressed) members sequentially. numpy.load reads it as .npz.
/// Zip64 records are written only where needed: for more than 65,534 members, or offsets of 4 GiB
/// and above.
/// Source: PKWARE APPNOTE 6.3.3, sections 4.3 and 4.5.3.
/// Threads: one at a time.
class ZipOutput {
 public:
  static Result<ZipOutput> Create(const Path& path);

  /// Adds a member whose content is `head` (a header) followed by `body`.
  /// Errors: kInvalidArgument, 4 GiB or more; kOutOfSpace; kIoError.
  Status Add(std::string_view name, std::string_view head, std::span<const std::byte> body);

  /// Writes the central directory and commits the file. The archive appears at its path only if
  /// this returns OK.
  Status Finish();

 private:
  struct Member {
    std::string name;
    std::uint32_t crc32 = 0;
    std::uint32_t size_bytes = 0;
    std::uint64_t offset_bytes = 0;
  };
  explicit ZipOutput(OutputFile file) : file_(std::move(file)) {}
  Status Append(std::string_view bytes);

  OutputFile file_;
  std::uint64_t offset_bytes_ = 0;
  std::vector<Member> members_;
};

}  // namespace rhizome
