#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rhizome::fuzzing {

using Seed = std::vector<std::uint8_t>;

/// The inputs that a target's fuzzing begins with: each target defines it. They must reach 95 % of
/// the lines of the parsers that fuzz/targets.cmake names (tools/coverage.sh parsers).
/// With RHIZOME_FUZZ_SEEDS=FOLDER in the environment a target writes them there and ends.
std::vector<Seed> MakeSeeds();

/// What a target takes: choices of its own, and a document.
Seed Joined(std::span<const std::uint8_t> head, std::span<const std::byte> document);
Seed Joined(std::initializer_list<std::uint8_t> head, std::string_view document = {});
Seed Joined(std::initializer_list<std::uint8_t> head, std::span<const std::byte> document);

/// A seed, and it with one byte behind the first `keep` changed (to 0, to 255, one more), or cut
/// off there: at most `most` of them, spread evenly.
void AddChanged(std::vector<Seed>& seeds, const Seed& seed, std::size_t keep,
                std::size_t most = 600);

/// For targets that take edits (edits.h) of a document of so many bytes: none, and every kind of
/// one at places that are spread evenly.
void AddEdits(std::vector<Seed>& seeds, const Seed& head, std::size_t document_bytes,
              std::size_t most = 600);

}  // namespace rhizome::fuzzing
