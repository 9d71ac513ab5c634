#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cuda/machine.h"

// Implements the vocabulary of cuda/launch.h for kernels that run in a Machine. Include it before
// any kernel.

namespace rhizome::simulator {

/// Name of the seeded mistake that kernels make; empty: none. Kernels name it in RZ_MUTANT.
inline std::string_view active_mutant;
/// If set, records all mistakes that kernels have asked for.
inline std::optional<std::set<std::string_view>> asked_mutants;

inline bool Mutant(std::string_view name) {
  if (asked_mutants) asked_mutants->insert(name);
  return active_mutant == name;
}

/// An element of a region. Reading and writing it are accesses of the running thread.
template <typename T>
class Element {
 public:
  using Value = std::remove_const_t<T>;
  Element(Region* region, std::int64_t offset) : region_(region), offset_(offset) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  operator Value() const {
    Value value{};
    const void* const at =
        Machine::Current().Touch(region_, offset_, sizeof(Value), Machine::Access::kRead, nullptr);
    if (at != nullptr) std::memcpy(&value, at, sizeof(Value));
    return value;
  }
  const Element& operator=(const Value& value) const requires(!std::is_const_v<T>) {
    void* const at =
        Machine::Current().Touch(region_, offset_, sizeof(Value), Machine::Access::kWrite, &value);
    if (at != nullptr) std::memcpy(at, &value, sizeof(Value));
    return *this;
  }
  const Element& operator=(const Element& other) const { return *this = static_cast<Value>(other); }
  Element(const Element&) = default;

 private:
  Region* region_;
  std::int64_t offset_;
};

}  // namespace rhizome::simulator

