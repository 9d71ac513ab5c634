#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "reliability/crash/crash_testing.h"
#include "reliability/live/live_writer.h"
#include "rhizome/file_system.h"

namespace rhizome::testing {
namespace {

using Role = LiveProcess::Role;

TEST(KillTest, AWriterThatIsLetBeMakesWhatTheModelSays) {
  const TempDir dir;
  ASSERT_OK(MakeLiveStore(dir / "g.rz"));
  ASSERT_OK(CheckUndisturbed(dir / "g.rz", 100));
}

// One store, three readers that check it continuously, one process that verifies it, and writers
// that are killed one after another. Each is killed at an arbitrary point after it has reported a
// given number of durable commits. The other processes do not block the writers.
TEST(KillTest, WritersThatAreKilledLoseNothing) {
  constexpr int kKills = 200;
  std::mt19937_64 rng(TestSeed());
  const TempDir dir;
  const Path path = dir / "g.rz";
  ASSERT_OK(MakeLiveStore(path));
  std::vector<std::unique_ptr<LiveProcess>> readers;
  for (const Role role : {Role::kVerifier, Role::kReader, Role::kReader, Role::kReader})
    readers.push_back(std::make_unique<LiveProcess>(role, path));
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
    // a reader has seen them, so they must not disappear
    durable = *found;
    for (auto& reader : readers) reader->acknowledged();  // so that its pipe does not become full
  }
  const std::uint64_t verifications = readers[0]->acknowledged();
  std::uint64_t looks = 0;
  for (auto& reader : readers) {
    EXPECT_GT(reader->acknowledged(), 0U);
    looks += reader->acknowledged();
    EXPECT_FALSE(reader->Failed());
  }
  readers.clear();
  ASSERT_OK(CheckAfterwards(path));
  PrintCount("kills", kKills);
  PrintCount("commits-beside-kills", durable);
  PrintCount("looks-beside-kills", looks - verifications);
  PrintCount("verifications-beside-kills", verifications);
}

// Handles that were opened for reading before the first writer see what each writer has made
// durable, whether it is in a log or in tables, and one of them compacts between the writers.
TEST(KillTest, HandlesThatOutliveWritersFollowThem) {
  constexpr int kKills = 40;
  std::mt19937_64 rng(TestSeed());
  const TempDir dir;
  const Path path = dir / "g.rz";
  ASSERT_OK(MakeLiveStore(path));
  LiveProcess first(Role::kFollower, path);
  first.WaitForAcks(1);  // it has opened the store
  LiveProcess compactor(Role::kCompactor, path);
  compactor.WaitForAcks(1);
  LiveProcess second(Role::kFollower, path);
  second.WaitForAcks(1);
  for (int kill = 0; kill < kKills; ++kill) {
    LiveProcess writer(Role::kWriter, path);
    writer.WaitForAcks(1 + rng() % 8);
    ASSERT_FALSE(writer.Failed()) << "kill " << kill;
    writer.Kill();
    const auto durable = CountCommits(path);
    ASSERT_OK(durable);
    EXPECT_TRUE(first.Reaches(*durable)) << "kill " << kill << ": " << first.acknowledged();
    EXPECT_TRUE(second.Reaches(*durable)) << "kill " << kill << ": " << second.acknowledged();
    ASSERT_FALSE(compactor.Failed()) << "kill " << kill;
    if (rng() % 2 == 0) continue;
    ASSERT_TRUE(compactor.Reaches(compactor.acknowledged() + 1)) << "kill " << kill;
  }
  PrintCount("kills-beside-open-handles", kKills);
  PrintCount("compactions-between-kills", compactor.acknowledged());
}

}  // namespace
}  // namespace rhizome::testing
