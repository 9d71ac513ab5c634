#include "testing/golden.h"

namespace rhizome::testing {

std::filesystem::path GoldenFolder(const char* layer) {
  return std::filesystem::path(RHIZOME_TESTS_FOLDER) / layer / "golden";
}

}  // namespace rhizome::testing
