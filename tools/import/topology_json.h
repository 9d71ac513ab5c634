#pragma once

#include "json.h"
#include "rhizome/index/topology_sections.h"

namespace rhizome {

/// Returns {"offsets": bytes, ...} without groups of 0 bytes.
Json ToJson(const TopologySections& sections);

/// Adds "vertex_max_over_min" and "edge_max_over_min" of a store's partitions, null where one has
/// none. Errors: kCorruption; kIoError.
Status AddMaxOverMin(const Store& store, Json& fields);

}  // namespace rhizome
