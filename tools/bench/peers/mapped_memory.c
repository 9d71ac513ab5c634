// Preloaded library for the contestant `mapped` of full_graph.py: places large allocations in memory-mapped files, whose
// pages the kernel writes and reads back as it chooses. The program is unchanged; requests of at least
// RHIZOME_MAPPED_BYTES to aligned_alloc, malloc or mmap are served from an unlinked file in RHIZOME_MAPPED_FOLDER.
//
//     cc -O2 -shared -fPIC -o mapped_memory.so mapped_memory.c -ldl
//     LD_PRELOAD=mapped_memory.so RHIZOME_MAPPED_FOLDER=DIR RHIZOME_MAPPED_BYTES=1048576 rhizome train ...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMostMaps = 65536 };
static struct { void* memory; size_t bytes; } maps[kMostMaps];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int used = 0;  // maps[used...] were never taken

static size_t LeastBytes(void) {
  static size_t least = 0;
  if (least == 0) {
    const char* given = getenv("RHIZOME_MAPPED_BYTES");
    least = given == NULL ? SIZE_MAX : strtoull(given, NULL, 10);
  }
  return least;
}

static void* SystemMap(void* at, size_t bytes, int access, int flags, int file, off_t from) {
  return (void*)syscall(SYS_mmap, at, bytes, access, flags, file, from);
}

static void* MapFile(void* at, size_t bytes, int access, int flags) {
  const char* folder = getenv("RHIZOME_MAPPED_FOLDER");
  const int file = open(folder == NULL ? "." : folder, O_TMPFILE | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) abort();
  void* memory = SystemMap(at, bytes, access, flags, file, 0);
  close(file);
  return memory;
}

void* mmap(void* at, size_t bytes, int access, int flags, int file, off_t from) {
  const int given = MAP_ANONYMOUS | MAP_PRIVATE;
  if ((flags & given) != given || (flags & MAP_STACK) != 0 || (access & PROT_WRITE) == 0 || bytes < LeastBytes())
    return SystemMap(at, bytes, access, flags, file, from);
  return MapFile(at, bytes, access, (flags & ~(given | MAP_NORESERVE)) | MAP_SHARED);
}

static void* Map(size_t bytes) {
  void* memory = MapFile(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED);
  if (memory == MAP_FAILED) abort();
  pthread_mutex_lock(&mutex);
  int place = 0;
  while (place < used && maps[place].memory != NULL) ++place;
  if (place == kMostMaps) abort();
  if (place == used) ++used;
  maps[place].memory = memory;
  maps[place].bytes = bytes;
  pthread_mutex_unlock(&mutex);
  return memory;
}

// Returns the bytes of what was mapped, and 0 of other memory. With `forget` it is known no more.
static size_t BytesAt(void* memory, int forget) {
  if (((uintptr_t)memory & 4095) != 0 || used == 0) return 0;
  size_t bytes = 0;
  pthread_mutex_lock(&mutex);
  for (int place = 0; place < used && bytes == 0; ++place) {
    if (maps[place].memory != memory) continue;
    bytes = maps[place].bytes;
    if (forget) maps[place].memory = NULL;
  }
  pthread_mutex_unlock(&mutex);
  return bytes;
}

static int Unmap(void* memory) {
  const size_t bytes = BytesAt(memory, 1);
  if (bytes == 0) return 0;
  munmap(memory, bytes);
  return 1;
}

// dlsym itself asks for memory: glibc's own names need none.
extern void* __libc_malloc(size_t);
extern void* __libc_realloc(void*, size_t);

void* malloc(size_t bytes) { return bytes >= LeastBytes() ? Map(bytes) : __libc_malloc(bytes); }

void* realloc(void* memory, size_t bytes) {
  const size_t had = memory == NULL ? 0 : BytesAt(memory, 0);
  if (had == 0) return __libc_realloc(memory, bytes);
  void* moved = malloc(bytes);
  if (moved != NULL) memcpy(moved, memory, had < bytes ? had : bytes);
  free(memory);
  return moved;
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  static void* (*next)(size_t, size_t) = NULL;
  if (bytes >= LeastBytes() && alignment <= 4096) return Map(bytes);
  if (next == NULL) next = (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
  return next(alignment, bytes);
}

void free(void* memory) {
  static void (*next)(void*) = NULL;
  if (memory == NULL || Unmap(memory)) return;
  if (next == NULL) next = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  next(memory);
}
