#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "reliability/crash_testing.h"
#include "reliability/live_writer.h"

namespace rhizome::testing {
namespace {

using Role = LiveProcess::Role;

// One store, four readers that look at it all the time, and writers that are killed one after the
// other, each after so many commits that it said were durable, wherever it is then.
TEST(KillTest, WritersThatAreKilledLoseNothing) {
  constexpr int kKills = 200;
  std::mt19937_64 rng(TestSeed());
  const TempDir dir;
  const Path path = dir / "g.rz";
  ASSERT_OK(MakeLiveStore(path));
  std::vector<std::unique_ptr<LiveProcess>> readers;
  for (int i = 0; i < 4; ++i) readers.push_back(std::make_unique<LiveProcess>(Role::kReader, path));
  std::uint64_t durable = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    LiveProcess writer(Role::kWriter, path);
    durable = std::max(durable, writer.WaitForAcks(rng() % 6));
    ASSERT_FALSE(writer.Failed()) << "kill " << kill;
    writer.Kill();
    durable = std::max(durable, writer.acknowledged());
    const auto found = CountCommits(path);
    ASSERT_OK(found);
    ASSERT_GE(*found, durable) << "kill " << kill;
    durable = *found;  // seen by a reader: it must not go again
  }
  for (auto& reader : readers) EXPECT_FALSE(reader->Failed());
  readers.clear();
  ASSERT_OK(CheckAfterwards(path));
  PrintCount("kills", kKills);
  PrintCount("commits-beside-kills", durable);
}

}  // namespace
}  // namespace rhizome::testing
