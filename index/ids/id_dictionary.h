#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

/// Numbers keys in order of first occurrence: an open-addressing table of indices. `Keys` holds the
/// keys, and provides Append for a key, and Equal and Hash for the i-th one.
/// Memory: 8 to 16 bytes a key besides the keys.
/// Threads: one at a time.
template <typename Keys>
class IdDictionary {
 public:
  using Key = typename Keys::Key;
  IdDictionary() : slots_(kFirstSlots, 0) {}

  /// Returns the key's number, and whether it is new.
  std::pair<std::int64_t, bool> Add(Key key) {
    std::size_t slot = FindSlot(key);
    if (slots_[slot] != 0) return {static_cast<std::int64_t>(slots_[slot] - 1), false};
    if (2 * (keys_.size() + 1) > slots_.size()) {
      Grow();
      slot = FindSlot(key);
    }
    keys_.Append(key);
    slots_[slot] = keys_.size();
    return {static_cast<std::int64_t>(keys_.size() - 1), true};
  }

  bool Contains(Key key) const { return slots_[FindSlot(key)] != 0; }

  std::uint64_t size() const { return keys_.size(); }
  const Keys& keys() const { return keys_; }
  Keys&& TakeKeys() && { return std::move(keys_); }
  std::uint64_t memory_bytes() const { return keys_.memory_bytes() + slots_.size() * 8; }

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two, as FindSlot requires

  /// Returns the key's slot, or the empty slot where it belongs.
  std::size_t FindSlot(Key key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = Keys::Hash(key) & mask;
    while (slots_[slot] != 0 && !keys_.Equal(slots_[slot] - 1, key)) slot = (slot + 1) & mask;
    return slot;
  }

  void Grow() {
    slots_.assign(slots_.size() * 2, 0);
    const std::size_t mask = slots_.size() - 1;
    for (std::uint64_t i = 0; i < keys_.size(); ++i) {
      std::size_t slot = Keys::Hash(keys_.At(i)) & mask;
      while (slots_[slot] != 0) slot = (slot + 1) & mask;
      slots_[slot] = i + 1;
    }
  }

  Keys keys_;
  // A slot has index + 1, or 0 if it is free. The size is a power of two, and at most half of the
  // slots are used.
  std::vector<std::uint64_t> slots_;
};

/// Integer keys.
class IntegerKeys {
 public:
  using Key = std::int64_t;
  static std::uint64_t Hash(Key key) { return Mix64(static_cast<std::uint64_t>(key)); }
  bool Equal(std::uint64_t i, Key key) const { return keys_[i] == key; }
  Key At(std::uint64_t i) const { return keys_[i]; }
  void Append(Key key) { keys_.push_back(key); }
  std::uint64_t size() const { return keys_.size(); }
  std::uint64_t memory_bytes() const { return keys_.capacity() * sizeof(Key); }
  std::vector<std::int64_t>& values() { return keys_; }

 private:
  std::vector<std::int64_t> keys_;
};

/// String keys, packed one after another.
class StringKeys {
 public:
  using Key = std::string_view;
  static std::uint64_t Hash(Key key) { return std::hash<std::string_view>()(key); }
  bool Equal(std::uint64_t i, Key key) const { return At(i) == key; }
  Key At(std::uint64_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return Key(bytes_).substr(begin, ends_[i] - begin);
  }
  void Append(Key key) {
    bytes_.append(key);
    ends_.push_back(bytes_.size());
  }
  std::uint64_t size() const { return ends_.size(); }
  std::uint64_t memory_bytes() const { return bytes_.capacity() + ends_.capacity() * 8; }

 private:
  std::string bytes_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace internal
}  // namespace rhizome
