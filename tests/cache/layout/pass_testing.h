#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "cache/layout/pass_lists.h"

namespace rhizome::testing {

/// Returns random lists of a worker. The first `targets` of a random choice of `rows` rows are
/// computed, each from up to `most` others; hubs are read more often. Every row is computed or
/// read.
inline PassLists RandomPassLists(std::mt19937_64& random, std::size_t rows, std::size_t most) {
  std::vector<bool> is_target(rows, false);
  std::vector<std::vector<LocalRow>> reads(rows);
  std::set<LocalRow> used;
  for (LocalRow row = 0; row < rows; ++row) {
    if (random() % 3 == 0) continue;
    is_target[row] = true;
    used.insert(row);
    for (std::size_t left = random() % (most + 1); left > 0; --left) {
      reads[row].push_back(static_cast<LocalRow>(random() % (1 + random() % rows)));
      used.insert(reads[row].back());
    }
  }
  PassLists lists;
  std::vector<LocalRow> local_of(rows);
  for (const LocalRow row : used) {
    local_of[row] = static_cast<LocalRow>(lists.rows.size());
    lists.rows.push_back(row * 2 + 1);  // row numbers with gaps
    lists.vertices.push_back(static_cast<VertexId>(row * 7919 % 1000003));
    lists.owners.push_back(is_target[row] ? 1 : static_cast<PartitionId>(random() % 3));
    lists.degrees.push_back(random() % 5);
  }
  lists.offsets = {0};
  for (const LocalRow row : used) {
    if (!is_target[row]) continue;
    lists.targets.push_back(local_of[row]);
    for (const LocalRow read : reads[row]) lists.neighbors.push_back(local_of[read]);
    lists.offsets.push_back(lists.neighbors.size());
  }
  return lists;
}

}  // namespace rhizome::testing
