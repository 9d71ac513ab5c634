#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"

namespace RHIZOME_API rhizome {

/// An input file, read once from front to back: plain, gzip (name ends in .gz) or Zstandard (.zst).
/// Gzip members and zstd frames that follow one another are one stream, as their tools have it.
/// Decompression takes bounded memory: a zstd frame may ask for a window of at most 128 MiB.
/// Symbolic links are followed: these are the user's files, not a store's. Threads: one at a time.
/// Ownership: `fs` must outlive it.
class InputStream {
 public:
  /// A file, for those who read it again or beside another reader. Errors: kNotFound;
  /// kPermissionDenied; kIoError; kInvalidArgument, a pipe, a terminal or "-", which can be read
  /// once.
  static Result<std::unique_ptr<InputStream>> Open(FileSystem& fs, const Path& path);

  /// For those who read it once: pipes (those of a shell's `<(...)`, of mkfifo, /dev/stdin) and
  /// terminals as well, and "-" for standard input, whose path() is "<stdin>". Their length is not
  /// known: total_bytes() is 0. Read waits for whoever writes, and fails with kInterrupted when a
  /// signal handler has run. Errors: as Open.
  static Result<std::unique_ptr<InputStream>> OpenOnce(FileSystem& fs, const Path& path);

  /// Is `path` one of those that can be read once only?
  static bool IsReadOnce(const Path& path);
  virtual ~InputStream() = default;

  /// Reads up to out.size() bytes; returns how many, 0 only at the end.
  /// Errors: kInvalidArgument naming the file: a truncated or damaged compressed stream; kIoError.
  virtual Result<std::size_t> Read(std::span<std::byte> out) = 0;

  /// Reads until `out` is full or the stream ends; returns how many bytes that were.
  Result<std::size_t> ReadFull(std::span<std::byte> out);

  const Path& path() const { return path_; }

  /// Bytes of the file itself (compressed ones) that were read so far, and that there are.
  std::uint64_t consumed_bytes() const { return offset_bytes_; }
  std::uint64_t total_bytes() const { return file_->size_bytes(); }

 protected:
  InputStream(std::unique_ptr<ReadableFile> file, Path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  /// The next bytes of the file itself; 0 at its end.
  Result<std::size_t> ReadFile(std::span<std::byte> out);

 private:
  std::unique_ptr<ReadableFile> file_;
  Path path_;
  std::uint64_t offset_bytes_ = 0;
};

/// The name without .gz or .zst, by which the format of the content is told: "a.csv.gz" -> ".csv".
std::string ContentExtension(const Path& path);

}  // namespace rhizome
