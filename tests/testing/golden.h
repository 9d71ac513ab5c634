#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhizome/types.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Returns the folder "golden" of a layer's tests. It does not use __FILE__, which compiler caches
/// make relative.
std::filesystem::path GoldenFolder(const char* layer);

/// The store id in every golden file; STORE_ID in tests/testing/golden.py.
inline StoreId GoldenStoreId() {
  StoreId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::byte>(0x10 + i);
  return id;
}

inline std::vector<std::byte> ReadBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns every file below `folder` by its relative path, except scripts and Python bytecode.
inline std::map<std::string, std::vector<std::byte>> ReadTree(const std::filesystem::path& folder) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    const auto extension = item.path().extension();
    if (!item.is_regular_file() || extension == ".py" || extension == ".pyc") continue;
    files[item.path().lexically_relative(folder).string()] = ReadBytes(item.path());
  }
  return files;
}

/// Runs the script `name` in folder `golden`. It must write all golden files byte by byte.
inline void ExpectScriptWrites(const std::filesystem::path& golden, const std::string& name) {
  if (std::system("python3 -c pass") != 0) GTEST_SKIP() << "python3 is not installed";
  const TempDir folder;
  const std::string command =
      "python3 -B '" + (golden / name).string() + "' '" + folder.path().string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const auto written = ReadTree(folder.path());
  const auto committed = ReadTree(golden);
  EXPECT_FALSE(committed.empty());
  for (const auto& [path, bytes] : committed) {
    ASSERT_TRUE(written.contains(path)) << path;
    EXPECT_EQ(written.at(path), bytes) << path;
  }
  EXPECT_EQ(written.size(), committed.size());
}

}  // namespace rhizome::testing
