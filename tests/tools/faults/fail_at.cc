// Preloaded into the binary (LD_PRELOAD) by scripts that make one of its system calls fail, or do
// half of its work. Calls on files are counted from 1.
//   RHIZOME_FAIL_AT=N         the call that fails
//   RHIZOME_FAIL_HOW=...      the name of an errno, such as EIO; short (half of a read or write, at
//                             least a byte; other calls succeed); zero (a read returns nothing)
//   RHIZOME_FAIL_STICKY=1     all later calls fail, too
//   RHIZOME_FAIL_PATH=TEXT    counts only reads and writes of files with this text in their paths
//   RHIZOME_FAIL_COUNT=FILE   a run that reaches its end writes the number of calls to FILE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class How { kNot, kErrno, kShort, kZero };

std::atomic<unsigned long> calls{0};

const char* Setting(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

int ErrnoOf(const char* how) {
  constexpr int kMaxErrno = 133;
  for (int number = 1; number <= kMaxErrno; ++number) {
    const char* const name = strerrorname_np(number);
    if (name != nullptr && std::strcmp(how, name) == 0) return number;
  }
  std::abort();  // an unknown value would silently inject no fault
}

/// Counts a call. Sets errno if the call must fail.
How Next() {
  static const unsigned long at = std::strtoul(Setting("RHIZOME_FAIL_AT"), nullptr, 10);
  static const char* const how = Setting("RHIZOME_FAIL_HOW");
  static const bool sticky = *Setting("RHIZOME_FAIL_STICKY") == '1';
  const unsigned long call = ++calls;
  if (at == 0 || call < at || (call > at && !sticky)) return How::kNot;
  if (std::strcmp(how, "short") == 0) return How::kShort;
  if (std::strcmp(how, "zero") == 0) return How::kZero;
  errno = ErrnoOf(how);
  return How::kErrno;
}

/// Returns whether calls on this file are counted.
bool IsMeant(int fd) {
  static const char* const text = Setting("RHIZOME_FAIL_PATH");
  if (*text == 0) return true;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0) return false;
  path[length] = 0;
  return std::strstr(path, text) != nullptr;
}

std::size_t Half(std::size_t size) {
  return std::max<std::size_t>(size / 2, std::min<std::size_t>(size, 1));
}

template <typename Function>
Function Libc(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void Report() {
  const char* path = std::getenv("RHIZOME_FAIL_COUNT");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "w")) {
    std::fprintf(file, "%lu\n", calls.load());
    std::fclose(file);
  }
}

/// Makes a call that transfers `size` bytes. Calls on a terminal or a pipe are not counted.
template <typename Call>
ssize_t Move(int fd, std::size_t size, bool reads, const Call& call) {
  const How how = fd > STDERR_FILENO && IsMeant(fd) ? Next() : How::kNot;
  if (how == How::kErrno) return -1;
  if (how == How::kZero && reads) return 0;
  return call(how == How::kShort ? Half(size) : size);
}

template <typename Call>
int Do(const Call& call) {
  if (*Setting("RHIZOME_FAIL_PATH") != 0) return call();
  return Next() == How::kErrno ? -1 : call();
}

}  // namespace

#define RHIZOME_MOVES(name, reads, type, offset)                                         \
  extern "C" ssize_t name(int fd, type data, size_t size, offset at) {                   \
    static const auto next = Libc<ssize_t (*)(int, type, size_t, offset)>(#name);        \
    return Move(fd, size, reads, [&](size_t part) { return next(fd, data, part, at); }); \
  }
RHIZOME_MOVES(pread, true, void*, off_t)
RHIZOME_MOVES(pread64, true, void*, off64_t)
RHIZOME_MOVES(pwrite, false, const void*, off_t)
RHIZOME_MOVES(pwrite64, false, const void*, off64_t)

extern "C" ssize_t read(int fd, void* data, size_t size) {
  static const auto next = Libc<ssize_t (*)(int, void*, size_t)>("read");
  return Move(fd, size, true, [&](size_t part) { return next(fd, data, part); });
}
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = Libc<ssize_t (*)(int, const void*, size_t)>("write");
  return Move(fd, size, false, [&](size_t part) { return next(fd, data, part); });
}

#define RHIZOME_DOES(name, parameters, arguments)            \
  extern "C" int name parameters {                           \
    static const auto next = Libc<int(*) parameters>(#name); \
    return Do([&] { return next arguments; });               \
  }
RHIZOME_DOES(fsync, (int fd), (fd))
RHIZOME_DOES(fdatasync, (int fd), (fd))
RHIZOME_DOES(rename, (const char* from, const char* to), (from, to))
RHIZOME_DOES(unlink, (const char* path), (path))
RHIZOME_DOES(mkdir, (const char* path, mode_t mode), (path, mode))
RHIZOME_DOES(renameat, (int from_folder, const char* from, int to_folder, const char* to),
             (from_folder, from, to_folder, to))
RHIZOME_DOES(unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
RHIZOME_DOES(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode))

// The mode is always passed on; libc uses it only if the flags require it.
#define RHIZOME_OPENS(name)                                               \
  extern "C" int name(const char* path, int flags, ...) {                 \
    static const auto next = Libc<int (*)(const char*, int, ...)>(#name); \
    va_list rest;                                                         \
    va_start(rest, flags);                                                \
    const mode_t mode = va_arg(rest, mode_t);                             \
    va_end(rest);                                                         \
    return Do([&] { return next(path, flags, mode); });                   \
  }
RHIZOME_OPENS(open)
RHIZOME_OPENS(open64)

#define RHIZOME_OPENS_AT(name)                                                 \
  extern "C" int name(int folder, const char* path, int flags, ...) {          \
    static const auto next = Libc<int (*)(int, const char*, int, ...)>(#name); \
    va_list rest;                                                              \
    va_start(rest, flags);                                                     \
    const mode_t mode = va_arg(rest, mode_t);                                  \
    va_end(rest);                                                              \
    return Do([&] { return next(folder, path, flags, mode); });                \
  }
RHIZOME_OPENS_AT(openat)
RHIZOME_OPENS_AT(openat64)
