#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"
#include "rhizome/storage/store_id.h"

namespace RHIZOME_API rhizome {

/// A state of a store, by numbers, so that another process can open just that one while somebody
/// holds it: GraphSnapshot::point (index/graph.h) names it, StoreOptions::at opens it.
struct StorePoint {
  StoreId store;
  std::uint64_t generation = 0;
  std::uint64_t manifest_version = 0;
  std::uint64_t base_sequence = 0;  ///< commits up to it are in the generation's files
  std::uint64_t first_commit = 0;   ///< the first commit of the delta; 0: there is none
  std::uint64_t sequence = 0;       ///< the last commit
  friend bool operator==(const StorePoint&, const StorePoint&) = default;
};

}  // namespace rhizome