namespace rhizome::cuda {

using Stream = int;

/// A pointer to device memory.
template <typename T>
class Mem {
 public:
  Mem() = default;
  Mem(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  Mem(simulator::Region* region, std::int64_t offset) : region_(region), offset_(offset) {}
  template <typename U>
  requires(std::is_same_v<T, const U>)
      Mem(const Mem<U>& other)  // NOLINT(google-explicit-constructor)
      : region_(other.region()), offset_(other.offset()) {}

  simulator::Element<T> operator[](std::size_t i) const {
    return {region_, offset_ + static_cast<std::int64_t>(i * sizeof(T))};
  }
  Mem operator+(std::size_t i) const {
    return {region_, offset_ + static_cast<std::int64_t>(i * sizeof(T))};
  }
  friend bool operator==(const Mem& mem, std::nullptr_t) { return mem.region_ == nullptr; }
  simulator::Region* region() const { return region_; }
  std::int64_t offset() const { return offset_; }

 private:
  simulator::Region* region_ = nullptr;
  std::int64_t offset_ = 0;
};

template <typename To, typename From>
Mem<To> Cast(const Mem<From>& mem) {
  return {mem.region(), mem.offset()};
}

inline unsigned ThreadIndex() { return simulator::Machine::Current().thread_index(); }
inline unsigned BlockSize() { return simulator::Machine::Current().block_size(); }
inline unsigned BlockIndex() { return simulator::Machine::Current().block_index(); }
inline unsigned BlockCount() { return simulator::Machine::Current().block_count(); }
inline void SyncBlock(int line = __builtin_LINE()) {
  simulator::Machine::Current().SyncBlock(line);
}
inline void SyncWarp(unsigned mask) { simulator::Machine::Current().SyncWarp(mask); }
template <typename T>
T Shuffle(unsigned mask, T value, unsigned lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = simulator::Machine::Current().Shuffle(mask, bits, lane);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
inline unsigned Ballot(unsigned mask, bool flag) {
  return simulator::Machine::Current().Ballot(mask, flag);
}
inline unsigned CountBits(unsigned bits) { return static_cast<unsigned>(std::popcount(bits)); }

/// Replaces an element by change(old) in one step, and returns the old value.
template <typename T, typename Change>
T Atomically(const Mem<T>& at, const Change& change) {
  T old{};
  void* const data = simulator::Machine::Current().Touch(
      at.region(), at.offset(), sizeof(T), simulator::Machine::Access::kAtomic, nullptr);
  if (data == nullptr) return old;
  std::memcpy(&old, data, sizeof(T));
  const T changed = change(old);
  std::memcpy(data, &changed, sizeof(T));
  return old;
}
template <typename T>
std::remove_const_t<T> AtomicLoad(const Mem<T>& at) {
  std::remove_const_t<T> value{};
  const void* const data = simulator::Machine::Current().Touch(
      at.region(), at.offset(), sizeof(T), simulator::Machine::Access::kAtomicRead, nullptr);
  if (data != nullptr) std::memcpy(&value, data, sizeof(T));
  return value;
}
struct WordPair {
  std::int64_t first;
  std::int64_t second;
};
inline WordPair AtomicLoadPair(const Mem<std::int64_t>& at) {
  const std::int64_t first = AtomicLoad(at);
  return {first, AtomicLoad(at + 1)};
}
inline std::int64_t AtomicCas(const Mem<std::int64_t>& at, std::int64_t expected,
                              std::int64_t desired) {
  return Atomically(at, [&](std::int64_t old) { return old == expected ? desired : old; });
}
inline std::uint32_t AtomicMin(const Mem<std::uint32_t>& at, std::uint32_t value) {
  return Atomically(at, [&](std::uint32_t old) { return old < value ? old : value; });
}
inline std::uint32_t AtomicAdd(const Mem<std::uint32_t>& at, std::uint32_t value) {
  return Atomically(at, [&](std::uint32_t old) { return old + value; });
}
inline std::uint32_t AtomicOr(const Mem<std::uint32_t>& at, std::uint32_t value) {
  return Atomically(at, [&](std::uint32_t old) { return old | value; });
}

// The tests are compiled with -ffp-contract=off.
inline float Product(float a, float b) { return a * b; }
inline float Sum(float a, float b) { return a + b; }
inline float FloatOfBits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t BitsOfFloat(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace rhizome::cuda

#define RZ_KERNEL inline void
#define RZ_DEVICE inline
#define RZ_SHARED(T, name, count)                                                                \
  const ::rhizome::cuda::Mem<T> name(                                                            \
      ::rhizome::simulator::Machine::Current().Shared(__LINE__, sizeof(T) * (count), sizeof(T)), \
      0)
#define RZ_LAUNCH(kernel, grid, block, stream, ...) \
  (static_cast<void>(stream),                       \
   ::rhizome::simulator::Machine::Current().Run((grid), (block), [=] { kernel(__VA_ARGS__); }))
#define RZ_UNROLL
#define RZ_MUTANT(name) ::rhizome::simulator::Mutant(name)

namespace rhizome::simulator {

/// Creates a region with a copy of `values`.
template <typename T>
cuda::Mem<T> Upload(const char* name, std::span<const T> values) {
  Region* const region = Machine::Current().NewRegion(name, values.size_bytes(), sizeof(T), true);
  std::memcpy(region->data, values.data(), values.size_bytes());
  return {region, 0};
}
template <typename T>
cuda::Mem<T> Upload(const char* name, const std::vector<T>& values) {
  return Upload(name, std::span<const T>(values));
}
/// Creates a region without initialised elements.
template <typename T>
cuda::Mem<T> Allocate(const char* name, std::size_t count) {
  return {Machine::Current().NewRegion(name, count * sizeof(T), sizeof(T), false), 0};
}
/// Returns the contents of a region, initialised or not.
template <typename T>
std::vector<T> Download(const cuda::Mem<T>& mem) {
  std::vector<T> values(mem.region()->bytes / sizeof(T));
  std::memcpy(values.data(), mem.region()->data, values.size() * sizeof(T));
  return values;
}

}  // namespace rhizome::simulator
