#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/fiber.h"
#include "cuda/shadow.h"

namespace rhizome::simulator {

enum class Fault : std::uint8_t {
  kRace,           ///< unordered accesses to an element by two threads, at least one a write
  kSameValueRace,  ///< the same, but both write the same value
  kBounds,
  kAlignment,
  kUninitialized,  ///< a read before any write
  kBarrier,        ///< threads of a block miss a barrier, or wait at different ones
  kWarp,           ///< lanes of a mask never meet
  kEndless,
  kLaunch,  ///< a launch that no device accepts
};

struct Finding {
  Fault fault;
  std::string text;
};

/// Simulates a device. The threads of a launch are fibers that run in alternation, in an order
/// determined by a seed: at every access, atomic and barrier, another thread of any block may
/// continue. Reports what CUDA leaves undefined. Only launches order blocks, only barriers order
/// the threads of a block, and SyncWarp also orders the lanes of a warp; shuffles and atomics order
/// nothing.
///
/// Does not simulate weak memory ordering of atomics, speed, or registers.
/// Threads: one. Current() is the machine that was created last.
class Machine {
 public:
  static constexpr std::uint64_t kStepsOfALaunch = 4'000'000;
  static constexpr std::size_t kSharedBytes = 48U << 10;

  explicit Machine(std::uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15ULL + 1) {
    before_ = current_;
    current_ = this;
    // Some schedules switch threads at every step, some rarely, and some run one thread after
    // another.
    constexpr std::uint32_t kRuns[] = {1, 2, 2, 7, 40, 0};
    mean_run_ = kRuns[Random() % 6];
    order_ = static_cast<Order>(Random() % 4);
  }
  ~Machine() { current_ = before_; }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  static Machine& Current() {
    if (current_ == nullptr) std::abort();
    return *current_;
  }

  const std::vector<Finding>& findings() const { return findings_; }
  std::uint64_t switches() const { return switches_; }
  std::size_t Count(Fault fault) const {
    return static_cast<std::size_t>(std::count_if(
        findings_.begin(), findings_.end(), [&](const Finding& f) { return f.fault == fault; }));
  }
  std::string Describe() const {
    std::string all;
    for (const Finding& finding : findings_) all += finding.text + "\n";
    return all;
  }

  /// Creates a region that lives as long as the machine.
  Region* NewRegion(std::string name, std::size_t bytes, std::size_t element_bytes, bool filled) {
    regions_.push_back(std::make_unique<Region>(std::move(name), bytes, element_bytes, filled));
    return regions_.back().get();
  }

  /// Runs `body` once for each thread.
  void Run(std::size_t grid, std::size_t block, std::function<void()> body);

  // Called by kernels.
  std::uint32_t thread_index() const { return thread().number % block_size_; }
  std::uint32_t block_index() const { return thread().number / block_size_; }
  std::uint32_t block_size() const { return block_size_; }
  std::uint32_t block_count() const { return static_cast<std::uint32_t>(blocks_.size()); }
  Region* Shared(int place, std::size_t bytes, std::size_t element_bytes);
  void SyncBlock(int line);
  void SyncWarp(std::uint32_t mask) { Meet(Meeting::kSync, mask, 0, 0); }
  std::uint64_t Shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t lane) {
    return Meet(Meeting::kShuffle, mask, value, lane);
  }
  std::uint32_t Ballot(std::uint32_t mask, bool flag) {
    return static_cast<std::uint32_t>(Meet(Meeting::kBallot, mask, flag ? 1 : 0, 0));
  }

  enum class Access : std::uint8_t { kRead, kWrite, kAtomicRead, kAtomic };
  /// Checks an access of `bytes` bytes at `offset` of a region; other threads may run before it.
  /// `value`: what is written, or null. Returns the address of the bytes, or null if out of bounds.
  unsigned char* Touch(Region* region, std::int64_t offset, std::size_t bytes, Access access,
                       const void* value);

 private:
  enum class Order : std::uint8_t { kAny, kWarpFirst, kLowFirst, kHighFirst };
  enum class State : std::uint8_t { kReady, kAtBarrier, kAtWarp, kDone };
  enum class Meeting : std::uint8_t { kNone, kSync, kShuffle, kBallot };
  static constexpr std::uint32_t kLanes = 32;

  struct Thread {
    std::uint32_t number = 0;
    State state = State::kReady;
    std::uint32_t phase = 0;
    std::uint32_t clock = 1;
    std::uint32_t seen[kLanes] = {};  ///< last clock of each lane of the warp that came before
    std::uint32_t place = 0;          ///< index in ready_
    int line = 0;                     ///< source line of the barrier at which it waits
    Meeting meeting = Meeting::kNone;
    std::uint32_t mask = 0;
    std::uint64_t value = 0;
    std::uint32_t lane = 0;
    std::uint64_t result = 0;
    Fiber* fiber = nullptr;
  };
  struct Block {
    std::uint32_t waiting = 0;
    std::uint32_t done = 0;
    std::size_t shared_bytes = 0;
    std::vector<std::pair<int, std::unique_ptr<Region>>> shared;
  };

