#pragma once

#include <memory>
#include <span>

#include "index/delta/graph_parts.h"
#include "rhizome/file_system.h"
#include "rhizome/graph_types.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// Creates a store without vertices and edges, open for writing.
/// Errors: as Graph::Create.
Result<std::unique_ptr<Store>> CreateEmptyStore(FileSystem& fs, const Path& path,
                                                const GraphSchema& schema,
                                                const StoreOptions& options);

/// Checks attributes that edges get in addition to those that they have: names, dtypes and the
/// number of values.
/// Errors: kInvalidArgument; kAlreadyExists.
Status CheckEdgeAttributes(std::span<const EdgeAttributeSchema> added,
                           std::span<const EdgeAttributeInfo> existing);

}  // namespace internal
}  // namespace rhizome
