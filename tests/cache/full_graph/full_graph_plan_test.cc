#include "cache/full_graph/full_graph_plan.h"

#include <numeric>

#include "cache/full_graph/planned_spill.h"
#include "cache/full_graph/sequence_testing.h"
#include "testing/sanitizer.h"

// Tests of the plans of full-graph passes with limited memory: the planner finds the minimum bytes
// of an exhaustive search, and a replay of each plan moves exactly the planned bytes within the
// memory.

namespace rhizome {
namespace {

using testing::Describe;
using testing::PlainPass;
using testing::PlainPasses;
using testing::RandomSequence;
using testing::ReadLater;
using testing::ReadsInOrderOnly;
using testing::Requests;

constexpr std::uint64_t kNoPlan = std::numeric_limits<std::uint64_t>::max();

std::vector<ArrayId> SumsOf(const PassSequence& sequence) {
  std::set<ArrayId> sums;
  for (const SpillPass& pass : sequence.passes) {
    if (pass.sums) sums.insert(*pass.sums);
  }
  return {sums.begin(), sums.end()};
}

std::set<ArrayId> LeftOut(const PassSequence& sequence, std::uint64_t stored) {
  std::set<ArrayId> left_out;
  const std::vector<ArrayId> sums = SumsOf(sequence);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if ((stored >> i & 1) == 0) left_out.insert(sums[i]);
  }
  return left_out;
}

/// The places of a chunk: in memory (fast), in the slow tier, or in both.
struct ChunkPlace {
  bool fast = false;
  bool slow = false;
};
using Places = std::vector<std::vector<ChunkPlace>>;  // [arrays][chunks]

/// Finds the minimum bytes of any plan by recursion over all choices of every pass. Arrays are
/// resident in multiples of a part, and each pass is run chunk by chunk.
class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const PassSequence& sequence, std::uint64_t capacity, std::uint32_t parts)
      : sequence_(sequence), capacity_(capacity), parts_(parts) {}

  std::uint64_t Least() {
    std::uint64_t least = kNoPlan;
    for (std::uint64_t stored = 0; stored < std::uint64_t{1} << SumsOf(sequence_).size();
         ++stored) {
      passes_ = PlainPasses(sequence_, LeftOut(sequence_, stored));
      FindFacts();
      Places places;
      for (const SpillArray& array : sequence_.arrays)
        places.emplace_back(array.chunks(), ChunkPlace{.fast = false, .slow = array.stored});
      least = std::min(least, From(0, places));
    }
    return least;
  }

 private:
  /// The effect of a pass, with one of its choices, on each array.
  struct Facts {
    std::uint64_t memory = 0;
    std::uint64_t beside = 0;
    std::vector<std::vector<std::uint64_t>> requests;  // [arrays][chunks]
    std::vector<bool> later;
    std::vector<bool> in_order;
    std::vector<bool> written;
  };

  void FindFacts() {
    facts_.clear();
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      auto& of_pass = facts_.emplace_back();
      for (const BlockChoice& choice : passes_[p].way->choices) {
        passes_[p].choice = choice;
        Facts& facts = of_pass.emplace_back();
        facts.memory = choice.memory_bytes;
        facts.beside = choice.beside_bytes;
        for (ArrayId a = 0; a < sequence_.arrays.size(); ++a) {
          const auto& writes = passes_[p].writes;
          facts.requests.push_back(Requests(sequence_, passes_[p], a));
          facts.later.push_back(ReadLater(passes_, p, a));
          facts.in_order.push_back(ReadsInOrderOnly(passes_[p], a));
          facts.written.push_back(std::count(writes.begin(), writes.end(), a) != 0);
        }
      }
    }
  }

  std::uint64_t From(std::size_t pass, const Places& places) const {
    if (pass == facts_.size()) return 0;
    std::uint64_t least = kNoPlan;
    for (const Facts& facts : facts_[pass]) {
      std::vector<std::uint32_t> resident(sequence_.arrays.size(), 0);
      least = std::min(least, WithResident(pass, facts, places, 0, resident));
    }
    return least;
  }

  std::uint64_t WithResident(std::size_t pass, const Facts& facts, const Places& places,
                             ArrayId array, std::vector<std::uint32_t>& resident) const {
    if (array == resident.size()) return Run(pass, facts, places, resident);
    std::uint64_t least = kNoPlan;
    const auto held = static_cast<std::uint32_t>(
        std::count_if(places[array].begin(), places[array].end(),
                      [](const ChunkPlace& place) { return place.fast; }));
    for (std::uint32_t part = 0; part <= parts_; ++part) {
      const std::uint32_t chunks = sequence_.arrays[array].ChunksOfPart(part, parts_);
      bool possible = true;  // an array grows by chunks that are read or written
      for (std::uint32_t c = held; c < chunks; ++c)
        possible &= facts.written[array] || facts.requests[array][c] > 0;
      if (!possible) break;
      if (part > 0 && chunks == resident[array]) continue;
      resident[array] = chunks;
      least = std::min(least, WithResident(pass, facts, places, array + 1, resident));
    }
    resident[array] = 0;
    return least;
  }

  std::uint64_t Run(std::size_t pass, const Facts& facts, Places places,
                    const std::vector<std::uint32_t>& resident) const {
    if (!FitsAtAllStages(facts, places, resident)) return kNoPlan;
    std::uint64_t moved = facts.beside;
    for (ArrayId array = 0; array < places.size(); ++array) {
      for (std::uint32_t c = 0; c < places[array].size(); ++c) {
        ChunkPlace& place = places[array][c];
        const std::uint64_t bytes = sequence_.arrays[array].BytesOfChunk(c);
        if (place.fast && c >= resident[array]) {
          if (!place.slow) moved += bytes;
          place = {.fast = false, .slow = true};
        }
        for (std::uint64_t r = 0; r < facts.requests[array][c]; ++r) {
          if (place.fast) continue;
          EXPECT_TRUE(place.slow);
          moved += bytes;
          place.fast = c < resident[array];
        }
        if (facts.written[array] && facts.later[array]) {
          place = {.fast = c < resident[array], .slow = c >= resident[array]};
          if (place.slow) moved += bytes;
        }
        if (!facts.later[array]) place.fast = false;
      }
    }
    const std::uint64_t rest = From(pass + 1, places);
    return rest == kNoPlan ? kNoPlan : moved + rest;
  }

  /// Returns whether the chunks in memory fit at every stage while a pass goes through them in
  /// order.
  bool FitsAtAllStages(const Facts& facts, const Places& places,
                       const std::vector<std::uint32_t>& resident) const {
    for (std::uint64_t stage = 0; stage < parts_; ++stage) {
      std::uint64_t bytes = facts.memory;
      for (ArrayId array = 0; array < resident.size(); ++array) {
        const SpillArray& a = sequence_.arrays[array];
        for (std::uint64_t c = 0; c < resident[array]; ++c) {
          const bool held = places[array][c].fast;
          const bool came = c * parts_ < (stage + 1) * a.chunks();
          const bool gone = c < a.chunks() * stage / parts_;  // a part leaves as a whole
          bool there = true;
          if (facts.in_order[array]) there = facts.later[array] ? held || came : held && !gone;
          if (facts.written[array]) there = facts.later[array] && came;
          bytes += there ? a.BytesOfChunk(c) : 0;
        }
      }
      if (bytes > capacity_) return false;
    }
    return true;
  }

  const PassSequence& sequence_;
  std::uint64_t capacity_;
  std::uint32_t parts_;
  std::vector<PlainPass> passes_;
  std::vector<std::vector<Facts>> facts_;  // [passes][choices]
};

