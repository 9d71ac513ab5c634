#pragma once

#include <cstdint>

#include "index/topology/adjacency.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "rhizome/manifest.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

// Parse the files of a generation from any source of bytes, and compare them with the graph's
// description in the manifest.
// Errors: kCorruption, naming the file.
Result<VertexOrder> ParseOrder(SectionFile file, const GenerationInfo& info);
Result<VertexIds> ParseVertexIds(SectionFile file, const GenerationInfo& info);
Result<Adjacency> ParsePartition(SectionFile file, const GenerationInfo& info,
                                 const VertexOrder& order, std::uint32_t partition);

}  // namespace internal
}  // namespace rhizome
