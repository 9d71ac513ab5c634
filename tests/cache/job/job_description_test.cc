#include "cache/job/job_description.h"

#include <string>

#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr EarlierJob kAbout = {
    .place = "the checkpoint", .other = "of another run", .remedy = "begin anew"};

std::string Described(std::uint64_t seed, std::byte state) {
  const StateId id{.files = {state}, .commits = {state}};
  return R"({"job": "train", "seed": )" + std::to_string(seed) + R"(, "state": ")" + id.ToString() +
         "\"}";
}

TEST(JobDescriptionTest, StatesOfEqualNumbersAreCompared) {
  const std::string now = Described(1, std::byte{1});
  EXPECT_EQ(CompareJobs(now, now, kAbout).value(), true);
  const auto diverged = CompareJobs(Described(1, std::byte{2}), now, kAbout);
  EXPECT_STATUS(diverged, kInvalidArgument);
  for (const char* const said : {"the checkpoint", "diverged", "begin anew"}) {
    if (!diverged) {
      EXPECT_NE(diverged.error().message().find(said), std::string::npos) << said;
    }
  }
  const auto other = CompareJobs(Described(2, std::byte{2}), now, kAbout);
  EXPECT_STATUS(other, kInvalidArgument);
  if (!other) {
    EXPECT_EQ(other.error().message(), "of another run");
  }
}

// Older versions wrote only numbers.
TEST(JobDescriptionTest, WithoutAStateTheRestIsCompared) {
  const std::string now = Described(1, std::byte{1});
  EXPECT_EQ(CompareJobs(R"({"job": "train", "seed": 1})", now, kAbout).value(), false);
  EXPECT_STATUS(CompareJobs(R"({"job": "train", "seed": 2})", now, kAbout), kInvalidArgument);
  EXPECT_EQ(CompareJobs(R"({"job": "train", "seed": 1, "state": 7})", now, kAbout).value(), false);
  for (const std::string bad : {"", "[", "7"})
    EXPECT_STATUS(CompareJobs(bad, now, kAbout), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
