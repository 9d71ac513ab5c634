#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/spill.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// Sorts keys, each with its position in the input, by (key, position) in bounded memory: an
/// external merge sort. Runs are sorted in memory on all cores and spilled, then merged k ways, in
/// several rounds if there are more runs than blocks that fit in memory. Equal keys of a run are
/// spilled once, with all their positions.
/// Source: Knuth, The Art of Computer Programming, vol. 3, 5.4.
///
/// Keys are strings, compared as bytes, or int64; one sorter accepts only one kind. Positions must
/// ascend.
/// Threads: one at a time.
class KeySorter {
 public:
  KeySorter(SpillSpace& space, std::uint64_t memory_bytes);

  /// Add a key.
  /// Errors: any error of spilling.
  Status AddString(std::string_view key, std::uint64_t position);
  Status AddInteger(std::int64_t key, std::uint64_t position);

  /// Calls visit(key, positions, is_new) for all keys in ascending order. A key may be split over
  /// several calls with ascending positions; `is_new` marks the first of them. IntegerOf decodes an
  /// integer key. Consumes the sorter.
  using Visit = std::function<Status(std::string_view key, std::span<const std::uint64_t> positions,
                                     bool is_new)>;
  Status Merge(const JobControl& control, const Visit& visit);

  static std::int64_t IntegerOf(std::string_view key);
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    std::uint64_t prefix;  // the first 8 bytes, big-endian; the whole key if it is an integer
    std::uint64_t position;
    std::uint32_t offset;
    std::uint32_t size;
  };
  bool Before(const Entry& a, const Entry& b) const;
  std::string_view TextOf(const Entry& entry) const {
    return std::string_view(text_).substr(entry.offset, entry.size);
  }
  Status Add(const Entry& entry);
  Status SpillRun();
  Status MergeRuns(std::span<const SpillFile> runs, const Visit& visit);
  Result<SpillFile> MergeToRun(std::span<const SpillFile> runs);
  std::size_t FanIn() const;

  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  bool integers_ = false;
  std::vector<Entry> entries_;
  std::string text_;
  std::vector<SpillFile> runs_;
};

}  // namespace internal
}  // namespace rhizome
