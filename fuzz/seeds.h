#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rhizome::fuzzing {

using Seed = std::vector<std::uint8_t>;

/// Makes the inputs with which the fuzzing of a target begins; each target defines it. They must
/// reach 95 % of the lines of the parsers that fuzz/targets.cmake names (tools/coverage.sh
/// parsers). With RHIZOME_FUZZ_SEEDS=FOLDER in the environment a target writes them there and ends.
std::vector<Seed> MakeSeeds();

/// Makes an input of a target from bytes by which the target chooses, and a document.
Seed Joined(std::span<const std::uint8_t> head, std::span<const std::byte> document);
Seed Joined(std::initializer_list<std::uint8_t> head, std::string_view document = {});
Seed Joined(std::initializer_list<std::uint8_t> head, std::span<const std::byte> document);

/// Adds a seed, and variants in which one byte behind the first `keep` is set to 0 or 255 or
/// increased by 1, or at which the seed is cut off: at most `most` of them, spread evenly.
void AddChanged(std::vector<Seed>& seeds, const Seed& seed, std::size_t keep,
                std::size_t most = 600);

/// Adds seeds for targets that take edits (edits.h) of a document of `document_bytes`: one without
/// an edit, and edits of every kind at places that are spread evenly.
void AddEdits(std::vector<Seed>& seeds, const Seed& head, std::size_t document_bytes,
              std::size_t most = 600);

}  // namespace rhizome::fuzzing
