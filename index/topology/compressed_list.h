#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rhizome {
inline namespace internal {

/// Appends the Elias-Fano form of `values`, which must not descend; appends nothing for an empty
/// list. The form takes about 2 + log2(largest / count) bits a number, and any number can be read
/// without the others. Format: storage/FORMAT.md, "Compressed lists".
/// Sources: P. Elias 1974, R. Fano 1971; the layout of the parts and the samples are our own.
void AppendCompressedList(std::span<const std::uint64_t> values, std::vector<std::byte>& out);

/// Reads a list that AppendCompressedList wrote. Every access is within the given bytes, regardless
/// of their content: damaged bytes yield no value or a wrong one, never an access elsewhere.
/// Ownership: borrows the bytes.
/// Threads: const.
class CompressedList {
 public:
  /// Every kSampleEvery-th entry has a sample of its position in the high parts.
  static constexpr std::uint64_t kSampleEvery = 256;

  /// Opens `count` numbers in exactly `bytes`. Returns nullopt if the bytes cannot hold them.
  static std::optional<CompressedList> Open(std::span<const std::byte> bytes, std::uint64_t count);

  std::uint64_t count() const { return count_; }

  /// Returns number i < count(), or nullopt if the bytes are found to be damaged.
  std::optional<std::uint64_t> At(std::uint64_t i) const;

  /// Decodes all numbers in order. Returns false if the bytes are damaged, for example if a number
  /// is below its predecessor, a sample is wrong, or bits are set after the last number.
  bool Decode(std::span<std::uint64_t> out) const;

  /// As Decode, for numbers that must be below `limit`, which is at most 2^32.
  bool DecodeBelow(std::uint64_t limit, std::span<std::uint32_t> out) const;

 private:
  CompressedList() = default;
  template <typename T>
  bool DecodeAs(std::uint64_t limit, std::span<T> out) const;
  std::uint64_t Load(std::uint64_t at) const;
  std::uint64_t Sample(std::uint64_t number) const;
  std::uint64_t Low(std::uint64_t i) const;
  std::uint64_t HighWord(std::uint64_t word) const { return Load(high_at_ + word * 8); }
  std::uint64_t high_words() const { return (bytes_.size() - high_at_ + 7) / 8; }

  std::span<const std::byte> bytes_;  // header, samples, low parts, high parts
  std::uint64_t low_at_ = 0;
  std::uint64_t high_at_ = 0;
  std::uint64_t count_ = 0;
  std::uint32_t low_bits_ = 0;
};

}  // namespace internal
}  // namespace rhizome
