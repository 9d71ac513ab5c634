#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "rhizome/sampler.h"
#include "rhizome/types.h"
#include "seeds.h"
#include "storage/array/array_versions.h"
#include "storage/base/check.h"
#include "tools/cli/flag_values.h"

namespace {

using namespace rhizome;

void CheckNumbers(const std::string& text) {
  if (const auto number = ParseFiniteFloat(text)) {
    RHIZOME_CHECK(std::isfinite(*number));
    RHIZOME_CHECK(std::strtof(text.c_str(), nullptr) == *number);  // as the C library parses it
  }
  if (const auto integer = ParseCanonicalInteger(text))
    RHIZOME_CHECK(std::to_string(*integer) == text);
}

void CheckFlags(const std::string& text) {
  if (const auto bytes = ParseSize(text)) {
    RHIZOME_CHECK(*bytes < std::uint64_t{1} << 63);
    RHIZOME_CHECK(ParseSize(std::to_string(*bytes >> 20) + "M") == *bytes >> 20 << 20);
  }
  if (const auto fanouts = ParseFanouts(text)) {
    RHIZOME_CHECK(!fanouts->empty());
    for (const std::int64_t fanout : *fanouts) RHIZOME_CHECK(fanout > 0 || fanout == kAllNeighbors);
  }
  if (const auto codec = ParseCodecFlag(text)) {
    const std::vector<std::byte> raw(64);
    RHIZOME_CHECK(codec->kind == CodecKind::kRaw || EncodeChunk(*codec, raw).has_value());
  }
}

}  // namespace

// Parses arbitrary text as command line arguments: sizes, fanouts, codecs, numbers, ids, array
// names. Each must be rejected, or parsed to the value that the text denotes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckNumbers(text);
  CheckFlags(text);
  if (const auto id = StoreId::Parse(text)) {
    const auto again = StoreId::Parse(id->ToString());
    RHIZOME_CHECK(again.has_value() && again->bytes == id->bytes);
  }
  if (const auto array = ParseArrayReference(text))
    RHIZOME_CHECK((array->selector.empty() ? array->name : array->name + "@" + array->selector) ==
                  text);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (const char* const text : {"512M",
                                 "1.5g",
                                 "65536",
                                 "4TiB",
                                 "1e3",
                                 "9000000T",
                                 "-1",
                                 "nan",
                                 "7x",
                                 "3bb",
                                 "10,10,5",
                                 "all,10",
                                 "0",
                                 "a,b",
                                 "zstd:19",
                                 "zstd:20",
                                 "zstd",
                                 "blosc-lz4:5",
                                 "raw",
                                 "raw:1",
                                 "none",
                                 "1.25",
                                 "-0",
                                 "00",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "1e39",
                                 "1e-50",
                                 "0x1p3",
                                 "+1",
                                 " 1",
                                 "1 ",
                                 "inf",
                                 "",
                                 "-",
                                 "-5",
                                 "emb@3",
                                 "emb@live",
                                 "emb@",
                                 "@3",
                                 "emb@03",
                                 "a/b",
                                 "000102030405060708090a0b0c0d0e0f",
                                 "000102030405060708090A0B0C0D0E0",
                                 "1."})
    AddChanged(seeds, Joined({}, text), 0, 24);
  return seeds;
}