std::uint64_t LeastSums(const PassSequence& sequence) {
  std::uint64_t least = 0;
  for (const SpillPass& pass : sequence.passes) {
    std::uint64_t of_pass = kNoPlan;
    for (const BlockChoice& choice : pass.way.choices)
      of_pass = std::min(of_pass, choice.memory_bytes);
    least = std::max(least, of_pass);
  }
  return least;
}

std::uint64_t AllBytes(const PassSequence& sequence) {
  return std::accumulate(sequence.arrays.begin(), sequence.arrays.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const SpillArray& a) { return sum + a.bytes(); });
}

/// Runs a plan chunk by chunk with its policy. Expects that chunks that are read are in memory or
/// in the slow tier, that memory is never exceeded, and that the bytes are those of the plan.
void Replay(const PassSequence& sequence, const FullGraphPlan& plan) {
  const Result<std::unique_ptr<PlannedSpill>> planned = PlannedSpill::Create(sequence, plan);
  ASSERT_TRUE(planned) << planned.error().message();
  const std::unique_ptr<SpillPolicy> made = (*planned)->NewPolicy();
  SpillPolicy& policy = *made;
  std::vector<PlainPass> passes = PlainPasses(sequence, LeftOut(sequence, plan.stored_sums));
  std::map<std::pair<ArrayId, std::uint32_t>, ChunkPlace> places;
  for (ArrayId a = 0; a < sequence.arrays.size(); ++a) {
    for (std::uint32_t c = 0; sequence.arrays[a].stored && c < sequence.arrays[a].chunks(); ++c)
      places[{a, c}] = {.fast = false, .slow = true};
  }
  std::uint64_t all_read = 0;
  std::uint64_t all_written = 0;
  std::uint64_t held = 0;
  std::vector<LeavingChunk> leaves;
  for (std::size_t p = 0; p < passes.size(); ++p) {
    passes[p].choice = {.blocks = plan.passes[p].blocks, .memory_bytes = plan.passes[p].sum_bytes};
    std::map<ArrayId, std::uint64_t> read;
    std::map<ArrayId, std::uint64_t> written;
    const auto bytes_of = [&](ArrayId array, std::uint32_t chunk) {
      return sequence.arrays[array].BytesOfChunk(chunk);
    };
    const auto leave = [&](ArrayId array, std::uint32_t chunk, bool write) {
      ChunkPlace& place = places.at({array, chunk});
      ASSERT_TRUE(place.fast);
      if (write) {
        ASSERT_FALSE(place.slow) << "a chunk is written that is there";
        written[array] += bytes_of(array, chunk);
        place.slow = true;
      }
      place.fast = false;
      held -= bytes_of(array, chunk);
    };
    const auto leave_all = [&] {
      for (const LeavingChunk& chunk : leaves) leave(chunk.array, chunk.chunk, chunk.write);
      leaves.clear();
    };
    const auto read_chunk = [&](ArrayId array, std::uint32_t chunk) {
      const SpillPolicy::Verdict verdict = policy.Read(array, chunk, leaves);
      leave_all();
      ChunkPlace& place = places.at({array, chunk});
      if (verdict.hit && !verdict.keep && place.fast) leave(array, chunk, false);
      if (!verdict.hit) {
        ASSERT_TRUE(place.slow) << "a chunk is read that is nowhere";
        read[array] += bytes_of(array, chunk);
        if (verdict.keep) held += bytes_of(array, chunk);
        place.fast = verdict.keep;
      }
      ASSERT_LE(held + passes[p].choice.memory_bytes, plan.capacity_bytes);
    };
    const auto make_chunk = [&](ArrayId array, std::uint32_t chunk) {
      const SpillPolicy::Verdict verdict = policy.Made(array, chunk, leaves);
      leave_all();
      if (verdict.write) written[array] += bytes_of(array, chunk);
      if (verdict.keep) held += bytes_of(array, chunk);
      places[{array, chunk}] = {.fast = verdict.keep, .slow = verdict.write};
      ASSERT_LE(held + passes[p].choice.memory_bytes, plan.capacity_bytes);
    };
    policy.Begin(p, leaves);
    leave_all();
    // Each block aggregates at its first row. Chunks that are read in order are read at their first
    // rows, and written after their last.
    std::vector<std::pair<double, std::pair<ArrayId, std::uint32_t>>> in_order[2];
    for (const PassRead& read_of : passes[p].way->reads) {
      const std::uint32_t chunks = sequence.arrays[read_of.array].chunks();
      for (std::uint32_t c = 0; read_of.gather == PassRead::kInOrder && c < chunks; ++c)
        in_order[0].push_back({static_cast<double>(c) / chunks, {read_of.array, c}});
    }
    for (const ArrayId array : passes[p].writes) {
      const std::uint32_t chunks = sequence.arrays[array].chunks();
      for (std::uint32_t c = 0; c < chunks; ++c)
        in_order[1].push_back({static_cast<double>(c + 1) / chunks, {array, c}});
    }
    std::vector<std::tuple<double, int, std::pair<ArrayId, std::uint32_t>>> by_place;
    for (int write = 0; write < 2; ++write) {
      for (const auto& [place, id] : in_order[write]) by_place.emplace_back(place, 1 - write, id);
    }
    std::stable_sort(by_place.begin(), by_place.end(), [](const auto& a, const auto& b) {
      const double apart = std::get<0>(a) - std::get<0>(b);
      return std::abs(apart) > 1e-12 ? apart < 0 : std::get<1>(a) < std::get<1>(b);
    });
    std::size_t next = 0;
    for (std::uint32_t b = 0; b < passes[p].choice.blocks; ++b) {
      for (const PassRead& read_of : passes[p].way->reads) {
        if (read_of.gather == PassRead::kInOrder) continue;
        const GatherReads reads =
            *sequence.gather(static_cast<std::uint32_t>(read_of.gather), passes[p].choice.blocks);
        for (std::uint64_t i = b == 0 ? 0 : reads.block_ends[b - 1]; i < reads.block_ends[b]; ++i)
          read_chunk(read_of.array, reads.chunks[i]);
      }
      const double until = static_cast<double>(b + 1) / passes[p].choice.blocks;
      const auto in_block = [&](const auto& placed) {
        const bool write = std::get<1>(placed) == 0;
        return std::get<0>(placed) < until + (write ? 1e-12 : -1e-12);
      };
      for (; next < by_place.size() && in_block(by_place[next]); ++next) {
        const auto [array, chunk] = std::get<2>(by_place[next]);
        if (std::get<1>(by_place[next]) == 1) {
          read_chunk(array, chunk);
        } else {
          make_chunk(array, chunk);
        }
      }
    }
    policy.End(leaves);
    leave_all();
    for (const ArrayBytes& bytes : plan.passes[p].reads) {
      EXPECT_EQ(read[bytes.array], bytes.bytes);
      read.erase(bytes.array);
      all_read += bytes.bytes;
    }
    for (const ArrayBytes& bytes : plan.passes[p].writes) {
      EXPECT_EQ(written[bytes.array], bytes.bytes);
      written.erase(bytes.array);
      all_written += bytes.bytes;
    }
    for (const auto& [array, bytes] : read) EXPECT_EQ(bytes, 0u);
    for (const auto& [array, bytes] : written) EXPECT_EQ(bytes, 0u);
  }
  EXPECT_EQ(all_read, plan.read_bytes);
  EXPECT_EQ(all_written, plan.written_bytes);
  EXPECT_LE(plan.peak_bytes, plan.capacity_bytes);
}

