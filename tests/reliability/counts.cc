#include "reliability/counts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rhizome::testing {

void PrintCount(const std::string& what, std::uint64_t count) {
  std::printf("COUNT %s %llu\n", what.c_str(), static_cast<unsigned long long>(count));
  const char* const folder = std::getenv("RHIZOME_COUNTS");
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (folder == nullptr || *folder == 0 || test == nullptr) return;
  std::string name = what + "@" + test->test_suite_name() + "." + test->name();
  std::replace(name.begin(), name.end(), '/', '-');
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::ofstream out(std::filesystem::path(folder) / name);
  out << count << '\n';
  EXPECT_TRUE(out.good()) << "cannot write " << name << " in " << folder;
}

}  // namespace rhizome::testing
