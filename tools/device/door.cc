#include <cstddef>
#include <cstdint>

#include "rhizome/cuda/kernels.h"

// The kernels for Python's ctypes, as bench.py calls them with the addresses of torch's tensors:
// that machine's torch is another than the engine's, and no header of it is needed here.

using rhizome::cuda::Element;
using rhizome::cuda::GatherArgs;
using rhizome::cuda::IdMapArgs;
using rhizome::cuda::IdMapForm;
using rhizome::cuda::SumArgs;

extern "C" {

void rhizome_device_gather(void* stream, const void* table, std::uint64_t table_rows,
                           std::size_t row_bytes, const std::int64_t* rows, std::uint32_t count,
                           void* out, std::uint32_t* first_bad) {
  GatherArgs args;
  args.table = static_cast<const unsigned char*>(table);
  args.table_rows = table_rows;
  args.table_stride_bytes = args.out_stride_bytes = args.row_bytes = row_bytes;
  args.rows = rows;
  args.count = count;
  args.out = static_cast<unsigned char*>(out);
  args.out_rows = count;
  args.first_bad = first_bad;
  rhizome::cuda::CopyRowsOnDevice(stream, args);
}

/// form: 0 registers, 1 shared memory. `weight` may be null.
void rhizome_device_sum(void* stream, int form, const float* x, std::size_t dim,
                        std::size_t targets, const std::uint32_t* offsets,
                        const std::uint32_t* index, const float* weight, float* out) {
  SumArgs args;
  args.x = reinterpret_cast<const unsigned char*>(x);
  args.x_stride = args.dim = args.out_stride = dim;
  args.targets = targets;
  args.offsets = offsets;
  args.index = index;
  args.edge_weight = weight;
  args.out = out;
  if (form == 0) {
    rhizome::cuda::SumOnDevice(stream, args);
  } else {
    rhizome::cuda::SumInSharedMemoryOnDevice(stream, args);
  }
}

std::size_t rhizome_device_id_map_scratch(std::uint32_t count) {
  return rhizome::cuda::IdMapScratchBytes(count);
}

/// form: 0 first positions, 1 FastGL's, 2 three steps. `scratch_arrays` has count + 3 *
/// ceil(count / 32) numbers, `counts` holds found and errors.
void rhizome_device_id_map(void* stream, int form, const std::int64_t* ids, std::uint32_t count,
                           std::uint32_t capacity, std::int64_t* table,
                           std::uint32_t* scratch_arrays, std::int64_t* distinct,
                           std::int64_t* locals, std::uint32_t* counts, void* scratch,
                           std::size_t scratch_bytes) {
  const std::size_t words = rhizome::cuda::IdMapWords(count);
  IdMapArgs args;
  args.ids = ids;
  args.count = count;
  args.capacity = capacity;
  args.table = table;
  args.slots = scratch_arrays;
  args.bits = scratch_arrays + count;
  args.counts = args.bits + words;
  args.ranks = args.counts + words;
  args.distinct = distinct;
  args.locals = locals;
  args.found = counts;
  args.errors = counts + 1;
  rhizome::cuda::NumberIdsOnDevice(stream, static_cast<IdMapForm>(form), args, scratch,
                                   scratch_bytes);
}

const char* rhizome_device_error() { return rhizome::cuda::LaunchError(); }
}