TEST(FullGraphPlanTest, EqualsExhaustiveSearchOnRandomSequences) {
  std::mt19937_64 random(testing::TestSeed());
  const int wanted = testing::kSanitized ? 150 : 2000;
  int planned = 0;
  for (int round = 0; planned < wanted; ++round) {
    const std::uint32_t parts = 1 + static_cast<std::uint32_t>(random() % 2);
    const PassSequence sequence =
        RandomSequence(random, parts == 1 ? 4 : 3, 3, /*sums=*/random() % 2 == 0);
    const std::uint64_t capacity = LeastSums(sequence) + random() % (1 + AllBytes(sequence));
    const std::uint64_t least = ExhaustiveSearch(sequence, capacity, parts).Least();
    FullGraphPlanOptions options{.spill = SpillKind::kDp, .parts = parts, .contest = false};
    const Result<FullGraphPlan> plan = PlanFullGraph(sequence, capacity, options);
    if (least == kNoPlan) {
      ASSERT_FALSE(plan);
      continue;
    }
    ++planned;
    SCOPED_TRACE(fmt::format("{}memory {}, parts {}", Describe(sequence), capacity, parts));
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(plan->optimal);
    ASSERT_EQ(plan->bytes(), least) << "round " << round;
    ASSERT_LE(plan->lower_bound_bytes, least);
    Replay(sequence, *plan);
    if (HasFailure()) return;
  }
}

