#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {
inline namespace internal {

/// Names a dictionary of texts in commits: the id of an array of vertices, or kEdgeTexts plus the
/// position of an attribute among the attributes of edges, whose arrays get new ids with each
/// generation.
using TextsId = std::uint64_t;
inline constexpr TextsId kEdgeTexts = TextsId{1} << 63;

/// Max number of texts of a dictionary to which commits add texts.
inline constexpr std::uint64_t kMaxTexts = std::uint64_t{1} << 32;

/// The texts that one commit, or consecutive commits, add to a dictionary. Their codes follow the
/// codes of the texts before them, and never change.
struct DeltaTexts {
  TextsId id = 0;
  std::int64_t first = 0;                  ///< code of texts[0]
  std::vector<std::string> texts = {};     ///< by code
  std::vector<std::uint32_t> sorted = {};  ///< indices of `texts`, by text

  std::int64_t end() const { return first + static_cast<std::int64_t>(texts.size()); }

  /// Returns the code of a text; nullopt if it is not among them.
  std::optional<std::int64_t> Find(std::string_view text) const;

  /// Computes `sorted`.
  void Sort();
};

/// Returns the dictionary with that id, nullptr if there is none; `all` is sorted by id.
const DeltaTexts* FindTexts(const std::vector<DeltaTexts>& all, TextsId id);

/// Joins the texts of two consecutive runs, each sorted by id.
std::vector<DeltaTexts> MergeTexts(const std::vector<DeltaTexts>& older,
                                   const std::vector<DeltaTexts>& newer);

}  // namespace internal
}  // namespace rhizome
