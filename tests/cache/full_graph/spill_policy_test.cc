#include <bit>
#include <set>
#include <tuple>

#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/planned_spill.h"
#include "cache/full_graph/sequence_testing.h"

namespace rhizome {
namespace {

using ChunkSet = std::uint32_t;  // one bit for each chunk of all arrays

/// Returns the minimum number of reads of any policy, which may keep a chunk that it reads or not.
/// Recursion over the kept chunks; each state is solved once.
class FewestReads {
 public:
  FewestReads(std::vector<std::uint32_t> accesses, int capacity)
      : accesses_(std::move(accesses)), capacity_(capacity) {}

  std::uint64_t From(std::size_t i, ChunkSet held) {
    if (i == accesses_.size()) return 0;
    const auto [known, is_new] = known_.try_emplace({i, held}, 0);
    if (!is_new) return known->second;
    const ChunkSet chunk = ChunkSet{1} << accesses_[i];
    const bool hit = (held & chunk) != 0;
    std::uint64_t fewest = From(i + 1, held);  // keep what is in memory, without the new chunk
    if (!hit && std::popcount(held) < capacity_) fewest = From(i + 1, held | chunk);
    for (ChunkSet rest = held; rest != 0 && !hit; rest &= rest - 1)
      fewest = std::min(fewest, From(i + 1, (held & ~(rest & -rest)) | chunk));
    return known_[{i, held}] = fewest + (hit ? 0 : 1);
  }

 private:
  const std::vector<std::uint32_t> accesses_;
  const int capacity_;
  std::map<std::pair<std::size_t, ChunkSet>, std::uint64_t> known_;
};

/// Returns a sequence that writes nothing, of arrays whose chunks have one byte.
PassSequence ReadsOnly(std::mt19937_64& random, std::uint32_t& chunks) {
  PassSequence sequence;
  auto gathers = std::make_shared<testing::RandomGathers>(random());
  for (int a = 0; a < 2; ++a) {
    sequence.arrays.push_back({.name = fmt::format("array {}", a),
                               .rows = 1 + random() % 4,
                               .row_bytes = 1,
                               .chunk_rows = 1,
                               .stored = true});
    chunks += sequence.arrays.back().chunks();
  }
  for (std::uint64_t p = 2 + random() % 3; p > 0; --p) {
    SpillPass pass{.name = fmt::format("{}", sequence.passes.size()), .way = {}, .writes = {}};
    for (ArrayId array = 0; array < 2; ++array) {
      if (array == 1 && random() % 2 == 0) continue;
      PassRead read{.array = array, .gather = PassRead::kInOrder};
      if (random() % 2 == 0)
        read.gather = static_cast<std::int32_t>(gathers->Add(sequence.arrays[array].chunks()));
      pass.way.reads.push_back(read);
    }
    pass.way.choices = {{.blocks = 1 + static_cast<std::uint32_t>(random() % 2)}};
    sequence.passes.push_back(std::move(pass));
  }
  sequence.gather = [gathers](std::uint32_t gather, std::uint32_t blocks) -> Result<GatherReads> {
    return (*gathers)(gather, blocks);
  };
  return sequence;
}

// If all chunks have the same size and nothing is written, Belady's rule is optimal (Belady 1966;
// Mattson et al. 1970).
TEST(SpillPolicyTest, BeladyReadsTheFewestChunksWhereNothingIsWritten) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::uint32_t chunks = 0;
    const PassSequence sequence = ReadsOnly(random, chunks);
    const std::uint64_t capacity = random() % (chunks + 1);
    const Result<FullGraphPlan> plan =
        PlanFullGraph(sequence, capacity, {.spill = SpillKind::kBelady, .contest = false});
    ASSERT_TRUE(plan) << plan.error().message();
    const Result<std::unique_ptr<PlannedSpill>> planned = PlannedSpill::Create(sequence, *plan);
    ASSERT_TRUE(planned);
    std::vector<std::uint32_t> accesses;
    for (std::size_t p = 0; p < sequence.passes.size(); ++p) {
      for (const ChunkAccess& access : (*planned)->Accesses(p))
        accesses.push_back(access.chunk + (access.array == 0 ? 0 : sequence.arrays[0].chunks()));
    }
    ASSERT_EQ(plan->read_bytes, FewestReads(accesses, static_cast<int>(capacity)).From(0, 0))
        << testing::Describe(sequence) << "memory " << capacity << ", seed " << seed;
    ASSERT_EQ(plan->written_bytes, 0u);
  }
}

}  // namespace
}  // namespace rhizome
