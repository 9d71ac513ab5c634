#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/spill.h"
#include "rhizome/storage/job_control.h"

namespace rhizome::inline internal {

/// Sorts keys, each with the position where it stood, by (key, position) in bounded memory: runs
/// are sorted in memory on all cores and spilled, then merged k ways, in several rounds where the
/// runs are more than blocks fit in memory. Equal keys of a run are spilled once, with all their
/// positions. Source: Knuth, The Art of Computer Programming, vol. 3, 5.4.
///
/// Keys are strings, compared as bytes, or int64; a sorter sees one kind only. Positions must
/// ascend. Threads: one at a time.
class KeySorter {
 public:
  KeySorter(SpillSpace& space, std::uint64_t memory_bytes);

  /// Errors: those of spilling.
  Status AddString(std::string_view key, std::uint64_t position);
  Status AddInteger(std::int64_t key, std::uint64_t position);

  /// Calls visit(key, positions, is_new) for all keys in ascending order; the positions of a key
  /// ascend over its calls, `is_new` marks the first of them. Integers come as IntegerOf reads
  /// them. Consumes the sorter.
  using Visit = std::function<Status(std::string_view key, std::span<const std::uint64_t> positions,
                                     bool is_new)>;
  Status Merge(const JobControl& control, const Visit& visit);

  static std::int64_t IntegerOf(std::string_view key);
  std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    std::uint64_t prefix;  // the first 8 bytes, big-endian; all of an integer
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

}  // namespace rhizome::inline internal
