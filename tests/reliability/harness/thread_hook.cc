#include "reliability/harness/thread_hook.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "reliability/harness/allocation_hook.h"

namespace rhizome::testing {
namespace {

std::atomic<bool> threads_fail = false;
std::atomic<std::uint64_t> threads_asked = 0;
std::atomic<std::uint64_t> threads_refused = 0;
std::uint64_t first_refused_thread = 0;

bool ThreadFails() {
  if (!threads_fail.load(std::memory_order_acquire) || !IsOfTheLibrary()) return false;
  if (threads_asked.fetch_add(1) < first_refused_thread) return false;
  threads_refused.fetch_add(1);
  return true;
}

}  // namespace

ThreadFaults::ThreadFaults(std::uint64_t fail_at) {
  static_cast<void>(IsOfTheLibrary());
  threads_asked = 0;
  threads_refused = 0;
  first_refused_thread = fail_at;
  threads_fail.store(true, std::memory_order_release);
}
ThreadFaults::~ThreadFaults() { threads_fail = false; }
std::uint64_t ThreadFaults::failed() const { return threads_refused.load(); }

}  // namespace rhizome::testing

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (rhizome::testing::ThreadFails()) return EAGAIN;
  return real(thread, attributes, start, argument);
}
