// Implements LoopMount: attaches a free loop device to an image (AttachLoop), mounts it, and
// unmounts it. UnmountAtDeath forks a process that waits for the end of this one and then unmounts.

#include "reliability/live/loop_mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome::testing {
namespace {

Status RefusedOfLoopMount(const std::string& call) {
  return Status::IoError(fmt::format("{}: {}", call, std::strerror(errno)));
}

// Retries, because another process may take a free device before it is attached.
Result<OwnedFile> AttachLoop(int image, std::string& name) {
  constexpr int kTries = 100;
  const OwnedFile control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.is_open()) return Fail(RefusedOfLoopMount("open /dev/loop-control"));
  for (int i = 0; i < kTries; ++i) {
    const int number = ioctl(control.fd(), LOOP_CTL_GET_FREE);
    if (number < 0) return Fail(RefusedOfLoopMount("LOOP_CTL_GET_FREE"));
    name = fmt::format("/dev/loop{}", number);
    OwnedFile device(open(name.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.is_open()) return Fail(RefusedOfLoopMount("open " + name));
    loop_config config{};
    config.fd = static_cast<std::uint32_t>(image);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(device.fd(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY) return Fail(RefusedOfLoopMount("LOOP_CONFIGURE " + name));
  }
  return Fail(Status::IoError("no loop device stays free"));
}

// Runs in a process without other threads, and makes only system calls.
[[noreturn]] void UnmountAfterEnd(int pipe, const std::vector<Path>& folders) {
  char ignored = 0;
  while (read(pipe, &ignored, 1) < 0 && errno == EINTR) {
  }
  for (const Path& folder : folders) umount2(folder.c_str(), MNT_DETACH);
  _exit(0);
}

}  // namespace

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void OwnedFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<OwnedFile> MemoryFile(std::uint64_t bytes) {
  OwnedFile file(memfd_create("disk", MFD_CLOEXEC));
  if (!file.is_open()) return Fail(RefusedOfLoopMount("memfd_create"));
  if (ftruncate(file.fd(), static_cast<off_t>(bytes)) != 0)
    return Fail(RefusedOfLoopMount("ftruncate"));
  return file;
}

Status WriteAt(int fd, std::uint64_t offset, const void* data, std::uint64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (done <= 0) return RefusedOfLoopMount("pwrite");
    from += done;
    offset += static_cast<std::uint64_t>(done);
    bytes -= static_cast<std::uint64_t>(done);
  }
  return Status::Ok();
}

Result<OwnedFile> CopyToMemory(int from) {
  constexpr std::uint64_t kPiece = 1 << 20;
  struct stat about {};
  if (fstat(from, &about) != 0) return Fail(RefusedOfLoopMount("fstat"));
  RHIZOME_ASSIGN_OR_RETURN(OwnedFile copy, MemoryFile(static_cast<std::uint64_t>(about.st_size)));
  std::vector<char> piece(kPiece);
  for (off_t at = lseek(from, 0, SEEK_DATA); at >= 0; at = lseek(from, at, SEEK_DATA)) {
    for (const off_t end = lseek(from, at, SEEK_HOLE); at < end;) {
      const auto wanted = std::min<std::uint64_t>(kPiece, static_cast<std::uint64_t>(end - at));
      const ssize_t got = pread(from, piece.data(), wanted, at);
      if (got <= 0) return Fail(RefusedOfLoopMount("pread"));
      RHIZOME_RETURN_IF_ERROR(WriteAt(copy.fd(), static_cast<std::uint64_t>(at), piece.data(),
                                      static_cast<std::uint64_t>(got)));
      at += got;
    }
  }
  return copy;
}

LoopMount::LoopMount(OwnedFile device, Path folder)
    : device_(std::move(device)), folder_(std::move(folder)) {}

LoopMount::LoopMount(LoopMount&& other) noexcept
    : device_(std::move(other.device_)),
      folder_(std::move(other.folder_)),
      mounted_(std::exchange(other.mounted_, false)) {}

Result<LoopMount> LoopMount::Mount(int image, const std::string& kind, const Path& folder) {
  std::string name;
  RHIZOME_ASSIGN_OR_RETURN(OwnedFile device, AttachLoop(image, name));
  if (mount(name.c_str(), folder.c_str(), kind.c_str(), 0, "") != 0)
    return Fail(RefusedOfLoopMount(fmt::format("mount {} as {}", name, kind)));
  return LoopMount(std::move(device), folder);
}

Status LoopMount::Unmount() {
  if (!std::exchange(mounted_, false)) return Status::Ok();
  if (umount2(folder_.c_str(), 0) != 0) {
    const Status refused = RefusedOfLoopMount("umount " + folder_.string());
    umount2(folder_.c_str(), MNT_DETACH);
    return refused;
  }
  device_.Close();
  return Status::Ok();
}

LoopMount::~LoopMount() { static_cast<void>(Unmount()); }

// The waiting process is a grandchild in its own session, so that it is not killed together with
// the test and its children. It closes the standard descriptors, so that no process waits for it at
// the end of a pipe.
UnmountAtDeath::UnmountAtDeath(std::vector<Path> folders) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (const int fd : {ends[1], STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
    UnmountAfterEnd(ends[0], folders);
  }
  close(ends[0]);
  alive_ = OwnedFile(ends[1]);
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace rhizome::testing
