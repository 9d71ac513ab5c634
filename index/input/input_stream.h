#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "index/input/file_format.h"
#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {
class Decoder;
class RawFile;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// An input file, read once from front to back: plain, gzip, Zstandard, bzip2 or xz. Its first
/// bytes determine the compression, not its name. Consecutive members, frames or streams form one,
/// as with the tools of these names; zeros after one are padding (gzip, bzip2, and xz by fours).
/// Decompression needs bounded memory: the window of zstd and the dictionary of xz may have at most
/// 128 MiB, and bzip2 uses 4 MB. Symbolic links are followed, because these are files of the user
/// and not of a store.
/// Threads: one at a time. Ownership: `fs` must outlive it.
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

  /// Reads an open file from front to back.
  static std::unique_ptr<InputStream> OfFile(std::unique_ptr<ReadableFile> file);

  /// Returns a stream of `text`. `path` then appears only in messages.
  static std::unique_ptr<InputStream> OfText(std::string text, Path path);

  ~InputStream();

  /// Reads up to out.size() bytes and returns their number, which is 0 only at the end.
  /// Errors: kInvalidArgument, a truncated or damaged compressed stream, or one that needs too
  /// large a window, naming the file; kIoError; kOutOfMemory.
  Result<std::size_t> Read(std::span<std::byte> out);

  /// Reads until `out` is full or the stream ends; returns the number of bytes.
  Result<std::size_t> ReadFull(std::span<std::byte> out);

  const Path& path() const;

  /// Returns the compression of the file. Known after the first read.
  Compression compression() const { return compression_; }

  /// Return the bytes of the file itself (compressed, if the file is): read so far, and in total.
  std::uint64_t consumed_bytes() const;
  std::uint64_t total_bytes() const;

 private:
  InputStream(std::unique_ptr<ReadableFile> file, Path path);
  Status Begin();

  std::unique_ptr<RawFile> raw_;
  std::unique_ptr<Decoder> decoder_;  // null until the first read
  Compression compression_ = Compression::kNone;
  bool is_file_ = true;  // its name may say how it is compressed
};

}  // namespace rhizome
