#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "rhizome/status.h"

namespace rhizome::testing {

/// A folder of one test, removed with everything in it when the test ends.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Returns the seed of a randomised test: RHIZOME_TEST_SEED, or a fresh one. Prints it, so that a
/// failure can be repeated.
std::uint64_t TestSeed();

/// Returns the factor by which tests extend their timeouts: RHIZOME_TEST_PATIENCE, or 1. Busy
/// machines need more than 1.
unsigned Patience();

/// Waits until `holds` returns true, for at most `seconds` times Patience(). Returns the last
/// result of `holds`.
bool Eventually(const std::function<bool()>& holds, unsigned seconds = 10);

/// Returns the folder of additional data sets (RHIZOME_TEST_DATA), if there is one.
std::optional<std::filesystem::path> TestData();

inline const Status& AsStatus(const Status& status) { return status; }
template <typename T>
Status AsStatus(const Result<T>& result) {
  return result ? Status::Ok() : result.error();
}

/// Returns the files of all generations of a store by their paths in the store, with their bytes.
/// RocksDB's own files are not included.
std::map<std::string, std::string> GenerationBytes(const std::filesystem::path& store);

}  // namespace rhizome::testing

#define ASSERT_OK(expression)                                              \
  do {                                                                     \
    const ::rhizome::Status s_ = ::rhizome::testing::AsStatus(expression); \
    ASSERT_TRUE(s_.ok()) << s_.ToString();                                 \
  } while (false)
#define EXPECT_OK(expression)                                              \
  do {                                                                     \
    const ::rhizome::Status s_ = ::rhizome::testing::AsStatus(expression); \
    EXPECT_TRUE(s_.ok()) << s_.ToString();                                 \
  } while (false)

/// EXPECT_STATUS(result, kCorruption) expects exactly that code, and prints the message otherwise.
#define EXPECT_STATUS(expression, expected_code)                                 \
  do {                                                                           \
    const ::rhizome::Status s_ = ::rhizome::testing::AsStatus(expression);       \
    EXPECT_EQ(s_.code(), ::rhizome::StatusCode::expected_code) << s_.ToString(); \
  } while (false)
