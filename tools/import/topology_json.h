#pragma once

#include "index/check/topology_sections.h"
#include "tools/cli/json.h"

namespace rhizome {

/// Returns the sizes in bytes, {"offsets": bytes, ...}, without empty groups.
Json ToJson(const TopologySections& sections);

/// Adds "vertex_max_over_min" and "edge_max_over_min" of a store's partitions; null if a partition
/// is empty. Errors: kCorruption; kIoError.
Status AddMaxOverMin(const Store& store, Json& fields);

}  // namespace rhizome
