#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "rhizome/chunk_array.h"
#include "storage/base/stopwatch.h"
#include "storage/io/io_queue.h"
#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/gnn/infer_comparison.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

/// Returns the bytes per second at which `threads` threads together read whole chunks, bypassing
/// the page cache.
Result<double> InferDiskRate(const ChunkArray& array, std::uint32_t threads) {
  constexpr double kSeconds = 1;
  std::vector<Status> status(std::max(threads, 1U));
  std::vector<std::thread> readers;
  std::atomic<std::uint64_t> next = 0;
  std::atomic<std::uint64_t> bytes = 0;
  const Stopwatch watch;
  for (Status& own : status) {
    readers.emplace_back([&] {
      const std::uint64_t row_bytes = array.entry().row_bytes();
      auto memory = AlignedBuffer::Allocate(array.entry().chunk_rows * row_bytes);
      if (!memory) own = memory.error();
      while (own.ok() && watch.seconds() < kSeconds) {
        const std::uint64_t chunk = next++ % array.entry().chunk_count();
        const auto read = array.ReadChunk(
            chunk, memory->bytes().first(array.RowsInChunk(chunk) * row_bytes), {.direct = true});
        if (read) bytes += *read;
        if (!read) own = read.error();
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  const double rate = static_cast<double>(bytes) / watch.seconds();
  for (const Status& one : status) RHIZOME_RETURN_IF_ERROR(one);
  return rate;
}

/// Returns the seconds of only the matrix products of GraphSAGE's layers for all rows.
Result<double> ProductSeconds(const BenchInferOptions& options, const ArrayEntry& features,
                              const JobControl& control) {
  double seconds = 0;
  for (std::uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::uint64_t width = layer == 0 ? features.dim : options.hidden;
    const ProductBenchOptions product{.inputs = static_cast<std::int64_t>(2 * width),
                                      .outputs = static_cast<std::int64_t>(options.hidden),
                                      .threads = options.graph.threads};
    RHIZOME_ASSIGN_OR_RETURN(const double rate, MeasureProducts(product, control));
    seconds += 2 * static_cast<double>(features.rows) *
               static_cast<double>(2 * width * options.hidden) / rate;
  }
  return seconds;
}

}  // namespace

Result<Json> InferLimits(const BenchInferOptions& options, const InferComparison& contest,
                         const Json& report, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const auto array, contest.store().OpenArray(options.features));
  RHIZOME_ASSIGN_OR_RETURN(const double rate, InferDiskRate(*array, options.graph.threads));
  RHIZOME_ASSIGN_OR_RETURN(const double products, ProductSeconds(options, array->entry(), control));
  double moved = 0;
  for (const Json& layer : report["layers"])
    moved += layer["bytes_read"].get<double>() + layer["bytes_written"].get<double>();
  const double run = report["seconds"];
  return Json{{"cpu_share", report["cpu_seconds"].get<double>() / run / options.graph.threads},
              {"disk_bytes", moved},
              {"disk_bytes_per_second", rate},
              {"disk_share", moved / rate / run},
              {"product_seconds", products},
              {"product_share", products / run}};
}

}  // namespace rhizome
