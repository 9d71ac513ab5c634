// Preloaded into the binary (LD_PRELOAD) by scripts that need it to end at a given point of its
// work, independent of the machine's speed. Counts the calls that change files, and raises a signal
// before the given one.
//   RHIZOME_KILL_AT=N           the signal is raised before call N, counted from 1
//   RHIZOME_KILL_SIGNAL=2       the signal; default SIGKILL
//   RHIZOME_KILL_COUNT=FILE     a run that reaches its end writes the number of calls to FILE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<unsigned long> calls{0};

unsigned long Number(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

void Count() {
  static const unsigned long at = Number("RHIZOME_KILL_AT", 0);
  if (++calls == at) {
    kill(getpid(), static_cast<int>(Number("RHIZOME_KILL_SIGNAL", SIGKILL)));
  }
}

// Writes to the terminal or a pipe of the script are not counted.
void CountFile(int fd) {
  if (fd > STDERR_FILENO) Count();
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void Report() {
  const char* path = std::getenv("RHIZOME_KILL_COUNT");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "w")) {
    std::fprintf(file, "%lu\n", calls.load());
    std::fclose(file);
  }
}

}  // namespace

// Defines a function of libc that changes a file: it counts, then calls libc's own.
#define RHIZOME_COUNTED(result, name, counting, parameters, arguments) \
  extern "C" result name parameters {                                  \
    static const auto next = Next<result(*) parameters>(#name);        \
    counting;                                                          \
    return next arguments;                                             \
  }

RHIZOME_COUNTED(ssize_t, write, CountFile(fd), (int fd, const void* data, size_t size),
                (fd, data, size))
RHIZOME_COUNTED(ssize_t, writev, CountFile(fd), (int fd, const iovec* parts, int count),
                (fd, parts, count))
RHIZOME_COUNTED(ssize_t, pwrite, Count(), (int fd, const void* data, size_t size, off_t at),
                (fd, data, size, at))
RHIZOME_COUNTED(ssize_t, pwrite64, Count(), (int fd, const void* data, size_t size, off64_t at),
                (fd, data, size, at))
RHIZOME_COUNTED(int, fsync, Count(), (int fd), (fd))
RHIZOME_COUNTED(int, fdatasync, Count(), (int fd), (fd))
RHIZOME_COUNTED(int, rename, Count(), (const char* from, const char* to), (from, to))
RHIZOME_COUNTED(int, unlink, Count(), (const char* path), (path))
RHIZOME_COUNTED(int, unlinkat, Count(), (int folder, const char* path, int flags),
                (folder, path, flags))
RHIZOME_COUNTED(int, mkdir, Count(), (const char* path, mode_t mode), (path, mode))
RHIZOME_COUNTED(int, renameat, Count(),
                (int from_folder, const char* from, int to_folder, const char* to),
                (from_folder, from, to_folder, to))
RHIZOME_COUNTED(int, mkdirat, Count(), (int folder, const char* path, mode_t mode),
                (folder, path, mode))
