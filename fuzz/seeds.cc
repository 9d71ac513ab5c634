#include "seeds.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rhizome::fuzzing {
namespace {

void Write(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const Seed& seed : MakeSeeds()) {
    std::ofstream out(folder / std::to_string(number++), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()),
              static_cast<std::streamsize>(seed.size()));
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write seeds to %s\n", folder.c_str());
      std::exit(1);
    }
  }
  std::printf("%zu seeds in %s\n", number, folder.c_str());
}

/// Returns a step that visits at most `most` of `places`.
std::size_t Step(std::size_t places, std::size_t most) {
  return std::max<std::size_t>(1, (places + most - 1) / most);
}

}  // namespace

Seed Joined(std::span<const std::uint8_t> head, std::span<const std::byte> document) {
  Seed seed(head.begin(), head.end());
  for (const std::byte byte : document) seed.push_back(std::to_integer<std::uint8_t>(byte));
  return seed;
}
Seed Joined(std::initializer_list<std::uint8_t> head, std::span<const std::byte> document) {
  return Joined(std::span(head.begin(), head.size()), document);
}
Seed Joined(std::initializer_list<std::uint8_t> head, std::string_view document) {
  return Joined(head, std::as_bytes(std::span(document)));
}

void AddChanged(std::vector<Seed>& seeds, const Seed& seed, std::size_t keep, std::size_t most) {
  seeds.push_back(seed);
  if (seed.size() <= keep) return;
  const std::size_t step = Step(4 * (seed.size() - keep), most);
  for (std::size_t i = 0; i < 4 * (seed.size() - keep); i += step) {
    const std::size_t at = keep + i / 4;
    Seed changed = seed;
    if (i % 4 == 0) changed[at] = 0;
    if (i % 4 == 1) changed[at] = 255;
    if (i % 4 == 2) ++changed[at];
    if (i % 4 == 3) changed.resize(at);
    if (changed != seed) seeds.push_back(std::move(changed));
  }
}

void AddEdits(std::vector<Seed>& seeds, const Seed& head, std::size_t document_bytes,
              std::size_t most) {
  seeds.push_back(head);
  constexpr std::uint8_t kKinds = 6;  // the four kinds of edits with value 1, and two more
  const std::size_t step = Step(kKinds * document_bytes, most);
  for (std::size_t i = 0; i < kKinds * document_bytes; i += step) {
    const std::size_t at = i / kKinds;
    const auto kind = static_cast<std::uint8_t>(i % kKinds);
    Seed seed = head;
    seed.push_back(static_cast<std::uint8_t>(at % 256));
    seed.push_back(static_cast<std::uint8_t>(at / 256));
    seed.push_back(static_cast<std::uint8_t>(kind < 4 ? kind : 0));
    seed.push_back(static_cast<std::uint8_t>(kind == 4 ? 255 : kind == 5 ? 0 : 1));
    seeds.push_back(std::move(seed));
  }
}

}  // namespace rhizome::fuzzing

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const folder = std::getenv("RHIZOME_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  rhizome::fuzzing::Write(folder);
  std::exit(0);
}
