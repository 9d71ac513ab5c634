#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "seeds.h"

// Has a bug that must be found; otherwise the fuzzers are blind.
// Its test passes when the target fails.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t word = 0;
  if (size < sizeof(word)) return 0;
  std::memcpy(&word, data, sizeof(word));
  if (word == 0x525A4649) std::abort();
  return 0;
}

// Has no seeds, since they must not help.
std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() { return {}; }