TEST(FullGraphPlanTest, EveryPolicyMovesWhatItPlansAndAutoMovesTheLeast) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < (testing::kSanitized ? 20 : 200); ++round) {
    const PassSequence sequence = RandomSequence(random, 7, 20, /*sums=*/true);
    const std::uint64_t capacity = LeastSums(sequence) + random() % (1 + AllBytes(sequence));
    const Result<FullGraphPlan> chosen =
        PlanFullGraph(sequence, capacity, {.max_states = 2000, .max_tried = 20'000});
    ASSERT_TRUE(chosen) << chosen.error().message();
    ASSERT_LE(chosen->lower_bound_bytes, chosen->bytes())
        << Describe(sequence) << capacity << ": " << SpillName(chosen->spill);
    Replay(sequence, *chosen);
    for (const FullGraphPlan::Contestant& contestant : chosen->policies) {
      SCOPED_TRACE(contestant.name);
      ASSERT_GE(contestant.bytes(), chosen->bytes());
      const std::optional<SpillKind> kind = ParseSpill(contestant.name);
      FullGraphPlanOptions options{.spill = kind.value_or(SpillKind::kDp),
                                   .sums = kind ? SumsRule::kAuto : SumsRule::kRecompute,
                                   .max_states = 2000,
                                   .max_tried = 20'000,
                                   .contest = false};
      const Result<FullGraphPlan> plan = PlanFullGraph(sequence, capacity, options);
      ASSERT_TRUE(plan) << plan.error().message();
      Replay(sequence, *plan);
      // A policy by chunks may also be tried with the blocks of the plan by parts, so its bytes may
      // be lower in the comparison.
      EXPECT_GE(plan->bytes(), contestant.bytes());
      if (HasFailure()) return;
    }
  }
}

TEST(FullGraphPlanTest, NothingMovesTwiceWhereAllFits) {
  const PassSequence sequence{
      .arrays = {{.name = "x", .rows = 64, .row_bytes = 4, .chunk_rows = 4, .stored = true},
                 {.name = "h", .rows = 64, .row_bytes = 4, .chunk_rows = 4},
                 {.name = "d", .rows = 64, .row_bytes = 4, .chunk_rows = 4}},
      .passes = {{.name = "1", .way = {.reads = {{.array = 0}}}, .writes = {1}},
                 {.name = "2", .way = {.reads = {{.array = 1}}}, .writes = {2}},
                 {.name = "3", .way = {.reads = {{.array = 0}, {.array = 1}, {.array = 2}}}}},
      .gather = {}};
  const Result<FullGraphPlan> all = PlanFullGraph(sequence, 3 * 256, {});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->bytes(), 256u);  // x, read once
  EXPECT_EQ(all->lower_bound_bytes, 256u);
  EXPECT_TRUE(all->optimal);
  const Result<FullGraphPlan> none = PlanFullGraph(sequence, 0, {.spill = SpillKind::kNone});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->read_bytes, 256u * 5);
  EXPECT_EQ(none->written_bytes, 256u * 2);
}