  Thread& thread() const { return *running_; }
  std::uint64_t Random() {
    random_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = random_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  void Report(Fault fault, const std::string& text) {
    constexpr std::size_t kMost = 20;
    if (findings_.size() < kMost) findings_.push_back({fault, text});
  }
  std::string Name(std::uint32_t number) const {
    return "thread " + std::to_string(number % block_size_) + " of block " +
           std::to_string(number / block_size_);
  }
  static void Enter();
  void Point();
  void Wait(State state);
  void MakeReady(Thread& t) {
    t.state = State::kReady;
    t.place = static_cast<std::uint32_t>(ready_.size());
    ready_.push_back(t.number);
  }
  void Unready(const Thread& t) {
    ready_[t.place] = ready_.back();
    threads_[ready_[t.place]].place = t.place;
    ready_.pop_back();
  }
  Thread& Next();
  void Loop();
  void OpenBarrier(std::uint32_t block);
  void ReportStuck();
  std::uint64_t Meet(Meeting meeting, std::uint32_t mask, std::uint64_t value, std::uint32_t lane);
  void Exchange(std::uint32_t first, std::uint32_t mask, Meeting meeting);
  bool Before(const Stamp& stamp) const;
  void CheckCell(Region* region, std::size_t index, Access access, bool same);

  static inline Machine* current_ = nullptr;
  Machine* before_ = nullptr;
  std::uint64_t random_;
  std::uint32_t mean_run_ = 1;
  Order order_ = Order::kAny;
  std::vector<Finding> findings_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::uint64_t switches_ = 0;

  // State of the current launch.
  std::uint32_t launch_ = 0;
  std::uint32_t block_size_ = 0;
  std::function<void()> body_;
  std::vector<Thread> threads_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> ready_;
  Thread* running_ = nullptr;
  std::uint64_t steps_ = 0;
  std::uint32_t left_of_run_ = 0;
  bool stopped_ = false;
};

/// Returns the fibers, which are reused by all launches.
inline std::vector<std::unique_ptr<Fiber>>& Fibers() {
  static std::vector<std::unique_ptr<Fiber>> fibers;
  return fibers;
}

inline void Machine::Enter() {
  Machine& machine = Current();
  machine.body_();
  Thread& self = machine.thread();
  Block& block = machine.blocks_[self.number / machine.block_size_];
  ++block.done;
  machine.Unready(self);
  self.state = State::kDone;
  machine.OpenBarrier(self.number / machine.block_size_);
  self.fiber->Suspend();
}

inline void Machine::Run(std::size_t grid, std::size_t block, std::function<void()> body) {
  if (grid == 0 || block == 0 || block > 1024 || grid > 0x7FFFFFFF) {
    return Report(Fault::kLaunch, "a launch of " + std::to_string(grid) + " blocks of " +
                                      std::to_string(block) + " threads");
  }
  ++launch_;
  block_size_ = static_cast<std::uint32_t>(block);
  body_ = std::move(body);
  steps_ = 0;
  stopped_ = false;
  blocks_.clear();
  blocks_.resize(grid);
  threads_.assign(grid * block, Thread());
  ready_.clear();
  while (Fibers().size() < threads_.size()) Fibers().push_back(std::make_unique<Fiber>());
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].number = static_cast<std::uint32_t>(i);
    threads_[i].fiber = Fibers()[i].get();
    threads_[i].fiber->Begin(Enter);
    MakeReady(threads_[i]);
  }
  Loop();
}

inline void Machine::Loop() {
  while (!ready_.empty() && !stopped_) {
    running_ = &Next();
    left_of_run_ = mean_run_ == 0   ? 0xFFFFFFFFU
                   : mean_run_ == 1 ? 1
                                    : 1 + static_cast<std::uint32_t>(Random() % (2 * mean_run_));
    ++switches_;
    running_->fiber->Resume();
  }
  if (stopped_) return;
  if (std::any_of(threads_.begin(), threads_.end(),
                  [](const Thread& t) { return t.state != State::kDone; })) {
    ReportStuck();
  }
}

