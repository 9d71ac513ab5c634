#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/task_metrics.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Class label and split of every vertex, in row order, in memory: 5 bytes per vertex. A vector
/// that was not read is empty.
struct ClassLabels {
  std::vector<std::int32_t> label;  ///< [rows]; -1: no label
  std::vector<Split> split;         ///< [rows]
  std::int64_t classes = 0;         ///< 1 + the largest label

  /// Returns the vertices of one set, in ascending order of id. `graph` must be the graph of the
  /// labels.
  std::vector<VertexId> Members(const GraphSnapshot& graph, Split set) const;
};

/// Reference to a split: an array with one column, or "NAME:K" for column K (from 0) of an array
/// that has a split in each column.
struct SplitReference {
  std::string array;
  std::optional<std::uint64_t> column = {};
};

/// Parses NAME or NAME:K. Errors: kInvalidArgument, the text after the colon is not a number.
Result<SplitReference> ParseSplitReference(const std::string& text);

/// Reads both arrays (skipping one whose name is empty) chunk by chunk, and the rows that were put
/// since the generation. A new vertex has no label and is in no set until these are put; a deleted
/// vertex is in no set. Every vertex of the three sets must have a label. `split`: in the format of
/// ParseSplitReference. Errors: kNotFound, no such array; kInvalidArgument, wrong dtype or shape, a
/// column that does not exist, a label below -1 or above the limit, a vertex of a set without a
/// label (named in the message), an unknown split value.
Result<ClassLabels> ReadLabels(const GraphSnapshot& graph, const std::string& label_array,
                               const std::string& split);

/// Counts of correct answers per set.
struct AccuracyCounts {
  std::array<std::uint64_t, 3> correct{};  ///< indexed by Split: train, valid, test
  std::array<std::uint64_t, 3> total{};

  void Add(Split set, bool is_correct);
  void Add(const AccuracyCounts& other);

  /// Returns the share of correct answers; 0 if the set is empty.
  double Share(Split set) const;
  std::optional<double> Of(Split set) const {  ///< like Share, but nullopt if the set is empty
    return Has(set) ? std::optional<double>(Share(set)) : std::nullopt;
  }
  bool Has(Split set) const { return total[static_cast<std::size_t>(set)] > 0; }
};

}  // namespace internal
}  // namespace rhizome
