#include "index/generation/id_spool.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

class IdSpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(fs_.CreateDirectory("/store"));
    auto space = SpillSpace::Create(fs_, "/store/scratch", "job", 1 << 20);
    ASSERT_OK(space);
    space_ = *std::move(space);
  }

  IdSpool Spool(const std::vector<std::string>& ids) {
    auto writer = IdSpoolWriter::Create(*space_, 1 << 12);
    EXPECT_OK(writer);
    for (const std::string& id : ids) EXPECT_OK(writer->Add(id));
    auto spool = writer->Finish();
    EXPECT_OK(spool);
    return *std::move(spool);
  }

  static std::vector<std::string> All(const IdSpool& spool) {
    auto reader = IdSpoolReader::Open(spool);
    EXPECT_OK(reader);
    std::vector<std::string> ids;
    while (true) {
      const auto id = reader->Next();
      EXPECT_OK(id);
      if (!id || !*id) return ids;
      ids.emplace_back(**id);
    }
  }

  std::size_t SpillFiles() {
    const auto files = fs_.Files();
    return static_cast<std::size_t>(std::count_if(files.begin(), files.end(), [](const auto& file) {
      return file.first.ends_with(".spill");
    }));
  }

  testing::FakeFileSystem fs_;
  std::unique_ptr<SpillSpace> space_;
};

// With little memory the ids are scattered to many files. Long ids next to one another must not
// confuse their sizes.
TEST_F(IdSpoolTest, IdsAreReorderedWithAnyMemory) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const std::size_t count : {0, 1, 2, 1000, 150'000}) {
    std::vector<std::string> ids(count);
    for (std::size_t i = 0; i < count; ++i)
      ids[i].assign(rng() % (i % 997 == 0 ? 3000 : 30), static_cast<char>('a' + rng() % 26));
    std::vector<std::uint64_t> number(count);
    std::iota(number.begin(), number.end(), std::uint64_t{0});
    std::shuffle(number.begin(), number.end(), rng);
    std::vector<std::string> expected(count);
    for (std::size_t i = 0; i < count; ++i) expected[number[i]] = ids[i];
    for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{1} << 30}) {
      auto reordered = ReorderIds(
          *space_, Spool(ids), [&](std::uint64_t i) { return number[i]; }, memory, JobControl());
      ASSERT_OK(reordered);
      EXPECT_EQ(reordered->count, count);
      EXPECT_EQ(All(*reordered), expected);
      EXPECT_EQ(SpillFiles(), 1U) << "files of the earlier order are left";
    }
  }
}

TEST_F(IdSpoolTest, ReorderingStopsWhenTheJobIsCancelled) {
  JobControl control;
  control.Cancel();
  const auto reordered = ReorderIds(
      *space_, Spool({"a", "b"}), [](std::uint64_t i) { return 1 - i; }, 1 << 20, control);
  ASSERT_FALSE(reordered);
  EXPECT_EQ(reordered.error().code(), StatusCode::kInterrupted);
}

}  // namespace
}  // namespace rhizome
