// Implements LoggedDisk, a FUSE file system with a single file. Make copies the image, mounts the
// file system and starts a thread (Serve) that reads requests from /dev/fuse and answers them
// (Answer): writes and fsyncs go to the log, reads come from the copy.

#include "reliability/live/logged_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "rhizome/file_system.h"
#include "storage/base/mutex.h"

namespace rhizome::testing {
namespace {

constexpr const char* kImageName = "image";
constexpr std::uint64_t kRootNode = FUSE_ROOT_ID;
constexpr std::uint64_t kImageNode = 2;
constexpr std::uint32_t kMaxWrite = 1 << 20;
constexpr std::uint32_t kMaxPages = 256;
constexpr std::size_t kBufferBytes = kMaxWrite + (64 << 10);
constexpr std::uint64_t kCacheSeconds = 3600;  // the file changes only through the kernel

Status Refused(const std::string& call) {
  return Status::IoError(fmt::format("{}: {}", call, std::strerror(errno)));
}

fuse_attr AttributesOf(std::uint64_t node, std::uint64_t bytes) {
  fuse_attr out{};
  const bool image = node == kImageNode;
  out.ino = node;
  out.size = image ? bytes : 0;
  out.blocks = out.size / 512;
  out.mode = image ? S_IFREG | 0600 : S_IFDIR | 0700;
  out.nlink = image ? 1 : 2;
  out.blksize = 4096;
  return out;
}

/// Returns whether a request has no reply.
bool WantsNoReply(std::uint32_t operation) {
  return operation == FUSE_FORGET || operation == FUSE_BATCH_FORGET || operation == FUSE_INTERRUPT;
}

}  // namespace

struct LoggedDisk::Request {
  fuse_in_header header;
  const std::byte* body;
  std::size_t bytes;

  /// Returns the body as a structure of the protocol, with zeros for what the kernel did not send.
  template <typename T>
  T As() const {
    T out{};
    std::memcpy(&out, body, std::min(sizeof(T), bytes));
    return out;
  }
};

LoggedDisk::LoggedDisk(OwnedFile content, std::uint64_t bytes, Path folder)
    : content_(std::move(content)), bytes_(bytes), folder_(std::move(folder)) {}

Result<std::unique_ptr<LoggedDisk>> LoggedDisk::Make(int image, const Path& folder) {
  struct stat about {};
  if (fstat(image, &about) != 0) return Fail(Refused("fstat"));
  RHIZOME_ASSIGN_OR_RETURN(OwnedFile content, CopyToMemory(image));
  std::unique_ptr<LoggedDisk> disk(
      new LoggedDisk(std::move(content), static_cast<std::uint64_t>(about.st_size), folder));
  disk->channel_ = OwnedFile(open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!disk->channel_.is_open()) return Fail(Refused("open /dev/fuse"));
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", disk->channel_.fd());
  if (mount("rhizome-logged-disk", folder.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) !=
      0)
    return Fail(Refused("mount fuse"));
  disk->mounted_ = true;
  disk->server_ = std::thread([raw = disk.get()] { raw->Serve(); });
  disk->shown_ = OwnedFile(open((folder / kImageName).c_str(), O_RDWR | O_CLOEXEC));
  if (!disk->shown_.is_open()) return Fail(Refused("open the image over FUSE"));
  return disk;
}

LoggedDisk::~LoggedDisk() {
  shown_.Close();
  if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  ends_ = true;
  if (server_.joinable()) server_.join();
}

std::size_t LoggedDisk::position() const {
  const MutexLock lock(mutex_);
  return log_.size();
}

std::size_t LoggedDisk::flushes() const {
  const MutexLock lock(mutex_);
  return flushes_;
}

std::vector<DiskOperation> LoggedDisk::TakeLog() {
  const MutexLock lock(mutex_);
  keeps_ = false;
  return std::move(log_);
}

void LoggedDisk::Append(DiskOperation operation) {
  const MutexLock lock(mutex_);
  if (!keeps_) return;
  flushes_ += operation.is_flush ? 1 : 0;
  log_.push_back(std::move(operation));
}

void LoggedDisk::Serve() {
  constexpr int kLookEveryMs = 50;  // interval of checks whether to stop
  std::vector<std::byte> buffer(kBufferBytes);
  while (!ends_) {
    pollfd ready{.fd = channel_.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kLookEveryMs) <= 0) continue;
    if (!ServeOne(buffer)) return;
  }
}

