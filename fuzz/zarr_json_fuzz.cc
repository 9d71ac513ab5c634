#include <string>

#include "edits.h"
#include "seeds.h"
#include "storage/array/zarr_format.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

std::string Sample(unsigned kind) {
  ArrayEntry entry{.name = "x", .rows = 1000, .dim = 5, .chunk_rows = 128, .attributes = {}};
  entry.array_id = 7;
  entry.codec.level = 0;
  entry.attributes = {{"model", "abc"}};
  if (kind % 4 != 0) {
    entry.layout = ArrayLayout::kChunk;
    entry.codec = {.kind = static_cast<CodecKind>(1 + kind % 4), .level = 3, .element_bytes = 4};
  }
  if (kind % 8 >= 4) {
    entry.layout = ArrayLayout::kChunk;
    entry.inner_rows = 16;
  }
  if (kind % 16 == 8) {
    entry.layout = ArrayLayout::kChunk;
    entry.codec = {.kind = CodecKind::kNonzero, .level = 0, .element_bytes = 4};
  }
  return EncodeArrayJson(entry);
}

void Check(std::string_view text) {
  const auto entry = DecodeArrayJson(text, "x");
  if (!entry) return;
  const auto again = DecodeArrayJson(EncodeArrayJson(*entry), "x");
  RHIZOME_CHECK(again.has_value() && *again == *entry);
}

}  // namespace

// Decodes arbitrary text, and a valid document with edits. Each must be rejected, or decode to an
// array whose encoding decodes to the same array.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  if (data[0] % 2 == 0) {
    Check({reinterpret_cast<const char*>(data + 1), size - 1});
  } else {
    Check(fuzzing::WithEdits(Sample(data[0] / 2), {data + 1, size - 1}));
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (unsigned kind = 0; kind < 9; ++kind) {
    const std::string sample = Sample(kind);
    AddEdits(seeds, {static_cast<std::uint8_t>(2 * kind + 1)}, sample.size(), 3000);
    AddChanged(seeds, Joined({0}, sample), 1, 50);
  }
  return seeds;
}
