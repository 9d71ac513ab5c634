#include "reliability/harness/counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rhizome::testing {
namespace {

/// Writes a file `what@test` for the table, if RHIZOME_COUNTS is set.
void Leave(const std::string& what, const ::testing::TestInfo& test, const std::string& text) {
  const char* const folder = std::getenv("RHIZOME_COUNTS");
  if (folder == nullptr || *folder == 0) return;
  std::string name = what + "@" + test.test_suite_name() + "." + test.name();
  std::replace(name.begin(), name.end(), '/', '-');
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream out(std::filesystem::path(folder) / name);
  out << text << '\n';
  EXPECT_TRUE(out.good()) << "cannot write " << name << " in " << folder;
}

/// Reports skipped tests, with the reasons, to the table.
class SkippedTests final : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    const ::testing::TestResult& result = *test.result();
    for (int i = 0; result.Skipped() && i < result.total_part_count(); ++i) {
      std::string reason = result.GetTestPartResult(i).summary();
      std::replace(reason.begin(), reason.end(), '\n', ' ');
      Leave("skipped", test, reason);
    }
  }
};

class ListenForSkipped final : public ::testing::Environment {
  void SetUp() override {
    ::testing::UnitTest::GetInstance()->listeners().Append(new SkippedTests);
  }
};
const auto* const kListenForSkipped = ::testing::AddGlobalTestEnvironment(new ListenForSkipped);

}  // namespace

void PrintCount(const std::string& what, std::uint64_t count) {
  std::printf("COUNT %s %llu\n", what.c_str(), static_cast<unsigned long long>(count));
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test != nullptr) Leave(what, *test, std::to_string(count));
}

}  // namespace rhizome::testing