// Returns false if no further request will come.
bool LoggedDisk::ServeOne(std::vector<std::byte>& buffer) {
  const ssize_t got = read(channel_.fd(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN || errno == ENOENT;
  if (static_cast<std::size_t>(got) < sizeof(fuse_in_header)) return false;
  Request request{};
  std::memcpy(&request.header, buffer.data(), sizeof(request.header));
  request.body = buffer.data() + sizeof(request.header);
  request.bytes = static_cast<std::size_t>(got) - sizeof(request.header);
  if (!WantsNoReply(request.header.opcode)) Answer(request);
  return true;
}

void LoggedDisk::Answer(const Request& request) {
  const std::uint64_t unique = request.header.unique;
  const std::uint64_t node = request.header.nodeid;
  switch (request.header.opcode) {
    case FUSE_INIT:
      return ReplyInit(request);
    case FUSE_LOOKUP: {
      if (node != kRootNode || std::strcmp(reinterpret_cast<const char*>(request.body), kImageName))
        return Reply(unique, ENOENT, nullptr, 0);
      fuse_entry_out out{};
      out.nodeid = kImageNode;
      out.entry_valid = out.attr_valid = kCacheSeconds;
      out.attr = AttributesOf(kImageNode, bytes_);
      return Reply(unique, 0, &out, sizeof(out));
    }
    case FUSE_GETATTR:
    case FUSE_SETATTR: {  // can only change the file times, which are not used
      fuse_attr_out out{};
      out.attr_valid = kCacheSeconds;
      out.attr = AttributesOf(node, bytes_);
      return Reply(unique, 0, &out, sizeof(out));
    }
    case FUSE_OPEN: {
      const fuse_open_out out{};
      return Reply(unique, 0, &out, sizeof(out));
    }
    case FUSE_READ:
      return ReplyRead(request);
    case FUSE_WRITE:
      return TakeWrite(request);
    case FUSE_FSYNC:
      Append({.is_flush = true, .offset = 0, .bytes = {}});
      return Reply(unique, 0, nullptr, 0);
    case FUSE_STATFS: {
      const fuse_statfs_out out{};
      return Reply(unique, 0, &out, sizeof(out));
    }
    case FUSE_FLUSH:  // of a closed descriptor: not a flush of the disk
    case FUSE_RELEASE:
    case FUSE_DESTROY:
      return Reply(unique, 0, nullptr, 0);
    default:
      return Reply(unique, ENOSYS, nullptr, 0);
  }
}

// The kernel refuses a reply that is no longer wanted (the caller was killed), which does no harm.
void LoggedDisk::Reply(std::uint64_t unique, int error, const void* body, std::size_t bytes) {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof(header) + bytes);
  header.error = -error;
  header.unique = unique;
  iovec parts[] = {{.iov_base = &header, .iov_len = sizeof(header)},
                   {.iov_base = const_cast<void*>(body), .iov_len = bytes}};
  static_cast<void>(writev(channel_.fd(), parts, bytes == 0 ? 1 : 2));
}

// Without FUSE_WRITEBACK_CACHE, a write reaches this process before the loop device completes it.
void LoggedDisk::ReplyInit(const Request& request) {
  const auto in = request.As<fuse_init_in>();
  fuse_init_out out{};
  out.major = FUSE_KERNEL_VERSION;
  out.minor = std::min<std::uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
  out.max_readahead = in.max_readahead;
  out.flags = in.flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES);
  out.max_write = kMaxWrite;
  out.max_pages = kMaxPages;
  out.time_gran = 1;
  Reply(request.header.unique, 0, &out, sizeof(out));
}

void LoggedDisk::ReplyRead(const Request& request) {
  const auto in = request.As<fuse_read_in>();
  std::vector<std::byte> out(std::min<std::size_t>(in.size, kMaxPages * 4096));
  const ssize_t got = pread(content_.fd(), out.data(), out.size(), static_cast<off_t>(in.offset));
  if (got < 0) return Reply(request.header.unique, EIO, nullptr, 0);
  Reply(request.header.unique, 0, out.data(), static_cast<std::size_t>(got));
}

void LoggedDisk::TakeWrite(const Request& request) {
  const auto in = request.As<fuse_write_in>();
  const std::byte* const bytes = request.body + sizeof(in);
  const bool fits = request.bytes >= sizeof(in) && in.size <= request.bytes - sizeof(in) &&
                    in.offset <= bytes_ && in.size <= bytes_ - in.offset;
  if (!fits || !WriteAt(content_.fd(), in.offset, bytes, in.size).ok())
    return Reply(request.header.unique, EIO, nullptr, 0);
  Append({.is_flush = false, .offset = in.offset, .bytes = {bytes, bytes + in.size}});
  fuse_write_out out{};
  out.size = in.size;
  Reply(request.header.unique, 0, &out, sizeof(out));
}

}  // namespace rhizome::testing