TEST(FullGraphPlanTest, RefusesWhatCannotBeRun) {
  PassSequence sequence{
      .arrays = {{.name = "x", .rows = 4, .row_bytes = 4, .chunk_rows = 1, .stored = true},
                 {.name = "h", .rows = 4, .row_bytes = 4, .chunk_rows = 1}},
      .passes = {{.name = "layer 1",
                  .way = {.reads = {{.array = 1}}, .choices = {{.blocks = 1, .memory_bytes = 9}}},
                  .writes = {}}},
      .gather = {}};
  EXPECT_EQ(PlanFullGraph(sequence, 100, {}).error().message(),
            "pass layer 1: reads h, which no pass wrote");
  sequence.passes[0].way.reads[0].array = 0;
  const Status small = PlanFullGraph(sequence, 8, {}).error();
  EXPECT_EQ(small.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(
      small.message(),
      "pass layer 1 needs at least 9 bytes for its sums, but 8 are left; raise `memory_bytes`");
  EXPECT_EQ(PlanFullGraph(sequence, 100, {.parts = 16}).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(PlanFullGraph({}, 100, {}).error().code(), StatusCode::kInvalidArgument);
}

TEST(FullGraphPlanTest, NamesArePrintedAndParsed) {
  for (const char* const name : {"auto", "none", "lru", "lru-live", "belady", "dp", "dp-tensor"})
    EXPECT_EQ(SpillName(*ParseSpill(name)), name);
  for (const char* const name : {"auto", "store", "recompute"})
    EXPECT_EQ(SumsRuleName(*ParseSumsRule(name)), name);
  EXPECT_FALSE(ParseSpill("fifo"));
}

}  // namespace
}  // namespace rhizome
