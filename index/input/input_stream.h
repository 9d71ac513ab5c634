#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace RHIZOME_API rhizome {

/// An input file, read once from front to back: plain, gzip (the name ends in .gz) or Zstandard
/// (.zst). Consecutive gzip members or zstd frames form one stream, as with the tools gzip and
/// zstd. Decompression needs bounded memory: a zstd frame may use a window of at most 128 MiB.
/// Symbolic links are followed, because these are files of the user and not of a store.
/// Threads: one at a time.
/// Ownership: `fs` must outlive it.
class InputStream {
 public:
  /// Opens a file that the caller may read again, or concurrently through another reader.
  /// Errors: kNotFound; kPermissionDenied; kIoError; kInvalidArgument, a pipe, a terminal or "-",
  /// which can be read only once.
  static Result<std::unique_ptr<InputStream>> Open(FileSystem& fs, const Path& path);

  /// Opens an input that is read once. Besides files it accepts pipes (a shell's `<(...)`, mkfifo,
  /// /dev/stdin), terminals, and "-" for standard input, whose path() is "<stdin>". The length of
  /// these inputs is unknown, so total_bytes() is 0. Read waits for the writer, and fails with
  /// kInterrupted after a signal handler has run.
  /// Errors: as Open.
  static Result<std::unique_ptr<InputStream>> OpenOnce(FileSystem& fs, const Path& path);

  /// Returns whether `path` can be read only once.
  static bool IsReadOnce(const Path& path);
  virtual ~InputStream() = default;

  /// Reads up to out.size() bytes and returns their number, which is 0 only at the end.
  /// Errors: kInvalidArgument, a truncated or damaged compressed stream, naming the file; kIoError.
  virtual Result<std::size_t> Read(std::span<std::byte> out) = 0;

  /// Reads until `out` is full or the stream ends; returns the number of bytes.
  Result<std::size_t> ReadFull(std::span<std::byte> out);

  const Path& path() const { return path_; }

  /// Return the bytes of the file itself (compressed, if the file is): read so far, and in total.
  std::uint64_t consumed_bytes() const { return offset_bytes_; }
  std::uint64_t total_bytes() const { return file_->size_bytes(); }

 protected:
  InputStream(std::unique_ptr<ReadableFile> file, Path path)
      : file_(std::move(file)), path_(std::move(path)) {}

  /// Reads the next bytes of the file itself; returns 0 at its end.
  Result<std::size_t> ReadFile(std::span<std::byte> out);

 private:
  std::unique_ptr<ReadableFile> file_;
  Path path_;
  std::uint64_t offset_bytes_ = 0;
};

/// Returns the extension without .gz or .zst, which determines the format of the content:
/// "a.csv.gz" -> ".csv".
std::string ContentExtension(const Path& path);

}  // namespace rhizome