inline Machine::Thread& Machine::Next() {
  switch (order_) {
    case Order::kAny:
      break;
    case Order::kWarpFirst:  // most often a lane of the warp that ran last
      if (running_ != nullptr && Random() % 8 != 0) {
        const std::size_t first = running_->number / kLanes * kLanes + Random() % kLanes;
        if (first < threads_.size() && threads_[first].state == State::kReady)
          return threads_[first];
      }
      break;
    case Order::kLowFirst:
      if (Random() % 8 != 0 || mean_run_ == 0)
        return threads_[*std::min_element(ready_.begin(), ready_.end())];
      break;
    case Order::kHighFirst:
      if (Random() % 8 != 0 || mean_run_ == 0)
        return threads_[*std::max_element(ready_.begin(), ready_.end())];
      break;
  }
  return threads_[ready_[Random() % ready_.size()]];
}

inline void Machine::Point() {
  if (++steps_ > kStepsOfALaunch) {
    Report(Fault::kEndless, "the launch does not end");
    stopped_ = true;
    thread().fiber->Suspend();
  }
  if (--left_of_run_ == 0) thread().fiber->Suspend();
}

inline void Machine::Wait(State state) {
  Thread& self = thread();
  Unready(self);
  self.state = state;
  self.fiber->Suspend();
}

inline void Machine::SyncBlock(int line) {
  Point();
  Thread& self = thread();
  Block& block = blocks_[block_index()];
  ++block.waiting;
  self.line = line;
  Unready(self);
  self.state = State::kAtBarrier;
  OpenBarrier(block_index());
  self.fiber->Suspend();
}

/// Opens the barrier of a block if all threads that have not ended wait at it.
inline void Machine::OpenBarrier(std::uint32_t block_number) {
  Block& block = blocks_[block_number];
  if (block.waiting == 0 || block.waiting + block.done < block_size_) return;
  const std::size_t first = std::size_t{block_number} * block_size_;
  int line = 0;
  for (std::size_t i = first; i < first + block_size_; ++i) {
    Thread& t = threads_[i];
    if (t.state != State::kAtBarrier) continue;
    if (line != 0 && t.line != line) {
      Report(Fault::kBarrier, "threads of one block wait at the barriers of lines " +
                                  std::to_string(line) + " and " + std::to_string(t.line));
    }
    line = t.line;
    ++t.phase;
    MakeReady(t);
  }
  if (block.done > 0) {
    Report(Fault::kBarrier, std::to_string(block.done) + " threads of block " +
                                std::to_string(block_number) + " left before the barrier of line " +
                                std::to_string(line));
  }
  block.waiting = 0;
}

inline void Machine::ReportStuck() {
  for (const Thread& t : threads_) {
    if (t.state == State::kAtBarrier) {
      return Report(Fault::kBarrier, Name(t.number) + " waits at the barrier of line " +
                                         std::to_string(t.line) + ", which others never reach");
    }
  }
  for (const Thread& t : threads_) {
    if (t.state == State::kAtWarp)
      return Report(Fault::kWarp, Name(t.number) + " waits for lanes of its mask that never come");
  }
}

inline std::uint64_t Machine::Meet(Meeting meeting, std::uint32_t mask, std::uint64_t value,
                                   std::uint32_t lane) {
  Point();
  Thread& self = thread();
  const std::uint32_t index = thread_index();
  if ((mask >> (index % kLanes) & 1U) == 0) {
    Report(Fault::kWarp, Name(self.number) + " is not in the mask that it names");
    return value;
  }
  if (meeting == Meeting::kShuffle && (mask >> (lane % kLanes) & 1U) == 0) {
    Report(Fault::kWarp, Name(self.number) + " takes the value of a lane outside of the mask");
  }
  self.meeting = meeting;
  self.mask = mask;
  self.value = value;
  self.lane = lane % kLanes;
  const std::uint32_t first = self.number - index % kLanes;
  const std::uint32_t end = (self.number / block_size_ + 1) * block_size_;
  for (std::uint32_t other = 0; other < kLanes; ++other) {
    if ((mask >> other & 1U) == 0 || first + other == self.number) continue;
    const bool there = first + other < end;
    if (!there || threads_[first + other].state != State::kAtWarp ||
        threads_[first + other].meeting != meeting || threads_[first + other].mask != mask) {
      if (!there) Report(Fault::kWarp, Name(self.number) + " names lanes that the block lacks");
      Wait(State::kAtWarp);
      return self.result;
    }
  }
  Exchange(first, mask, meeting);
  return self.result;
}

