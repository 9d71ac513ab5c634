#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace RHIZOME_API rhizome {

/// The sets of vertices that the split array names, by its values.
enum class Split : std::uint8_t { kTrain = 0, kValid = 1, kTest = 2, kNone = 255 };

/// Class labels and split of every vertex, in row order, held in memory: 5 bytes a vertex. A list
/// that was not read is empty.
struct ClassLabels {
  std::vector<std::int32_t> label;  ///< [rows]; -1: none
  std::vector<Split> split;         ///< [rows]
  std::int64_t classes = 0;         ///< 1 + the largest label

  /// Vertices of one set, ascending by vertex id. `graph`: whose labels these are.
  std::vector<VertexId> Members(const GraphSnapshot& graph, Split set) const;
};

/// A split as users name it: an array of one column, or "NAME:K", column K (from 0) of an array
/// that has a split in each column.
struct SplitReference {
  std::string array;
  std::optional<std::uint64_t> column = {};
};

/// Errors: kInvalidArgument, what follows the colon is no number.
Result<SplitReference> ParseSplitReference(const std::string& text);

/// Reads both arrays (an empty name: not that one) chunk by chunk, with the rows that were put
/// since the generation. A new vertex has no label, and is in no set, until they are put; a deleted
/// one is in no set. Every vertex of the three sets must have a label. `split`: as
/// ParseSplitReference takes it. Errors: kNotFound, no such array; kInvalidArgument, wrong dtype or
/// shape, a column that is not there, a label below -1 or above the limit, a vertex of a set
/// without label (named), a split value that means nothing.
Result<ClassLabels> ReadLabels(const GraphSnapshot& graph, const std::string& label_array,
                               const std::string& split);

/// Correct answers, counted by set.
struct AccuracyCounts {
  std::array<std::uint64_t, 3> correct{};  ///< by Split: train, valid, test
  std::array<std::uint64_t, 3> total{};

  void Add(Split set, bool is_correct);
  void Add(const AccuracyCounts& other);

  /// Share of correct answers; 0 where the set is empty.
  double Share(Split set) const;
  std::optional<double> Of(Split set) const {  ///< the same; nothing where the set is empty
    return Has(set) ? std::optional<double>(Share(set)) : std::nullopt;
  }
  bool Has(Split set) const { return total[static_cast<std::size_t>(set)] > 0; }
};

}  // namespace rhizome
