#pragma once

#include <cstdint>
#include <span>

#include "rhizome/index/graph_builder.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/job_control.h"

namespace rhizome {

/// Writes all chunks of `writer`'s array from the rows of `array`; row r is that of
/// vertex_of_row[r]. Chunks are encoded, written and synced while others are read, by several
/// threads where `memory_bytes` (0: no bound) has room for as many chunks.
/// Errors: those of array.read_rows; kOutOfSpace; kIoError; kInterrupted.
Status WriteChunks(const ArrayInput& array, std::span<const VertexId> vertex_of_row,
                   std::uint64_t memory_bytes, ChunkArrayWriter& writer, const JobControl& control);

}  // namespace rhizome
