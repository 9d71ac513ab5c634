// Replaces operator new. An allocation that AllocationFaults selects, by counting, throws
// std::bad_alloc if the engine called it (its return address is in the engine's code) and no
// RocksDB or oneTBB frame is on the stack; see Fails.

#include "reliability/harness/allocation_hook.h"

#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

// Bounds of the engine's code, which is linked into the program: from engine_begins.cc to the
// linker's end of all code.
extern "C" void rhizome_engine_begins();
extern "C" const char etext;

namespace rhizome::testing {
namespace {

/// The address range of a library's code.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

struct Libraries {
  Range ours;
  std::vector<Range> others;  // libraries through which exceptions must not propagate
  std::vector<Range> rocks;   // RocksDB's part of `others`
};

int Note(dl_phdr_info* info, std::size_t, void* out) {
  auto& libraries = *static_cast<Libraries*>(out);
  const std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const auto is = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (!is("/librocksdb") && !is("/libtbb")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    libraries.others.push_back({begin, begin + part.p_memsz});
    if (is("/librocksdb")) libraries.rocks.push_back(libraries.others.back());
  }
  return 0;
}

const Libraries& FindLibraries() {
  static const Libraries found = [] {
    Libraries libraries;
    libraries.ours = {reinterpret_cast<std::uintptr_t>(&rhizome_engine_begins),
                      reinterpret_cast<std::uintptr_t>(&etext)};
    dl_iterate_phdr(Note, &libraries);
    std::array<void*, 1> once{};
    backtrace(once.data(), once.size());  // loads the libraries that it needs
    return libraries;
  }();
  return found;
}

struct State {
  const Libraries* libraries = nullptr;  // null: no failures
  std::uint64_t asked = 0;
  std::uint64_t failed = 0;
  std::uint64_t fail_at = 0;
  bool sticky = false;
  bool of_rocks = false;  // only allocations with RocksDB on the stack
};
thread_local State state;

/// The same state, for all threads.
struct SharedState {
  std::atomic<const Libraries*> libraries = nullptr;
  std::atomic<std::uint64_t> asked = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::uint64_t fail_at = 0;
  bool sticky = false;
};
SharedState shared;
thread_local bool judging = false;

bool OnStack(const std::vector<Range>& ranges) {
  std::array<void*, 128> frames{};
  const int count = backtrace(frames.data(), frames.size());
  return std::any_of(frames.begin(), frames.begin() + count, [&](const void* frame) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range& range) { return range.contains(frame); });
  });
}

bool MayThrow(const Libraries& libraries) { return !OnStack(libraries.others); }

bool FailsInAnyThread(const void* caller) {
  const Libraries* const libraries = shared.libraries.load(std::memory_order_acquire);
  if (libraries == nullptr || judging || !libraries->ours.contains(caller)) return false;
  if (shared.asked.fetch_add(1) < shared.fail_at) return false;
  if (shared.failed.load() > 0 && !shared.sticky) return false;
  judging = true;
  const bool fails = MayThrow(*libraries);
  judging = false;
  if (fails) shared.failed.fetch_add(1);
  return fails;
}

bool FailsInRocksDb() {
  const Libraries* const libraries = std::exchange(state.libraries, nullptr);
  const bool counts = OnStack(libraries->rocks);
  state.libraries = libraries;
  if (!counts || state.asked++ < state.fail_at || (state.failed > 0 && !state.sticky)) return false;
  ++state.failed;
  return true;
}

bool Fails(const void* caller) {
  if (FailsInAnyThread(caller)) return true;
  if (state.libraries != nullptr && state.of_rocks) return FailsInRocksDb();
  if (state.libraries == nullptr || !state.libraries->ours.contains(caller)) return false;
  if (state.asked++ < state.fail_at || (state.failed > 0 && !state.sticky)) return false;
  const Libraries* const libraries = std::exchange(state.libraries, nullptr);
  const bool fails = MayThrow(*libraries);
  state.libraries = libraries;
  state.failed += fails ? 1 : 0;
  return fails;
}

void* Allocate(std::size_t bytes, const void* caller) {
  if (Fails(caller)) throw std::bad_alloc();
  void* const memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

bool IsOfTheLibrary() {
  const Libraries& libraries = FindLibraries();
  std::array<void*, 128> frames{};
  const int count = backtrace(frames.data(), frames.size());
  const auto on_stack = [&](const Range& range) {
    return std::any_of(frames.begin(), frames.begin() + count,
                       [&](const void* frame) { return range.contains(frame); });
  };
  return on_stack(libraries.ours) &&
         std::none_of(libraries.others.begin(), libraries.others.end(), on_stack);
}

AllocationFaults::AllocationFaults(std::uint64_t fail_at, bool sticky, Of of) : of_(of) {
  if (of != Of::kAllThreads) {
    state = {&FindLibraries(), 0, 0, fail_at, sticky, of == Of::kRocksDb};
    return;
  }
  shared.asked = 0;
  shared.failed = 0;
  shared.fail_at = fail_at;
  shared.sticky = sticky;
  shared.libraries.store(&FindLibraries(), std::memory_order_release);
}
AllocationFaults::~AllocationFaults() {
  if (of_ != Of::kAllThreads) {
    state.libraries = nullptr;
  } else {
    shared.libraries = nullptr;
  }
}
std::uint64_t AllocationFaults::asked() const {
  return of_ != Of::kAllThreads ? state.asked : shared.asked.load();
}
std::uint64_t AllocationFaults::failed() const {
  return of_ != Of::kAllThreads ? state.failed : shared.failed.load();
}

}  // namespace rhizome::testing

void* operator new(std::size_t bytes) {
  return rhizome::testing::Allocate(bytes, __builtin_return_address(0));
}
void* operator new[](std::size_t bytes) {
  return rhizome::testing::Allocate(bytes, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
