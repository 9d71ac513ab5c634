#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/pass_sequence.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Random reads of aggregations; the same for each combination of aggregation and number of blocks.
class RandomGathers {
 public:
  explicit RandomGathers(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t Add(std::uint32_t chunks) {
    chunks_.push_back(chunks);
    return static_cast<std::uint32_t>(chunks_.size() - 1);
  }

  const GatherReads& operator()(std::uint32_t gather, std::uint32_t blocks) {
    const auto [drawn, is_new] = drawn_.try_emplace({gather, blocks});
    if (is_new) drawn->second = Draw(gather, blocks);
    return drawn->second;
  }

 private:
  /// Every block reads some chunks, ascending, a few of them twice.
  GatherReads Draw(std::uint32_t gather, std::uint32_t blocks) const {
    std::mt19937_64 random(seed_ + gather * 100 + blocks);
    GatherReads reads;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      for (int window = 0; window < 1 + static_cast<int>(random() % 5 / 4); ++window) {
        for (std::uint32_t c = 0; c < chunks_[gather]; ++c) {
          if (random() % 4 != 0) reads.chunks.push_back(c);
        }
      }
      reads.block_ends.push_back(reads.chunks.size());
    }
    return reads;
  }

  std::uint64_t seed_;
  std::vector<std::uint32_t> chunks_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, GatherReads> drawn_;
};

/// Draws a sequence of 2 to `max_passes` passes over arrays of a few chunks.
inline PassSequence RandomSequence(std::mt19937_64& random, std::size_t max_passes,
                                   std::uint64_t max_rows, bool sums) {
  PassSequence sequence;
  auto gathers = std::make_shared<RandomGathers>(random());
  const auto add_array = [&](bool stored) {
    const auto id = static_cast<ArrayId>(sequence.arrays.size());
    sequence.arrays.push_back({.name = fmt::format("array {}", id),
                               .rows = 1 + random() % max_rows,
                               .row_bytes = 1 + random() % 9,
                               .chunk_rows = 1 + random() % 2,
                               .stored = stored});
    return id;
  };
  std::vector<ArrayId> there = {add_array(true)};
  std::optional<ArrayId> open_sums;
  const auto read_of = [&](ArrayId array) {
    PassRead read{.array = array, .gather = PassRead::kInOrder};
    if (random() % 2 == 0)
      read.gather = static_cast<std::int32_t>(gathers->Add(sequence.arrays[array].chunks()));
    return read;
  };
  const auto draw_choices = [&](PassMethod& way) {
    way.choices = {{.blocks = 1, .memory_bytes = random() % 8, .beside_bytes = random() % 4}};
    if (random() % 2 == 0) {
      way.choices.push_back(
          {.blocks = 2, .memory_bytes = random() % 4, .beside_bytes = random() % 16});
    }
  };
  for (std::size_t p = 2 + random() % (max_passes - 1); p > 0; --p) {
    SpillPass pass{.name = fmt::format("{}", sequence.passes.size()), .way = {}, .writes = {}};
    const auto add_reads = [&](PassMethod& way) {
      for (std::uint64_t i = 1 + random() % 2; i > 0; --i) {
        const PassRead read = read_of(there[random() % there.size()]);
        const bool known = std::any_of(way.reads.begin(), way.reads.end(), [&](const PassRead& r) {
          return r.array == read.array && r.gather == read.gather;
        });
        if (!known) way.reads.push_back(read);
      }
    };
    add_reads(pass.way);
    if (open_sums && random() % 2 == 0) {
      pass.recompute.reads = pass.way.reads;
      add_reads(pass.recompute);
      pass.way.reads.push_back({.array = *open_sums, .gather = PassRead::kInOrder});
      pass.sums = std::exchange(open_sums, std::nullopt);
      draw_choices(pass.recompute);
    }
    draw_choices(pass.way);
    if (random() % 4 != 0) {
      pass.writes.push_back(add_array(false));
      there.push_back(pass.writes.back());
    }
    if (sums && !open_sums && random() % 2 == 0) {
      open_sums = add_array(false);
      pass.writes.push_back(*open_sums);
    }
    sequence.passes.push_back(std::move(pass));
  }
  sequence.gather = [gathers](std::uint32_t gather, std::uint32_t blocks) -> Result<GatherReads> {
    return (*gathers)(gather, blocks);
  };
  return sequence;
}

