#include "testing/testing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "storage/io/unique_folder.h"

#if defined(__SANITIZE_THREAD__)
// liburing unmaps a ring with a raw system call, so the sanitizer takes a later ring at that
// address, perhaps of another thread, for the same memory. RocksDB is built without the sanitizer,
// which therefore sees its memcpy and memcmp but not the atomics that order them. The only code of
// ours that RocksDB calls is a logger that does nothing.
extern "C" const char* __tsan_default_suppressions() {
  return "race:^io_uring_\nrace:librocksdb\n";
}
#endif

namespace rhizome::testing {

// mkdtemp chooses a unique name. A name derived from the process id could belong to a folder that a
// killed process left behind.
TempDir::TempDir() {
  const auto made = MakeUniqueFolder(std::filesystem::temp_directory_path() / "rhizome-test-",
                                     "no folder for a test");
  if (!made) throw std::runtime_error(made.error().message());
  path_ = *made;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint64_t TestSeed() {
  std::uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("RHIZOME_TEST_SEED"))
    seed = std::strtoull(given, nullptr, 10);
  std::printf("RHIZOME_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

unsigned Patience() {
  const char* const given = std::getenv("RHIZOME_TEST_PATIENCE");
  return given == nullptr ? 1 : std::max(1U, static_cast<unsigned>(std::atoi(given)));
}

bool Eventually(const std::function<bool()>& holds, unsigned seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds * Patience());
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::optional<std::filesystem::path> TestData() {
  const char* folder = std::getenv("RHIZOME_TEST_DATA");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return std::nullopt;
  return std::filesystem::path(folder);
}

std::map<std::string, std::string> GenerationBytes(const std::filesystem::path& store) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store / "generations")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), store)] = {std::istreambuf_iterator<char>(file),
                                                             {}};
  }
  return files;
}

}  // namespace rhizome::testing
