#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "seeds.h"

// A target with a planted bug. Its test passes when the target fails, which shows that the fuzzers
// can find bugs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint32_t word = 0;
  if (size < sizeof(word)) return 0;
  std::memcpy(&word, data, sizeof(word));
  if (word == 0x525A4649) std::abort();
  return 0;
}

// There are no seeds: the fuzzer must find the bug without help.
std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() { return {}; }
