#include <map>
#include <random>

#include "rhizome/file_system.h"
#include "storage/array/array_versions.h"
#include "storage/array_change_fixture.h"

namespace rhizome {
namespace {

using testing::ArrayChangeTest;
using testing::CrashMode;
using testing::ExpectRows;
using testing::ExpectSound;
using testing::StoreFileSystem;
using testing::TempDir;

// --- Power cuts
// ------------------------------------------------------------------------------------

/// A change that adds two versions, an alias and a rename is interrupted after various numbers of
/// operations. Afterwards either all of it is there, or none.
void CheckChangeStops(CrashMode mode, std::uint64_t seed, bool links) {
  TempDir dir;
  const Path path = dir / "s";
  StoreFileSystem fs(path);
  fs.RefuseLinks(!links);
  ASSERT_OK(testing::MakeStore(fs, path));
  const auto first = testing::WriteScratch(fs, path / "scratch/job");
  const auto second = testing::WriteScratch(fs, path / "scratch/two");
  ASSERT_OK(first);
  ASSERT_OK(second);
  testing::StopEverywhere({seed % 5, 5}, [&](std::uint64_t count) {
    fs.StopAfter(count);
    const Status status =
        ArrayChange::Run(fs, path, {.generation = 1}, [&](ArrayChange& change) -> Status {
          RHIZOME_RETURN_IF_ERROR(
              change.AddVersion({first->arrays, path / "scratch/job", first->files}, "emb"));
          RHIZOME_RETURN_IF_ERROR(
              change.AddVersion({second->arrays, path / "scratch/two", second->files}, "emb"));
          RHIZOME_RETURN_IF_ERROR(change.SetAlias("emb", "live", 1));
          return change.Rename("feat", "x");
        });
    fs.Crash(mode, seed + count);
    ExpectSound(fs, path);
    const auto store = Store::Open(fs, path, Store::Mode::kRead);
    EXPECT_OK(store);
    if (!store) return true;
    ExpectRows(**store, status.ok() ? "x" : "feat", 300);
    EXPECT_EQ((*store)->manifest().FindArray("emb") != nullptr, status.ok());
    EXPECT_EQ((*store)->manifest().FindArray("feat") != nullptr, !status.ok());
    if (status.ok()) ExpectRows(**store, "emb@live", 300);
    return status.ok();
  });
}

TEST(ArrayChangeCrashTest, AChangeIsThereWholeOrNotAtAll) {
  const std::uint64_t seed = testing::TestSeed();
  for (const CrashMode mode :
       {CrashMode::kDropUnsynced, CrashMode::kKeepUnsynced, CrashMode::kRandom})
    CheckChangeStops(mode, seed, /*links=*/true);
  CheckChangeStops(CrashMode::kRandom, seed, /*links=*/false);
}

// --- A long history
// --------------------------------------------------------------------------------

/// Compares random steps with a map of the expected arrays.
TEST_F(ArrayChangeTest, RandomHistoriesAgreeWithAModel) {
  const std::uint64_t seed = testing::TestSeed();
  std::mt19937_64 random(seed);
  const ArraySource source = Source("emb");
  std::map<std::uint64_t, bool> versions;  // by number
  std::vector<std::uint64_t> live;
  std::uint64_t last = 0;
  std::unique_ptr<Store> reader;
  for (int step = 0; step < 30; ++step) {
    const std::uint64_t version = last == 0 ? 1 : random() % last + 1;
    const bool there = versions.contains(version);
    const bool is_live = !live.empty() && live.back() == version;
    switch (random() % 6) {
      case 0:
      case 1:
        ASSERT_OK(Change([&](ArrayChange& c) { return c.AddVersion(source, "emb"); }));
        versions[++last] = true;
        break;
      case 2: {
        const Status status =
            Change([&](ArrayChange& c) { return c.Drop("emb@" + std::to_string(version)); });
        ASSERT_EQ(status.ok(), there && !is_live) << status.ToString();
        if (!status.ok()) break;
        versions.erase(version);
        std::erase(live, version);
        live.erase(std::unique(live.begin(), live.end()), live.end());
        break;
      }
      case 3: {
        const Status status =
            Change([&](ArrayChange& c) { return c.SetAlias("emb", "live", version); });
        ASSERT_EQ(status.ok(), there) << status.ToString();
        if (there && !is_live) live.push_back(version);
        if (live.size() > kMaxAliasHistory) live.erase(live.begin());
        break;
      }
      case 4: {
        const Status status = Change([&](ArrayChange& c) { return c.RollBack("emb", "live"); });
        ASSERT_EQ(status.ok(), live.size() > 1) << status.ToString();
        if (status.ok()) live.pop_back();
        break;
      }
      default:
        reader = random() % 2 == 0 ? Open() : nullptr;
    }
    std::string meant = versions.empty() ? "" : VersionName("emb", versions.rbegin()->first);
    if (!live.empty()) meant = VersionName("emb", live.back());
    ASSERT_EQ(Meant("emb"), meant) << "step " << step;
    if (reader && reader->manifest().FindArray("emb")) ExpectRows(*reader, "emb", 300);
  }
  for (const auto& [version, _] : versions)
    ExpectRows(*Open(), "emb@" + std::to_string(version), 300);
  ExpectSound(fs_, path_);
}

}  // namespace
}  // namespace rhizome
