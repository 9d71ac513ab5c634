#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rhizome::fuzzing {

using Seed = std::vector<std::uint8_t>;

/// Returns the initial inputs of a target; each target defines it. They must reach 95 % of the
/// lines of the parsers that fuzz/targets.cmake lists (tools/coverage.sh parsers). If
/// RHIZOME_FUZZ_SEEDS=FOLDER is set, a target writes its seeds to that folder and exits.
std::vector<Seed> MakeSeeds();

/// Builds the input of a target from a head, by which the target makes its choices, and a document.
Seed Joined(std::span<const std::uint8_t> head, std::span<const std::byte> document);
Seed Joined(std::initializer_list<std::uint8_t> head, std::string_view document = {});
Seed Joined(std::initializer_list<std::uint8_t> head, std::span<const std::byte> document);

/// Adds a seed and variants of it: one byte after the first `keep` is set to 0 or 255 or
/// incremented, or the seed is cut off there. Adds at most `most` variants, spread evenly.
void AddChanged(std::vector<Seed>& seeds, const Seed& seed, std::size_t keep,
                std::size_t most = 600);

/// Adds seeds for targets that apply edits (edits.h) to a document of `document_bytes`: one without
/// an edit, and edits of every kind at evenly spread places.
void AddEdits(std::vector<Seed>& seeds, const Seed& head, std::size_t document_bytes,
              std::size_t most = 600);

}  // namespace rhizome::fuzzing
