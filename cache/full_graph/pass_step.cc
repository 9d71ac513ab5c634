#include "cache/full_graph/pass_step.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

StepArray EmptyStep(ArrayId array, PartState before, std::uint8_t most, bool needed) {
  return {.array = array,
          .before = before,
          .most = most,
          .needed = needed,
          .regrows = false,
          .cost = {},
          .holds = {},
          .after = {}};
}

}  // namespace

StepMaker::StepMaker(const CountedSequence& sequence, std::uint32_t parts)
    : sequence_(sequence), parts_(parts) {
  for (const SpillArray& array : sequence.arrays) {
    const std::uint64_t chunks = array.chunks();
    for (std::uint32_t part = 0; part <= parts; ++part) {
      prefix_.push_back(array.BytesOfFirst(array.ChunksOfPart(part, parts)));
      reached_.push_back(array.BytesOfFirst((chunks * part + parts - 1) / parts));
    }
  }
  for (const CountedPass& pass : sequence.passes) {
    auto& choices = requests_.emplace_back();
    for (const CountedChoice& choice : pass.choices) {
      CountRequests(choice, choices.emplace_back());
    }
  }
}

void StepMaker::CountRequests(const CountedChoice& choice, std::vector<Requests>& counted) const {
  std::map<ArrayId, std::vector<std::uint64_t>> requests;  // per chunk
  for (const CountedRead& read : choice.reads) {
    auto& of_chunk = requests[read.array];
    of_chunk.resize(sequence_.arrays[read.array].chunks());
    if (read.gather == nullptr) {
      for (std::uint64_t& count : of_chunk) ++count;
    } else {
      for (const std::uint32_t chunk : read.gather->chunks) ++of_chunk[chunk];
    }
  }
  for (const auto& [id, of_chunk] : requests) {
    const SpillArray& array = sequence_.arrays[id];
    Requests made{.array = id, .in_order = !choice.Gathers(id), .beyond = {0}, .whole = {}};
    for (std::uint32_t part = parts_; part-- > 0;) {
      const std::uint32_t end = array.ChunksOfPart(part + 1, parts_);
      std::uint64_t bytes = 0;
      bool whole = true;
      for (std::uint32_t c = array.ChunksOfPart(part, parts_); c < end; ++c) {
        bytes += of_chunk[c] * array.BytesOfChunk(c);
        whole = whole && of_chunk[c] > 0;
      }
      made.beyond.insert(made.beyond.begin(), bytes + made.beyond.front());
      made.whole.insert(made.whole.begin(), whole);
    }
    counted.push_back(std::move(made));
  }
}

// Collects the arrays of a pass: (1) arrays that it reads; (2) arrays that it writes and a later
// pass needs; (3) other arrays in memory. Each gets its costs, memory and state per number of
// resident parts.
std::vector<StepArray> StepMaker::Make(std::size_t pass, std::uint32_t choice,
                                       std::span<const PartState> before) const {
  const CountedPass& counted = sequence_.passes[pass];
  std::vector<StepArray> made;
  for (const Requests& requests : requests_[pass][choice]) {
    made.push_back(MakeRead(pass, requests, before[requests.array]));
  }
  for (const ArrayId array : counted.writes) {
    if (sequence_.NeededAfter(array, pass)) made.push_back(MakeWritten(array));
  }
  for (ArrayId array = 0; array < before.size(); ++array) {
    if (before[array].resident > 0 && !counted.choices[choice].Reads(array)) {
      made.push_back(MakeIdle(array, before[array]));
    }
  }
  for (StepArray& array : made) array.regrows = Regrows(array.array, pass);
  return made;
}

bool StepMaker::Regrows(ArrayId array, std::size_t pass) const {
  for (std::size_t p = pass + 1; p < sequence_.passes.size(); ++p) {
    const CountedChoice& choice = sequence_.passes[p].choices.front();
    if (choice.Reads(array)) return !choice.Gathers(array) && sequence_.NeededAfter(array, p);
  }
  return false;
}

std::uint64_t StepMaker::EvictBytes(ArrayId array, PartState before, std::uint32_t to) const {
  return PrefixBytes(array, before.dirty) -
         PrefixBytes(array, std::min<std::uint32_t>(before.dirty, to));
}

StepArray StepMaker::MakeRead(std::size_t pass, const Requests& requests, PartState before) const {
  const ArrayId id = requests.array;
  StepArray made = EmptyStep(id, before, before.resident, sequence_.NeededAfter(id, pass));
  const bool ends = requests.in_order && !made.needed;
  // An array that is read in order for the last time does not grow. Otherwise it grows only by
  // parts that the pass requests completely.
  while (!ends && made.most < parts_ && requests.whole[made.most]) ++made.most;
  for (std::uint32_t y = 0; y <= made.most; ++y) {
    const std::uint64_t prefix = PrefixBytes(id, y);
    const std::uint64_t known = PrefixBytes(id, std::min<std::uint32_t>(y, before.resident));
    made.cost.push_back(EvictBytes(id, before, y) + prefix - known + requests.beyond[y]);
    StageBytes& holds = made.holds.emplace_back();
    for (std::uint32_t stage = 0; stage < parts_; ++stage) {
      if (!requests.in_order) {
        holds[stage] = prefix;
      } else if (ends) {
        holds[stage] = prefix - PrefixBytes(id, std::min(y, stage));
      } else {
        holds[stage] = std::max(known, std::min(prefix, Reached(id, stage + 1)));
      }
    }
    const auto resident = static_cast<std::uint8_t>(made.needed ? y : 0);
    made.after.push_back({.resident = resident, .dirty = std::min(before.dirty, resident)});
  }
  return made;
}

StepArray StepMaker::MakeWritten(ArrayId id) const {
  StepArray made = EmptyStep(id, {}, static_cast<std::uint8_t>(parts_), true);
  for (std::uint32_t y = 0; y <= parts_; ++y) {
    const std::uint64_t prefix = PrefixBytes(id, y);
    made.cost.push_back(sequence_.arrays[id].bytes() - prefix);
    StageBytes& holds = made.holds.emplace_back();
    for (std::uint32_t stage = 0; stage < parts_; ++stage)
      holds[stage] = std::min(prefix, Reached(id, stage + 1));
    const auto resident = static_cast<std::uint8_t>(y);
    made.after.push_back({.resident = resident, .dirty = resident});
  }
  return made;
}

StepArray StepMaker::MakeIdle(ArrayId id, PartState before) const {
  StepArray made = EmptyStep(id, before, before.resident, true);
  for (std::uint32_t y = 0; y <= before.resident; ++y) {
    made.cost.push_back(EvictBytes(id, before, y));
    StageBytes& holds = made.holds.emplace_back();
    holds.fill(PrefixBytes(id, y));
    const auto resident = static_cast<std::uint8_t>(y);
    made.after.push_back({.resident = resident, .dirty = std::min(before.dirty, resident)});
  }
  return made;
}

}  // namespace internal
}  // namespace rhizome
