// Input streams. OpenOnce opens a file or a pipe (OpenFile, Pipe) and wraps it in the stream of its
// format (StreamOf): plain, gzip or zstd. A stream reads the file through InputStream::ReadFile in
// blocks and decompresses it into the caller's buffer.

#include "index/input/input_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "storage/base/check.h"
#include "storage/io/posix_file.h"

namespace rhizome {
namespace {

constexpr std::size_t kFileBlockBytes = std::size_t{256} << 10;
constexpr int kMaxWindowLog = 27;              // 128 MiB, see InputStream
constexpr std::size_t kFrameHeaderBytes = 18;  // upper bound of zstd

Status Truncated(const Path& path, const char* format) {
  return Status::InvalidArgument(
      fmt::format("{}: truncated {} stream: the file ends in the middle of the compressed data; "
                  "copy or download it again",
                  path.string(), format));
}

Status Damaged(const Path& path, const char* format, std::uint64_t offset, std::string_view why) {
  return Status::InvalidArgument(
      fmt::format("{}: damaged {} stream near byte {}: {}", path.string(), format, offset, why));
}

class PlainStream final : public InputStream {
 public:
  PlainStream(std::unique_ptr<ReadableFile> file, Path path)
      : InputStream(std::move(file), std::move(path)) {}
  Result<std::size_t> Read(std::span<std::byte> out) override { return ReadFile(out); }
};

/// An input that can be read once, from front to back: a pipe, a terminal, standard input.
class Pipe final : public ReadableFile {
 public:
  Pipe(Descriptor descriptor, Path path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    RHIZOME_CHECK(offset_bytes == offset_bytes_);
    while (true) {
      // Unlike read, poll returns after every signal handler. It also waits if no process has
      // opened the pipe for writing yet, which read would report as the end.
      pollfd wanted{.fd = descriptor_.get(), .events = POLLIN, .revents = 0};
      const int ready = ::poll(&wanted, 1, -1);
      const ssize_t bytes = ready < 0 ? -1 : ::read(descriptor_.get(), out.data(), out.size());
      if (bytes >= 0) {
        offset_bytes_ += static_cast<std::uint64_t>(bytes);
        return static_cast<std::size_t>(bytes);
      }
      if (ready > 0 && errno == EAGAIN) continue;  // another reader took the bytes first
      if (errno == EINTR)
        return Fail(Status::Interrupted("interrupted while reading " + path_.string()));
      return Fail(SystemError(errno, "read", path_));
    }
  }
  std::uint64_t size_bytes() const override { return 0; }
  const Path& path() const override { return path_; }
  int descriptor() const override { return descriptor_.get(); }

 private:
  const Descriptor descriptor_;
  const Path path_;
  std::uint64_t offset_bytes_ = 0;
};

/// Returns a description of an input that can be read only once. Returns an empty string for files
/// and for names that do not exist.
std::string_view KindOfPipe(const Path& path) {
  using std::filesystem::file_type;
  std::error_code unknown;
  const file_type type = std::filesystem::status(path, unknown).type();
  if (type == file_type::fifo) return "a pipe";
  if (type == file_type::character) return "a device";
  if (type == file_type::socket) return "a socket";
  return path == "-" && type == file_type::not_found ? "standard input" : "";
}

Result<std::unique_ptr<ReadableFile>> OpenPipe(const Path& path) {
  const bool standard = path == "-";
  const int fd = standard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                          : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return Fail(SystemError(errno, "open", path));
  return std::make_unique<Pipe>(Descriptor(fd), standard ? "<stdin>" : path);
}

Result<std::unique_ptr<ReadableFile>> OpenFile(FileSystem& fs, const Path& path) {
  // FileSystem refuses symbolic links, to protect stores, but input files may be links.
  std::error_code unresolved;
  const Path real = std::filesystem::canonical(path, unresolved);
  return fs.OpenRead(unresolved ? path : real);
}

class GzipStream final : public InputStream {
 public:
  GzipStream(std::unique_ptr<ReadableFile> file, Path path)
      : InputStream(std::move(file), std::move(path)), block_(kFileBlockBytes) {}
  ~GzipStream() override {
    if (started_) inflateEnd(&zlib_);
  }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room && room > 0) {
      if (zlib_.avail_in == 0) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, Refill());
        if (!more) return std::size_t{0};
      }
      RHIZOME_RETURN_IF_ERROR(Inflate());
    }
    return static_cast<std::size_t>(room - zlib_.avail_out);
  }

 private:
  /// Returns false at the end of the file, which must not be within a member.
  Result<bool> Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, ReadFile(block_));
    if (bytes == 0) {
      if (!started_ || in_member_) return Fail(Truncated(path(), "gzip"));
      return false;
    }
    zlib_.next_in = reinterpret_cast<Bytef*>(block_.data());
    zlib_.avail_in = static_cast<uInt>(bytes);
    return true;
  }

  Status Inflate() {
    if (!started_) {
      if (inflateInit2(&zlib_, 16 + MAX_WBITS) != Z_OK)
        return Status::OutOfMemory(fmt::format("{}: zlib could not start", path().string()));
      started_ = true;
    } else if (!in_member_) {
      inflateReset(&zlib_);
    }
    in_member_ = true;
    const int code = inflate(&zlib_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) in_member_ = false;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return Status::Ok();
    return Damaged(path(), "gzip", consumed_bytes() - zlib_.avail_in,
                   zlib_.msg != nullptr ? zlib_.msg : "zlib error");
  }

  std::vector<std::byte> block_;
  z_stream zlib_{};
  bool started_ = false;
  bool in_member_ = false;
};

