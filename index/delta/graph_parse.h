#pragma once

#include <cstdint>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/vertex_ids.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/section_file.h"

namespace rhizome::inline internal {

// Parse the files of a generation from any source of bytes, and compare them with the graph's
// description in the manifest.
// Errors: kCorruption, naming the file.
Result<VertexOrder> ParseOrder(SectionFile file, const GenerationInfo& info);
Result<VertexIds> ParseVertexIds(SectionFile file, const GenerationInfo& info);
Result<Adjacency> ParsePartition(SectionFile file, const GenerationInfo& info,
                                 const VertexOrder& order, std::uint32_t partition);

}  // namespace rhizome::inline internal
