#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cuda/kernels.h"
#include "cuda/long_lists.h"

// C functions for Python's ctypes, by which bench.py calls the kernels with the addresses of torch
// tensors. They use no header of torch, because the torch of the device machine is not the version
// of the engine.

using rhizome::cuda::AttendArgs;
using rhizome::cuda::AttendGradientArgs;
using rhizome::cuda::Element;
using rhizome::cuda::GatherArgs;
using rhizome::cuda::IdMapArgs;
using rhizome::cuda::IdMapForm;
using rhizome::cuda::SumArgs;

extern "C" {

void rhizome_device_gather(void* stream, const void* table, std::uint64_t table_rows,
                           std::size_t row_bytes, const std::int64_t* rows, std::uint32_t count,
                           void* out, std::uint32_t* first_bad, bool from_host) {
  GatherArgs args;
  args.table = static_cast<const unsigned char*>(table);
  args.table_rows = table_rows;
  args.table_stride_bytes = args.out_stride_bytes = args.row_bytes = row_bytes;
  args.rows = rows;
  args.count = count;
  args.out = static_cast<unsigned char*>(out);
  args.out_rows = count;
  args.first_bad = first_bad;
  args.from_host = from_host;
  rhizome::cuda::CopyRowsOnDevice(stream, args);
}

/// Writes the pieces of long lists, four numbers each, to `pieces` if it is not null. Returns the
/// number of pieces, and in `partials` the number of partial sums.
std::size_t rhizome_device_long_lists(const std::uint32_t* offsets, std::size_t targets,
                                      std::uint32_t* pieces, std::uint32_t* partials) {
  const rhizome::LongLists lists = rhizome::FindLongLists({offsets, targets + 1});
  *partials = lists.partial_count;
  if (pieces != nullptr) {
    std::memcpy(pieces, lists.pieces.data(), lists.pieces.size() * sizeof(lists.pieces[0]));
  }
  return lists.pieces.size();
}

/// form: 0 registers, 1 shared memory. `weight` and `pieces` may be null.
void rhizome_device_sum(void* stream, int form, const float* x, std::size_t dim,
                        std::size_t targets, const std::uint32_t* offsets,
                        const std::uint32_t* index, const float* weight, const void* pieces,
                        std::uint32_t piece_count, float* partials, std::uint32_t partial_count,
                        float* out) {
  SumArgs args;
  args.x = reinterpret_cast<const unsigned char*>(x);
  args.x_stride = args.dim = args.out_stride = dim;
  args.targets = targets;
  args.offsets = offsets;
  args.index = index;
  args.edge_weight = weight;
  args.pieces = static_cast<const rhizome::cuda::ListPiece*>(pieces);
  args.piece_count = piece_count;
  args.longest = rhizome::kLongestShortList;
  args.partials = partials;
  args.partial_count = partial_count;
  args.out = out;
  if (form == 0) {
    rhizome::cuda::SumOnDevice(stream, args);
  } else {
    rhizome::cuda::SumInSharedMemoryOnDevice(stream, args);
  }
}

/// GAT's aggregation over lists with self-loops. `statistics`: [2, targets, heads].
void rhizome_device_attend(void* stream, const float* x, std::size_t heads, std::size_t width,
                           std::size_t targets, const std::uint32_t* offsets,
                           const std::uint32_t* index, const float* source, const float* query,
                           float slope, float* statistics, float* out) {
  AttendArgs args;
  args.x = reinterpret_cast<const unsigned char*>(x);
  args.x_stride = heads * width;
  args.heads = heads;
  args.width = width;
  args.targets = targets;
  args.offsets = offsets;
  args.index = index;
  args.source = source;
  args.query = query;
  args.slope = slope;
  args.own = true;
  args.maximum = statistics;
  args.denominator = statistics + targets * heads;
  args.out = out;
  rhizome::cuda::AttendOnDevice(stream, args);
}

/// Gradient of rhizome_device_attend. `scratch`: [(4 + 1) * targets + edges, heads]; `of_scores`:
/// the gradients of the sources' scores, then of the targets' scores.
void rhizome_device_attend_gradient(
    void* stream, const float* x, std::size_t heads, std::size_t width, std::size_t sources,
    std::size_t targets, const std::uint32_t* offsets, const std::uint32_t* transposed_offsets,
    const std::uint32_t* target, const std::uint32_t* edge, const float* source, const float* query,
    float slope, const float* statistics, const float* out, const float* gradient, float* scratch,
    float* x_gradient, float* of_scores) {
  AttendGradientArgs args;
  args.heads = heads;
  args.width = width;
  args.sources = sources;
  args.targets = args.own = targets;
  args.x = x;
  args.source = source;
  args.query = query;
  args.slope = slope;
  args.maximum = statistics;
  args.denominator = statistics + targets * heads;
  args.out = out;
  args.gradient = gradient;
  args.offsets = offsets;
  args.transposed_offsets = transposed_offsets;
  args.target = target;
  args.edge = edge;
  args.stats = scratch;
  args.own_gradient = scratch + 4 * targets * heads;
  args.edge_gradient = args.own_gradient + targets * heads;
  args.x_gradient = x_gradient;
  args.source_gradient = of_scores;
  args.query_gradient = of_scores + sources * heads;
  rhizome::cuda::AttendGradientOnDevice(stream, args);
}

std::size_t rhizome_device_id_map_scratch(std::uint32_t count) {
  return rhizome::cuda::IdMapScratchBytes(count);
}

/// `form`: 0 first positions, 1 FastGL's, 2 three steps. `scratch_arrays` has count + 3 *
/// ceil(count / 32) numbers. `counts` receives the number of distinct ids and of errors.
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