class ZstdStream final : public InputStream {
 public:
  ZstdStream(std::unique_ptr<ReadableFile> file, Path path)
      : InputStream(std::move(file), std::move(path)),
        block_(kFileBlockBytes),
        context_(ZSTD_createDCtx()) {
    if (context_) ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Result<std::size_t> Read(std::span<std::byte> out) override {
    if (!context_) return Fail(Status::OutOfMemory("zstd could not start"));
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos == 0 && output.size > 0) {
      // Within a frame zstd may hold back output, so it is called even if all input is consumed.
      if (input_.pos == input_.size && !flushing_) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, Refill());
        if (!more) return std::size_t{0};
      }
      const std::size_t from = input_.pos;
      const std::size_t decoded = output.pos;
      const std::size_t hint = ZSTD_decompressStream(context_.get(), &output, &input_);
      if (ZSTD_isError(hint))
        return Fail(Damaged(path(), "zstd", consumed_bytes() - (input_.size - input_.pos),
                            ZSTD_getErrorName(hint)));
      in_frame_ = hint != 0;
      flushing_ = in_frame_ && output.pos == output.size;
      RHIZOME_RETURN_IF_ERROR(CountFrame(from, output.pos - decoded));
    }
    return output.pos;
  }

 private:
  Result<bool> Refill() {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, ReadFile(block_));
    if (bytes == 0) {
      if (in_frame_ || consumed_bytes() == 0) return Fail(Truncated(path(), "zstd"));
      return false;
    }
    input_ = {block_.data(), bytes, 0};
    return true;
  }

  /// Checks the frame's length if the frame declares one. Zstd checks it when it decodes a frame at
  /// once, but not if the last of several blocks is empty.
  Status CountFrame(std::size_t from, std::size_t decoded) {
    const std::size_t missing = kFrameHeaderBytes - header_.size();
    const std::byte* const begin = block_.data() + from;
    header_.insert(header_.end(), begin, begin + std::min(input_.pos - from, missing));
    frame_bytes_ += decoded;
    if (in_frame_) return Status::Ok();
    const unsigned long long declared = ZSTD_getFrameContentSize(header_.data(), header_.size());
    const bool known = declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != ZSTD_CONTENTSIZE_ERROR;
    if (known && declared != frame_bytes_) {
      return Damaged(path(), "zstd", consumed_bytes() - (input_.size - input_.pos),
                     "a frame does not have the length in its header");
    }
    header_.clear();
    frame_bytes_ = 0;
    return Status::Ok();
  }

  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::vector<std::byte> block_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool in_frame_ = false;
  bool flushing_ = false;
  std::vector<std::byte> header_;  // the first bytes of the current frame
  std::uint64_t frame_bytes_ = 0;  // decoded bytes of the current frame
};

std::unique_ptr<InputStream> StreamOf(std::unique_ptr<ReadableFile> file, const Path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".gz") return std::make_unique<GzipStream>(std::move(file), path);
  if (extension == ".zst") return std::make_unique<ZstdStream>(std::move(file), path);
  return std::make_unique<PlainStream>(std::move(file), path);
}

}  // namespace

Result<std::unique_ptr<InputStream>> InputStream::Open(FileSystem& fs, const Path& path) {
  if (const std::string_view kind = KindOfPipe(path); !kind.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is {}, which can be read only once, but this input is read several "
                    "times; write it to a file and give that",
                    path.string(), kind)));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenFile(fs, path));
  return StreamOf(std::move(file), path);
}

bool InputStream::IsReadOnce(const Path& path) { return !KindOfPipe(path).empty(); }

// Opens a pipe or file, and wraps it in the decompressor that its name calls for (StreamOf).
Result<std::unique_ptr<InputStream>> InputStream::OpenOnce(FileSystem& fs, const Path& path) {
  const bool pipe = IsReadOnce(path);
  RHIZOME_ASSIGN_OR_RETURN(auto file, pipe ? OpenPipe(path) : OpenFile(fs, path));
  return StreamOf(std::move(file), pipe && path == "-" ? "<stdin>" : path);
}

Result<std::size_t> InputStream::ReadFull(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, Read(out.subspan(filled)));
    if (bytes == 0) break;
    filled += bytes;
  }
  return filled;
}

Result<std::size_t> InputStream::ReadFile(std::span<std::byte> out) {
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_->ReadAt(offset_bytes_, out));
  // The length at opening is authoritative: a file that ends earlier was truncated, or could not be
  // read.
  if (bytes == 0 && !out.empty() && offset_bytes_ < file_->size_bytes())
    return Fail(Status::InvalidArgument(
        fmt::format("{}: ends at byte {}, but was {} bytes long when it was opened",
                    path().string(), offset_bytes_, file_->size_bytes())));
  offset_bytes_ += bytes;
  return bytes;
}

std::string ContentExtension(const Path& path) {
  const std::string extension = path.extension().string();
  if (extension != ".gz" && extension != ".zst") return extension;
  return path.stem().extension().string();
}

}  // namespace rhizome