/// Gives each lane of a mask its result and wakes the waiting lanes. All lanes have arrived.
inline void Machine::Exchange(std::uint32_t first, std::uint32_t mask, Meeting meeting) {
  std::uint32_t flags = 0;
  std::uint32_t latest[kLanes] = {};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const Thread& t = threads_[first + lane];
    if (t.value != 0) flags |= 1U << lane;
    for (std::uint32_t i = 0; i < kLanes; ++i) latest[i] = std::max(latest[i], t.seen[i]);
    latest[lane] = std::max(latest[lane], t.clock);
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    Thread& t = threads_[first + lane];
    if (meeting == Meeting::kShuffle) t.result = threads_[first + t.lane].value;
    if (meeting == Meeting::kBallot) t.result = flags;
    if (meeting == Meeting::kSync) {
      std::copy(latest, latest + kLanes, t.seen);
      ++t.clock;
    }
    if (t.state == State::kAtWarp) MakeReady(t);
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) != 0) threads_[first + lane].meeting = Meeting::kNone;
  }
}

inline Region* Machine::Shared(int place, std::size_t bytes, std::size_t element_bytes) {
  Block& block = blocks_[block_index()];
  for (auto& [at, region] : block.shared) {
    if (at == place) return region.get();
  }
  block.shared_bytes += bytes;
  if (block.shared_bytes > kSharedBytes) {
    Report(Fault::kLaunch,
           "a block takes " + std::to_string(block.shared_bytes) + " bytes of shared memory");
  }
  block.shared.emplace_back(
      place, std::make_unique<Region>("shared memory of line " + std::to_string(place), bytes,
                                      element_bytes, false));
  return block.shared.back().second.get();
}

/// Returns whether a stamp of this launch is ordered before the running thread's next action.
inline bool Machine::Before(const Stamp& stamp) const {
  const Thread& self = thread();
  if (stamp.thread == Stamp::kDeletedVertex || stamp.thread == self.number) return true;
  if (stamp.thread / block_size_ != self.number / block_size_) return false;
  if (stamp.phase < self.phase) return true;
  const std::uint32_t other = stamp.thread % block_size_;
  return other / kLanes == thread_index() / kLanes && stamp.clock <= self.seen[other % kLanes];
}

inline void Machine::CheckCell(Region* region, std::size_t index, Access access, bool same) {
  Cell& cell = region->cells[index];
  if (cell.launch != launch_) {
    const bool initialized = cell.initialized;
    cell = Cell();
    cell.initialized = initialized;
    cell.launch = launch_;
  }
  const Thread& self = thread();
  const bool atomic = access == Access::kAtomic || access == Access::kAtomicRead;
  const bool writes = access == Access::kWrite || access == Access::kAtomic;
  const auto conflict = [&](const Stamp& stamp, bool both_write) {
    if (Before(stamp) || (atomic && stamp.atomic)) return;
    const Fault fault = both_write && same ? Fault::kSameValueRace : Fault::kRace;
    Report(fault, Name(self.number) + (writes ? " writes " : " reads ") + region->name + "[" +
                      std::to_string(index) + "], which " + Name(stamp.thread) +
                      (both_write || !writes ? " writes" : " reads") + ", in no order");
  };
  if (access != Access::kWrite && !cell.initialized) {
    Report(Fault::kUninitialized, Name(self.number) + " reads " + region->name + "[" +
                                      std::to_string(index) + "], which nobody has written");
    cell.initialized = true;
  }
  conflict(cell.write, writes);
  const Stamp now{self.number, self.phase, self.clock, atomic};
  if (writes) {
    conflict(cell.read[0], false);
    conflict(cell.read[1], false);
    cell.write = now;
    cell.initialized = true;
    cell.read[0] = cell.read[1] = Stamp();
  } else if (Before(cell.read[0])) {
    cell.read[0] = now;
  } else if (Before(cell.read[1])) {
    cell.read[1] = now;
  }
}

inline unsigned char* Machine::Touch(Region* region, std::int64_t offset, std::size_t bytes,
                                     Access access, const void* value) {
  Point();
  if (region == nullptr) {
    Report(Fault::kBounds, Name(thread().number) + " uses a null pointer");
    return nullptr;
  }
  if (offset < 0 || static_cast<std::uint64_t>(offset) + bytes > region->bytes) {
    Report(Fault::kBounds, Name(thread().number) + " uses byte " + std::to_string(offset) + " of " +
                               region->name + ", which has " + std::to_string(region->bytes));
    return nullptr;
  }
  const auto at = static_cast<std::size_t>(offset);
  if (at % bytes != 0) {
    Report(Fault::kAlignment, Name(thread().number) + " uses " + std::to_string(bytes) +
                                  " bytes at byte " + std::to_string(at) + " of " + region->name);
  }
  unsigned char* const data = region->data + at;
  const bool same = value != nullptr && std::memcmp(data, value, bytes) == 0;
  const std::size_t end = (at + bytes + region->cell_bytes - 1) / region->cell_bytes;
  for (std::size_t i = at / region->cell_bytes; i < end; ++i) CheckCell(region, i, access, same);
  return data;
}

}  // namespace rhizome::simulator