/// Describes a way to compute a pass, for messages of failed tests.
inline std::string Describe(const PassSequence& sequence, const PassMethod& way) {
  std::string text;
  for (const PassRead& read : way.reads) {
    text += fmt::format(" {}", read.array);
    if (read.gather == PassRead::kInOrder) continue;
    for (const BlockChoice& choice : way.choices) {
      const GatherReads reads =
          *sequence.gather(static_cast<std::uint32_t>(read.gather), choice.blocks);
      text += fmt::format(" (chunks {} to {})", fmt::join(reads.chunks, " "),
                          fmt::join(reads.block_ends, " "));
    }
  }
  for (const BlockChoice& choice : way.choices)
    text += fmt::format(" [{}: {}, {}]", choice.blocks, choice.memory_bytes, choice.beside_bytes);
  return text;
}

/// Describes a sequence, for messages of failed tests.
inline std::string Describe(const PassSequence& sequence) {
  std::string text;
  for (const SpillArray& a : sequence.arrays) {
    text += fmt::format("{}: {} rows of {} bytes, {} a chunk{}\n", a.name, a.rows, a.row_bytes,
                        a.chunk_rows, a.stored ? ", stored" : "");
  }
  for (const SpillPass& pass : sequence.passes) {
    text += fmt::format("pass reads{} writes {}", Describe(sequence, pass.way),
                        fmt::join(pass.writes, " "));
    if (pass.sums)
      text += fmt::format("; sums {}, or{}", *pass.sums, Describe(sequence, pass.recompute));
    text += "\n";
  }
  return text;
}

/// A pass as it is run: what it reads and writes, chunk by chunk.
struct PlainPass {
  const PassMethod* way = nullptr;
  std::vector<ArrayId> writes;
  BlockChoice choice;
};

/// Returns the passes of a sequence in which the arrays `left_out` are not stored, without choices.
inline std::vector<PlainPass> PlainPasses(const PassSequence& sequence,
                                          const std::set<ArrayId>& left_out) {
  std::vector<PlainPass> passes;
  for (const SpillPass& pass : sequence.passes) {
    PlainPass& plain = passes.emplace_back();
    plain.way = pass.sums && left_out.count(*pass.sums) ? &pass.recompute : &pass.way;
    for (const ArrayId array : pass.writes) {
      if (left_out.count(array) == 0) plain.writes.push_back(array);
    }
  }
  return passes;
}

/// Returns whether a pass after `pass` reads the array.
inline bool ReadLater(const std::vector<PlainPass>& passes, std::size_t pass, ArrayId array) {
  for (std::size_t p = pass + 1; p < passes.size(); ++p) {
    for (const PassRead& read : passes[p].way->reads) {
      if (read.array == array) return true;
    }
  }
  return false;
}

inline bool ReadsInOrderOnly(const PlainPass& pass, ArrayId array) {
  bool in_order = false;
  for (const PassRead& read : pass.way->reads) {
    if (read.array != array) continue;
    if (read.gather != PassRead::kInOrder) return false;
    in_order = true;
  }
  return in_order;
}

/// Returns how often a pass asks for each chunk of an array.
inline std::vector<std::uint64_t> Requests(const PassSequence& sequence, const PlainPass& pass,
                                           ArrayId array) {
  std::vector<std::uint64_t> requests(sequence.arrays[array].chunks(), 0);
  for (const PassRead& read : pass.way->reads) {
    if (read.array != array) continue;
    if (read.gather == PassRead::kInOrder) {
      for (std::uint64_t& count : requests) ++count;
    } else {
      const GatherReads reads =
          *sequence.gather(static_cast<std::uint32_t>(read.gather), pass.choice.blocks);
      for (const std::uint32_t chunk : reads.chunks) ++requests[chunk];
    }
  }
  return requests;
}

}  // namespace rhizome::testing
