#include "storage/base/library_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

std::atomic<std::uint64_t> held{0};
std::atomic<bool> left_behind{false};  // this process is a fork of one that had such threads

void AfterForkInChild() {
  if (held.exchange(0) > 0) left_behind = true;
}

void EndOfProcess(int status, void*) {
  if (!left_behind || RHIZOME_MUTANT("a fork's exit waits for the parent's threads")) return;
  std::cout.flush();
  std::clog.flush();
  (void)std::fflush(nullptr);
  ::_exit(status);
}

bool RegisterEnd() { return on_exit(EndOfProcess, nullptr) == 0; }

// Runs when this library is loaded. Exit handlers run in reverse order, so that handlers which a
// program registers later run before this one.
[[maybe_unused]] const bool prepared =
    pthread_atfork(nullptr, nullptr, AfterForkInChild) == 0 && RegisterEnd();

}  // namespace

LibraryThreads::LibraryThreads() { held.fetch_add(1); }
LibraryThreads::~LibraryThreads() {
  if (here()) held.fetch_sub(1);
}

void LibraryThreads::AreAwaitedFromNowOn() {
  [[maybe_unused]] static const bool registered = RegisterEnd();
}

}  // namespace internal
}  // namespace rhizome
