#include <fmt/format.h>

#include <algorithm>

#include "rhizome/chunk_array.h"
#include "storage/array/array_versions.h"
#include "storage/array/codec.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/gnn/bench_infer.h"
#include "tools/bench/gnn/infer_comparison.h"
#include "tools/bench/harness/gnuplot.h"
#include "tools/cli/json.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kSampleBytes = std::uint64_t{64} << 20;
// the chunk size of layerwise inference
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;

/// Disk rates for which codecs are compared, in bytes per second: network storage, a SATA disk, an
/// NVMe disk.
constexpr std::array<double, 3> kDiskRates = {1e8, 5e8, 2e9};

struct NamedCodec {
  const char* name;
  Codec codec;
};
constexpr std::array<NamedCodec, 7> kCodecs = {
    {{"raw", {.kind = CodecKind::kRaw, .level = 1}},
     {"lz4 1", {.kind = CodecKind::kBloscLz4, .level = 1}},
     {"lz4 5", {.kind = CodecKind::kBloscLz4, .level = 5}},
     {"lz4 9", {.kind = CodecKind::kBloscLz4, .level = 9}},
     {"zstd 1", {.kind = CodecKind::kBloscZstd, .level = 1}},
     {"zstd 5", {.kind = CodecKind::kBloscZstd, .level = 5}},
     {"zstd 9", {.kind = CodecKind::kBloscZstd, .level = 9}}}};

/// Returns the first rows of the newest version of the array that `infer` wrote.
Result<std::vector<std::byte>> SampleRows(const InferComparison& contest) {
  RHIZOME_ASSIGN_OR_RETURN(
      const auto store,
      Store::Open(FileSystem::Posix(), contest.store().path(), Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, store->OpenArray(InferComparison::kArray));
  const ArrayEntry& entry = array->entry();
  const std::uint64_t rows = std::min(entry.rows, kSampleBytes / entry.row_bytes());
  std::vector<std::byte> sample(rows * entry.row_bytes());
  RHIZOME_RETURN_IF_ERROR(array->ReadRows(0, rows, sample));
  return sample;
}

struct CodecTimes {
  std::vector<double> encode;  // in seconds, by round
  std::vector<double> decode;
  std::uint64_t bytes = 0;
};

Status Measure(const Codec& codec, std::span<const std::byte> sample, CodecTimes& times) {
  std::vector<std::vector<std::byte>> encoded;
  const Stopwatch encoding;
  for (std::size_t at = 0; at < sample.size(); at += kChunkBytes) {
    RHIZOME_ASSIGN_OR_RETURN(
        auto chunk,
        EncodeChunk(codec, sample.subspan(at, std::min(kChunkBytes, sample.size() - at))));
    encoded.push_back(std::move(chunk));
  }
  times.encode.push_back(encoding.seconds());
  times.bytes = 0;
  std::vector<std::byte> out(kChunkBytes);
  const Stopwatch decoding;
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    const std::size_t size = std::min(kChunkBytes, sample.size() - i * kChunkBytes);
    RHIZOME_RETURN_IF_ERROR(DecodeChunk(codec, encoded[i], std::span(out).first(size)));
    times.bytes += encoded[i].size();
  }
  times.decode.push_back(decoding.seconds());
  return Status::Ok();
}

Status Draw(const std::string& path, const Json& results) {
  std::string script = PlotHead(path, 900, 500) + "$d << EOD\n";
  for (const Json& row : results) {
    script += fmt::format("\"{}\" {} {} {}\n", row["codec"].get<std::string>(),
                          row["encode_mb_per_second"].get<double>(),
                          row["decode_mb_per_second"].get<double>(), row["share"].get<double>());
  }
  script +=
      "EOD\nset style data histograms\nset style fill solid\nset grid ytics\nset logscale y\n"
      "set ytics nomirror\nset y2tics\nset ylabel 'MB/s of one thread'\nset y2range [0:1.1]\n"
      "set y2label 'bytes of raw'\nplot $d using 2:xtic(1) title 'encode', '' using 3 title "
      "'decode', '' using 4 axes x1y2 title 'bytes' with linespoints\n";
  return DrawPlot(path, script);
}

}  // namespace

Status BenchInferCodecs(const BenchInferOptions& options, InferComparison& contest,
                        const JobControl& control, Json& json) {
  if (!json.contains("results"))  // embeddings have not been computed yet
    RHIZOME_RETURN_IF_ERROR(contest.Infer({"--fanout", "all"}, options.limit_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> sample, SampleRows(contest));
  std::array<CodecTimes, kCodecs.size()> times;
  for (std::uint32_t round = 0; round < options.rounds; ++round) {
    for (std::size_t c = 0; c < kCodecs.size(); ++c) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = kCodecs[c].name, .done = round, .total = options.rounds}));
      RHIZOME_RETURN_IF_ERROR(Measure(kCodecs[c].codec, sample, times[c]));
    }
  }
  Json results = Json::array();
  std::array<std::pair<double, std::string>, kDiskRates.size()> best;
  const auto size = static_cast<double>(sample.size());
  for (std::size_t c = 0; c < kCodecs.size(); ++c) {
    const double encode = Median(times[c].encode);
    const double decode = Median(times[c].decode);
    const auto bytes = static_cast<double>(times[c].bytes);
    results.push_back({{"codec", kCodecs[c].name},
                       {"bytes", times[c].bytes},
                       {"share", bytes / size},
                       {"encode_mb_per_second", size / encode / 1e6},
                       {"decode_mb_per_second", size / decode / 1e6}});
    for (std::size_t d = 0; d < kDiskRates.size(); ++d) {
      // Cost of writing once and reading once, if encoding and decoding do not overlap with I/O.
      const double cost = encode + decode + 2 * bytes / kDiskRates[d];
      if (c == 0 || cost < best[d].first) best[d] = {cost, kCodecs[c].name};
    }
  }
  json["codecs"] = results;
  for (std::size_t d = 0; d < kDiskRates.size(); ++d)
    json["codec_at"][fmt::format("{:.0f} MB/s", kDiskRates[d] / 1e6)] = best[d].second;
  if (options.plot.empty()) return Status::Ok();
  return Draw(PartPlot(options.plot, "codecs"), results);
}

}  // namespace rhizome
