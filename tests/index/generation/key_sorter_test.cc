#include "index/generation/key_sorter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

class KeySorterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(fs_.CreateDirectory("/store"));
    auto space = SpillSpace::Create(fs_, "/store", "job", 1 << 20);
    ASSERT_OK(space);
    space_ = *std::move(space);
  }

  /// Returns the output of the sorter, key by key.
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> Sorted(KeySorter& sorter) {
    std::vector<std::pair<std::string, std::vector<std::uint64_t>>> sorted;
    EXPECT_OK(sorter.Merge(control_, [&](std::string_view key,
                                         std::span<const std::uint64_t> positions, bool is_new) {
      EXPECT_EQ(is_new, sorted.empty() || sorted.back().first != key);
      if (is_new) sorted.emplace_back(key, std::vector<std::uint64_t>());
      sorted.back().second.insert(sorted.back().second.end(), positions.begin(), positions.end());
      return Status::Ok();
    }));
    return sorted;
  }

  testing::FakeFileSystem fs_;
  std::unique_ptr<SpillSpace> space_;
  JobControl control_;
};

TEST_F(KeySorterTest, StringsComeInTheOrderOfTheirBytes) {
  std::mt19937_64 random(testing::TestSeed());
  KeySorter sorter(*space_, 0);  // minimum memory: many runs, merged in several rounds
  std::map<std::string, std::vector<std::uint64_t>> expected;
  for (std::uint64_t position = 0; position < 6000; ++position) {
    // Short keys repeat, long keys share a prefix, and zero bytes are ordinary bytes.
    std::string key = random() % 2 == 0 ? fmt::format("{}", random() % 50)
                                        : fmt::format("common-prefix-{}", random() % 3000);
    if (random() % 10 == 0) key.push_back('\0');
    ASSERT_OK(sorter.AddString(key, position));
    expected[key].push_back(position);
  }
  const auto sorted = Sorted(sorter);
  ASSERT_EQ(sorted.size(), expected.size());
  EXPECT_TRUE(std::equal(
      sorted.begin(), sorted.end(), expected.begin(),
      [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
}

TEST_F(KeySorterTest, IntegersComeInTheirOrder) {
  std::mt19937_64 random(testing::TestSeed());
  KeySorter sorter(*space_, 0);
  std::map<std::int64_t, std::vector<std::uint64_t>> expected;
  for (std::uint64_t position = 0; position < 20000; ++position) {
    std::int64_t key = static_cast<std::int64_t>(random() % 1000) - 500;
    if (random() % 4 == 0) key = static_cast<std::int64_t>(random());
    if (random() % 100 == 0) key = std::vector{INT64_MIN, INT64_MAX}[random() % 2];
    ASSERT_OK(sorter.AddInteger(key, position));
    expected[key].push_back(position);
  }
  const auto sorted = Sorted(sorter);
  ASSERT_EQ(sorted.size(), expected.size());
  EXPECT_TRUE(
      std::equal(sorted.begin(), sorted.end(), expected.begin(), [](const auto& a, const auto& b) {
        return KeySorter::IntegerOf(a.first) == b.first && a.second == b.second;
      }));
}

TEST_F(KeySorterTest, NothingGivesNothing) {
  KeySorter sorter(*space_, 0);
  EXPECT_TRUE(Sorted(sorter).empty());
}

TEST_F(KeySorterTest, RunsAreRemoved) {
  KeySorter sorter(*space_, 0);
  for (std::uint64_t position = 0; position < 20000; ++position)
    ASSERT_OK(sorter.AddInteger(static_cast<std::int64_t>(position * 7919 % 20011), position));
  EXPECT_EQ(Sorted(sorter).size(), 20000U);
  ASSERT_OK(space_->Clear());
  EXPECT_STATUS(fs_.List("/store/scratch"), kNotFound);
}

}  // namespace
}  // namespace rhizome
