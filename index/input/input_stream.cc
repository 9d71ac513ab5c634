// Input streams. Open and OpenOnce open a file or a pipe (OpenFile, Pipe). The first read peeks at
// the file's first bytes and creates the decoder of its compression (Begin).

#include "index/input/input_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "index/input/decoder.h"
#include "storage/base/check.h"
#include "storage/io/posix_file.h"

namespace rhizome {
namespace {

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

/// A text in memory as a file.
class TextFile final : public ReadableFile {
 public:
  TextFile(std::string text, Path path) : text_(std::move(text)), path_(std::move(path)) {}

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    const std::size_t begin = std::min<std::uint64_t>(offset_bytes, text_.size());
    const std::size_t bytes = std::min(out.size(), text_.size() - begin);
    if (bytes > 0) std::memcpy(out.data(), text_.data() + begin, bytes);
    return bytes;
  }
  std::uint64_t size_bytes() const override { return text_.size(); }
  const Path& path() const override { return path_; }

 private:
  const std::string text_;
  const Path path_;
};

}  // namespace

InputStream::InputStream(std::unique_ptr<ReadableFile> file, Path path)
    : raw_(std::make_unique<RawFile>(std::move(file), std::move(path))) {}
InputStream::~InputStream() = default;

const Path& InputStream::path() const { return raw_->path(); }
std::uint64_t InputStream::consumed_bytes() const { return raw_->consumed_bytes(); }
std::uint64_t InputStream::total_bytes() const { return raw_->total_bytes(); }

Result<std::unique_ptr<InputStream>> InputStream::Open(FileSystem& fs, const Path& path) {
  if (const std::string_view kind = KindOfPipe(path); !kind.empty()) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is {}, which can be read only once, but this input is read several "
                    "times; write it to a file and give that",
                    path.string(), kind)));
  }
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenFile(fs, path));
  return std::unique_ptr<InputStream>(new InputStream(std::move(file), path));
}

bool InputStream::IsReadOnce(const Path& path) { return !KindOfPipe(path).empty(); }

Result<std::unique_ptr<InputStream>> InputStream::OpenOnce(FileSystem& fs, const Path& path) {
  const bool pipe = IsReadOnce(path);
  RHIZOME_ASSIGN_OR_RETURN(auto file, pipe ? OpenPipe(path) : OpenFile(fs, path));
  return std::unique_ptr<InputStream>(
      new InputStream(std::move(file), pipe && path == "-" ? "<stdin>" : path));
}

std::unique_ptr<InputStream> InputStream::OfFile(std::unique_ptr<ReadableFile> file) {
  Path path = file->path();
  return std::unique_ptr<InputStream>(new InputStream(std::move(file), std::move(path)));
}

std::unique_ptr<InputStream> InputStream::OfText(std::string text, Path path) {
  auto file = std::make_unique<TextFile>(std::move(text), path);
  std::unique_ptr<InputStream> stream(new InputStream(std::move(file), std::move(path)));
  stream->is_file_ = false;
  return stream;
}

// Chooses the decoder by the first bytes. The name counts only for a file that ends before they
// would be complete.
Status InputStream::Begin() {
  RHIZOME_ASSIGN_OR_RETURN(const auto head, raw_->Peek());
  const Compression cut = CutOffCompression(raw_->path(), head);
  if (is_file_ && cut != Compression::kNone) return TruncatedFile(raw_->path(), cut);
  compression_ = CompressionOf(head);
  decoder_ = MakeDecoder(compression_, *raw_);
  return Status::Ok();
}

Result<std::size_t> InputStream::Read(std::span<std::byte> out) {
  if (!decoder_) RHIZOME_RETURN_IF_ERROR(Begin());
  return decoder_->Read(out);
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

}  // namespace rhizome
