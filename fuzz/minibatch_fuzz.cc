#include <algorithm>
#include <cstddef>

#include "cache/feed/superbatch.h"
#include "edits.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

/// A minibatch of two seeds and three vertices.
Minibatch Plain() {
  Minibatch m;
  m.tag = 7;
  m.seed_count = 2;
  m.rows = {5, 300, 70'000};
  m.hop_offsets = {0, 2, 3};
  m.offsets = {0, 2, 3, 3};
  m.neighbors = {2, 1, 2};
  return m;
}

/// The same with everything else that is encoded.
Minibatch Whole() {
  Minibatch m = Plain();
  m.types = {0, 3, 1};
  m.weights = {1, 0.5F, -2};
  m.edges = {{.partition = 0, .position = 9},
             {.partition = 1, .position = 1000},
             {.partition = 0, .position = 2}};
  m.hop_lists = {0, 2, 3};
  m.seed_of = {0, 1, 0};
  m.degrees = {4, 1, 20};
  m.weighted_degrees = {3, 0.25F, 11};
  m.pairs = {{.src = 0, .dst = 1, .type = 2}, {.src = 1, .dst = 1, .type = 0}};
  m.negatives[0] = {{.type = 0, .vertices = {1, 0}}, {.type = 2, .vertices = {}}};
  m.negatives[1] = {{.type = 1, .vertices = {0}}};
  return m;
}

std::vector<std::byte> Sample(std::uint8_t choice) {
  return EncodeMinibatch(choice / 2 % 2 == 0 ? Whole() : Plain());
}

/// A decoded minibatch has the same bytes however often it is encoded and decoded again.
void Check(std::span<const std::byte> bytes) {
  const auto minibatch = DecodeMinibatch(bytes);
  if (!minibatch) {
    RHIZOME_CHECK(minibatch.error().code() == StatusCode::kCorruption);
    return;
  }
  const auto is_seed = [&](std::uint32_t local) { return local < minibatch->seed_count; };
  for (const MinibatchPair& pair : minibatch->pairs)
    RHIZOME_CHECK(is_seed(pair.src) && is_seed(pair.dst));
  for (const auto& side : minibatch->negatives)
    for (const MinibatchNegatives& negatives : side)
      RHIZOME_CHECK(std::ranges::all_of(negatives.vertices, is_seed));
  const std::vector<std::byte> encoded = EncodeMinibatch(*minibatch);
  const auto again = DecodeMinibatch(encoded);
  RHIZOME_CHECK(again.has_value());
  RHIZOME_CHECK(again->pairs == minibatch->pairs && again->negatives == minibatch->negatives &&
                again->rows == minibatch->rows && again->neighbors == minibatch->neighbors);
  RHIZOME_CHECK(EncodeMinibatch(*again) == encoded);
}

}  // namespace

// Decodes raw bytes as a minibatch of a superbatch, and a valid one with edits. Each must be
// rejected or decoded.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto raw = std::as_bytes(input);
    Check(std::vector<std::byte>(raw.begin(), raw.end()));
    return 0;
  }
  Check(fuzzing::WithEdits(Sample(data[0]), input));
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (const std::uint8_t choice : {0, 2}) {
    AddChanged(seeds, Joined({0}, Sample(choice)), 1, 600);
    AddEdits(seeds, {static_cast<std::uint8_t>(choice + 1)}, Sample(choice).size(), 2000);
  }
  return seeds;
}
