#pragma once

#include <cstdint>
#include <functional>

#include "index/generation/graph_builder.h"
#include "index/topology/vertex_order.h"
#include "rhizome/chunk_array.h"
#include "rhizome/job_control.h"
#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {

/// Writes all chunks of `writer`'s array from the rows of `array`, in the order of `order`. Of a
/// bound array, only rows in `of_type` are read, and chunks without one are left out; null for
/// other arrays. Rows are read in order, by one thread at a time, while other threads encode, write
/// and sync earlier chunks, within `memory_bytes` (0: no bound). `written` is called for each
/// chunk, from several threads. Errors: any error of array.read_rows; kOutOfSpace; kIoError;
/// kInterrupted.
Status WriteChunks(const ArrayInput& array, const VertexOrder& order, const TypeRows* of_type,
                   std::uint64_t memory_bytes, ChunkArrayWriter& writer, const JobControl& control,
                   const std::function<void(const FileEntry&)>& written = {});

}  // namespace internal
}  // namespace rhizome
