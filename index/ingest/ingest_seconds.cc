#include "index/ingest/ingest_seconds.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "index/partition/streaming_partitioner.h"
#include "rhizome/metrics.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

// Processor time of each step, measured by `bench ingest` and `bench partition` (R-MAT scale 18 and
// 20, on an idle server processor of 2023), in microseconds.
constexpr double kReadEdge = 0.02;        // read an edge of a .npy file
constexpr double kParseByte = 0.003;      // parse a byte of text
constexpr double kArrayByte = 0.002;      // read, permute, check and write a byte of an array
constexpr double kNumberEnd = 0.15;       // number an id that is not dense, by a dictionary
constexpr double kSortEnd = 0.5;          // as above, by an external sort
constexpr double kSpillEdge = 0.05;       // write an edge to a spill file and read it back
constexpr double kScatterEdge = 0.06;     // write an edge to the spill file of its partition
constexpr double kExpandEdge = 0.22;      // refined, adadne, dne ...
constexpr double kExpandReplica = 0.048;  // ... and for each partition
constexpr double kHdrfEdge = 0.115;
constexpr double kHashEdge = 0.03;
constexpr double kBuildEdge = 0.07;   // build a directed edge, with one direction stored
constexpr double kBuildOther = 0.05;  // additional cost of storing the other direction

// The speed-up of n threads is n to the power of this exponent.
constexpr double kThreadExponent = 0.7;

constexpr double kReferenceSeconds = 0.0177;  // of the loop below, on the machine of these figures

double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Returns the factor by which this processor is slower than the reference at random memory
/// accesses, which dominate most steps. Other load does not count.
double Slowness() {
  constexpr std::uint64_t kCounters = std::uint64_t{1} << 23;
  constexpr std::uint64_t kSteps = std::uint64_t{1} << 21;
  std::vector<std::uint32_t> counters(kCounters);
  double best = HUGE_VAL;
  for (std::uint64_t round = 0; round < 3; ++round) {
    const double start = ProcessorSeconds();
    for (std::uint64_t i = 0; i < kSteps; ++i) ++counters[ScaleTo(Mix64(i + round), kCounters)];
    best = std::min(best, ProcessorSeconds() - start);
  }
  return best / kReferenceSeconds;
}

double DivideMicros(const InputEstimate& input, const IngestRoute& route, double threads) {
  if (route.partitions == 1) return 0;
  const auto edges = static_cast<double>(input.edges);
  if (!StreamingPartitioner::Supports(route.partitioner))
    return edges * (kExpandEdge + kExpandReplica * route.partitions) /
           std::pow(threads, kThreadExponent);
  return edges * (route.partitioner == PartitionerKind::kHdrf ? kHdrfEdge : kHashEdge);
}

}  // namespace

double IngestSeconds(const InputEstimate& input, const IngestOptions& options,
                     const IngestRoute& route) {
  const auto edges = static_cast<double>(input.edges);
  const double threads = std::max(options.build.partition.threads, 1U);
  const double arrays = static_cast<double>(input.array_bytes);
  double micros = edges * kReadEdge + static_cast<double>(input.text_bytes) * kParseByte +
                  arrays * kArrayByte * (route.spilled ? 2 : 1);
  if (!input.dense_ids) micros += 2 * edges * (route.spilled ? kSortEnd : kNumberEnd);
  if (route.spilled) micros += edges * (kSpillEdge + (route.held ? 0 : kScatterEdge));
  micros += DivideMicros(input, route, threads);

  const bool both = !options.undirected && options.build.directions == Direction::kBoth;
  const double writers = std::min<double>(threads, route.partitions);
  const double directed = edges * (options.undirected ? 2 : 1);
  micros += directed * (kBuildEdge + (both ? kBuildOther : 0)) / std::pow(writers, kThreadExponent);
  return micros * 1e-6 * Slowness();
}

}  // namespace internal
}  // namespace rhizome
