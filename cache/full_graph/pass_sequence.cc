#include "cache/full_graph/pass_sequence.h"

#include <fmt/format.h>

#include <algorithm>

namespace rhizome {
inline namespace internal {
namespace {

Status BadPass(const SpillPass& pass, const std::string& why) {
  return Status::InvalidArgument(fmt::format("pass {}: {}", pass.name, why));
}

/// Checks each pass against the arrays that earlier passes have written.
class SequenceCheck {
 public:
  explicit SequenceCheck(const PassSequence& sequence)
      : sequence_(sequence), known_(sequence.arrays.size()), optional_(sequence.arrays.size()) {
    for (std::size_t a = 0; a < known_.size(); ++a) known_[a] = sequence.arrays[a].stored;
    for (const SpillPass& pass : sequence.passes) {
      if (pass.sums && *pass.sums < optional_.size()) optional_[*pass.sums] = true;
    }
  }

  Status Check(const SpillPass& pass) {
    RHIZOME_RETURN_IF_ERROR(CheckWay(pass, pass.way));
    if (pass.sums) RHIZOME_RETURN_IF_ERROR(CheckSums(pass));
    for (const ArrayId array : pass.writes) {
      if (array >= known_.size()) return BadPass(pass, "writes an array that is not listed");
      if (known_[array]) {
        return BadPass(pass, "writes " + sequence_.arrays[array].name + ", which is there already");
      }
      known_[array] = true;
    }
    return Status::Ok();
  }

 private:
  Status CheckSums(const SpillPass& pass) const {
    const ArrayId sums = *pass.sums;
    const bool reads_them = std::any_of(pass.way.reads.begin(), pass.way.reads.end(),
                                        [&](const PassRead& read) { return read.array == sums; });
    if (sums >= known_.size() || sequence_.arrays[sums].stored || !reads_them) {
      return BadPass(pass, "its sums must be an array that it reads and that a pass writes");
    }
    return CheckWay(pass, pass.recompute);
  }

  Status CheckWay(const SpillPass& pass, const PassMethod& way) const {
    if (way.choices.empty()) return BadPass(pass, "has no choice of a number of blocks");
    for (const BlockChoice& choice : way.choices) {
      if (choice.blocks == 0) return BadPass(pass, "has no blocks");
    }
    for (const PassRead& read : way.reads) {
      if (read.array >= known_.size()) return BadPass(pass, "reads an array that is not listed");
      const std::string& name = sequence_.arrays[read.array].name;
      if (!known_[read.array]) return BadPass(pass, "reads " + name + ", which no pass wrote");
      if (optional_[read.array] && read.array != pass.sums) {
        return BadPass(pass, "reads " + name + ", which may not be stored");
      }
      const auto same = [&](const PassRead& other) {
        return other.array == read.array && other.gather == read.gather;
      };
      if (std::count_if(way.reads.begin(), way.reads.end(), same) > 1)
        return BadPass(pass, "reads " + name + " twice");
      if (read.gather >= 0 && !sequence_.gather)
        return BadPass(pass, "aggregates, but has no counter");
    }
    return Status::Ok();
  }

  const PassSequence& sequence_;
  std::vector<bool> known_;
  std::vector<bool> optional_;
};

}  // namespace

Status CheckSequence(const PassSequence& sequence) {
  for (const SpillArray& array : sequence.arrays) {
    if (array.chunk_rows == 0 || array.rows > std::uint64_t{1} << 40 ||
        array.row_bytes > std::uint64_t{1} << 30 ||
        (array.rows + array.chunk_rows - 1) / array.chunk_rows > std::uint64_t{1} << 31) {
      return Status::InvalidArgument(
          fmt::format("array {}: {} rows of {} bytes in chunks of {} rows", array.name, array.rows,
                      array.row_bytes, array.chunk_rows));
    }
  }
  SequenceCheck check(sequence);
  for (const SpillPass& pass : sequence.passes) RHIZOME_RETURN_IF_ERROR(check.Check(pass));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
