#include "rhizome/index/ingest_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rhizome/index/edge_file.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/input_stream.h"
#include "rhizome/index/node_file.h"
#include "rhizome/index/npy.h"
#include "rhizome/index/row_sources.h"
#include "rhizome/index/streaming_partitioner.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
constexpr std::size_t kSamples = 8;
constexpr std::size_t kCompressedSampleBytes = std::size_t{4} << 20;

bool IsCompressed(const Path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst";
}

/// Pieces of a text file, and what they tell of the whole.
struct TextSample {
  std::vector<std::string> pieces;  ///< each of whole lines
  std::uint64_t bytes = 0;          ///< of the file, decompressed, as far as can be told
  std::uint64_t file_bytes = 0;
  bool whole = false;  ///< the pieces are all of the file
};

/// Cuts what may be half lines off both ends.
std::string WholeLines(std::string_view text, bool at_start, bool at_end) {
  if (!at_start) {
    const std::size_t first = text.find('\n');
    text.remove_prefix(first == text.npos ? text.size() : first + 1);
  }
  if (!at_end) {
    const std::size_t last = text.rfind('\n');
    text = text.substr(0, last == text.npos ? 0 : last + 1);
  }
  return std::string(text);
}

Result<TextSample> SampleStream(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  std::string text(kCompressedSampleBytes, '\0');
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes,
                           stream->ReadFull(std::as_writable_bytes(std::span(text))));
  text.resize(bytes);
  TextSample sample;
  sample.file_bytes = stream->total_bytes();
  sample.whole = bytes < kCompressedSampleBytes;
  sample.bytes = bytes;
  if (!sample.whole && stream->consumed_bytes() > 0) {
    sample.bytes = static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                              static_cast<double>(sample.file_bytes) /
                                              static_cast<double>(stream->consumed_bytes()));
  }
  sample.pieces.push_back(WholeLines(text, true, sample.whole));
  return sample;
}

Result<TextSample> SampleText(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::Open(fs, path));
  const std::uint64_t total = stream->total_bytes();
  if (IsCompressed(path) || total <= kSamples * kSampleBytes) return SampleStream(fs, path);
  RHIZOME_ASSIGN_OR_RETURN(auto file, fs.OpenRead(std::filesystem::canonical(path)));
  TextSample sample;
  sample.bytes = sample.file_bytes = total;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::uint64_t offset = (total - kSampleBytes) / (kSamples - 1) * i;
    std::string text(kSampleBytes, '\0');
    RHIZOME_RETURN_IF_ERROR(ReadExactly(*file, offset, std::as_writable_bytes(std::span(text))));
    sample.pieces.push_back(WholeLines(text, offset == 0, false));
  }
  return sample;
}

/// How many different ids there are, from those that a sample saw.
class IdSample {
 public:
  void Add(std::string_view id) {
    ++seen_;
    bytes_ += id.size();
    if (const auto value = ParseCanonicalInteger(id))
      Widen(*value);
    else
      strings_ = true;
    Count(std::hash<std::string_view>()(id));
  }
  void Add(std::int64_t id) {
    ++seen_;
    Widen(id);
    Count(std::hash<std::int64_t>()(id));
  }

  bool strings() const { return strings_; }
  double mean_bytes() const {
    return seen_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(seen_);
  }

  /// The largest id and all below, if that many can be there: ids are dense more often than not.
  std::optional<std::uint64_t> Dense(std::uint64_t most) const {
    if (strings_ || seen_ == 0 || least_ < 0) return std::nullopt;
    const auto bound = static_cast<std::uint64_t>(most_) + 1;
    return bound <= most ? std::optional(bound) : std::nullopt;
  }

  /// Chao's lower bound: those seen, and as many more as the ones seen once and twice suggest.
  std::uint64_t Distinct(bool whole, std::uint64_t most) const {
    if (whole) return counts_.size();
    double once = 0;
    double twice = 0;
    for (const auto& [hash, count] : counts_) {
      once += count == 1;
      twice += count == 2;
    }
    const double more = once * (once - 1) / (2 * (twice + 1));
    return std::min(most, counts_.size() + static_cast<std::uint64_t>(more));
  }

 private:
  void Widen(std::int64_t id) {
    least_ = std::min(least_, id);
    most_ = std::max(most_, id);
  }
  void Count(std::size_t hash) { ++counts_[hash]; }

  std::uint64_t seen_ = 0;
  std::uint64_t bytes_ = 0;
  bool strings_ = false;
  std::int64_t least_ = 0;
  std::int64_t most_ = 0;
  std::unordered_map<std::size_t, std::uint32_t> counts_;
};

class Estimator {
 public:
  Estimator(FileSystem& fs, const IngestOptions& options) : fs_(fs), options_(options) {}

  Result<InputEstimate> Run() {
    for (const EdgeFile& file : options_.edges) {
      const bool npy = ContentExtension(file.path) == ".npy";
      if (file.sources_first)
        RHIZOME_RETURN_IF_ERROR(TakeSourcesFirst(file));
      else
        RHIZOME_RETURN_IF_ERROR(npy ? TakeNpyEdges(file.path) : TakeEdgeLines(file.path));
    }
    if (options_.nodes) RHIZOME_RETURN_IF_ERROR(TakeNodes(*options_.nodes));
    for (const ArrayFile& file : options_.arrays) RHIZOME_RETURN_IF_ERROR(TakeArray(file));
    CountVertices();
    return estimate_;
  }

 private:
  /// The ids are in ranges that are known.
  Status TakeSourcesFirst(const EdgeFile& file) {
    RHIZOME_ASSIGN_OR_RETURN(const auto reader, OpenNpyEdges(fs_, file));
    estimate_.edges += reader->header().dim();
    estimate_.input_bytes += reader->stream().total_bytes();
    return Status::Ok();
  }

  Status TakeNpyEdges(const Path& path) {
    RHIZOME_ASSIGN_OR_RETURN(auto reader, NpyReader::Open(fs_, path));
    const std::uint64_t rows = reader->header().rows();
    estimate_.edges += rows;
    estimate_.input_bytes += reader->stream().total_bytes();
    if (reader->header().dtype != DataType::kInt64 || reader->header().dim() != 2)
      return Status::Ok();  // the ingestion will say what is wrong
    constexpr std::uint64_t kBlockRows = kSampleBytes / 16;
    const bool plain = !IsCompressed(path);
    if (rows > kSamples * kBlockRows) whole_ = false;
    std::vector<std::int64_t> ends;
    const auto take = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < 2 * count; ++i) edge_ids_.Add(ends[i]);
    };
    if (!plain || rows <= kSamples * kBlockRows) {
      const std::uint64_t count = std::min(rows, kSamples * kBlockRows);
      ends.resize(2 * count);
      RHIZOME_RETURN_IF_ERROR(reader->Read(std::as_writable_bytes(std::span(ends))));
      take(count);
      return Status::Ok();
    }
    RHIZOME_ASSIGN_OR_RETURN(auto file, fs_.OpenRead(std::filesystem::canonical(path)));
    ends.resize(2 * kBlockRows);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint64_t first = (rows - kBlockRows) / (kSamples - 1) * i;
      const auto out = std::as_writable_bytes(std::span(ends));
      const Status read = ReadExactly(*file, reader->header().data_offset + first * 16, out);
      if (!read.ok()) return Status::Ok();  // cut off: the ingestion will say so
      take(kBlockRows);
    }
    return Status::Ok();
  }

  Status TakeEdgeLines(const Path& path) {
    std::size_t src = 0;
    std::size_t dst = 1;
    for (std::size_t i = 0; i < options_.columns.size(); ++i) {
      if (options_.columns[i] == "src") src = i;
      if (options_.columns[i] == "dst") dst = i;
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t lines,
                             TakeLines(path, [&](std::span<const std::string_view> fields) {
                               if (std::max(src, dst) >= fields.size()) return;
                               edge_ids_.Add(fields[src]);
                               edge_ids_.Add(fields[dst]);
                             }));
    estimate_.edges += lines;
    estimate_.edges_exact = false;
    return Status::Ok();
  }

  Status TakeNodes(const Path& path) {
    RHIZOME_ASSIGN_OR_RETURN(
        estimate_.node_lines, TakeLines(path, [&](std::span<const std::string_view> fields) {
          for (std::size_t i = 0; i < fields.size(); ++i)
            if (i < options_.node_columns.size() && options_.node_columns[i] == "id")
              node_ids_.Add(fields[i]);
        }));
    const std::size_t arrays = NodeArrayNames(options_).size();
    estimate_.node_column_bytes = 16 * arrays;
    estimate_.array_row_bytes += 8 * arrays;
    return Status::Ok();
  }

  /// Calls take(fields) for the sampled lines; returns how many lines there are in all.
  template <typename Take>
  Result<std::uint64_t> TakeLines(const Path& path, Take take) {
    RHIZOME_ASSIGN_OR_RETURN(const TextSample sample, SampleText(fs_, path));
    const char separator = ContentExtension(path) == ".csv" ? ',' : '\t';
    std::uint64_t lines = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string_view> fields;
    for (std::size_t piece = 0; piece < sample.pieces.size(); ++piece) {
      std::string_view rest = sample.pieces[piece];
      bytes += rest.size();
      bool skip = piece == 0 && options_.header;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (std::exchange(skip, false)) continue;
        if (line.ends_with('\r')) line.remove_suffix(1);
        ++lines;
        fields.clear();
        for (std::size_t begin = 0; begin <= line.size();) {
          const std::size_t stop = std::min(line.find(separator, begin), line.size());
          fields.push_back(line.substr(begin, stop - begin));
          begin = stop + 1;
        }
        take(std::span<const std::string_view>(fields));
      }
    }
    estimate_.text_bytes += sample.bytes;
    estimate_.input_bytes += sample.file_bytes;
    whole_ = whole_ && sample.whole;
    if (sample.whole || bytes == 0) return lines;
    return static_cast<std::uint64_t>(static_cast<double>(sample.bytes) *
                                      static_cast<double>(lines) / static_cast<double>(bytes));
  }

  Status TakeArray(const ArrayFile& file) {
    std::uint64_t row_bytes = 0;
    if (HasRows(fs_, file)) {
      RHIZOME_ASSIGN_OR_RETURN(const auto source, OpenRows(fs_, file));
      array_rows_ = std::max(array_rows_, source->rows);
      estimate_.input_bytes += source->file_bytes();
      row_bytes = source->dim * DataTypeBytes(file.dtype.value_or(source->dtype));
    } else {
      RHIZOME_ASSIGN_OR_RETURN(const TextSample sample, SampleText(fs_, file.path));
      estimate_.text_bytes += sample.bytes;
      estimate_.input_bytes += sample.file_bytes;
      row_bytes = file.dim * DataTypeBytes(file.dtype.value_or(DataType::kFloat32));
    }
    estimate_.array_row_bytes += row_bytes;
    largest_row_bytes_ = std::max(largest_row_bytes_, row_bytes);
    return Status::Ok();
  }

  /// Are all ids within what an importer says?
  bool InRanges() const { return !options_.edges.empty() && options_.edges.front().src; }

  void CountVertices() {
    InputEstimate& e = estimate_;
    e.string_ids =
        options_.id_type == IdType::kString || edge_ids_.strings() || node_ids_.strings();
    e.id_bytes = std::max({edge_ids_.mean_bytes(), node_ids_.mean_bytes(), 1.0});
    const std::uint64_t implied =
        std::max(options_.vertices.value_or(0), options_.nodes ? 0 : array_rows_);
    const std::uint64_t most = implied + e.node_lines + 2 * e.edges;
    const auto dense = edge_ids_.Dense(most);
    e.dense_ids = !e.string_ids && (dense || e.edges == 0);
    std::uint64_t named = edge_ids_.Distinct(whole_, 2 * e.edges);
    // Integers may have gaps: not all of 0..largest need be there.
    if (e.dense_ids && dense) named = std::max(named, *dense);
    e.vertices = std::max({named, implied, e.node_lines});
    if (InRanges()) {
      e.vertices = implied;
      e.dense_ids = true;
    }
    e.vertices_exact = implied > 0 || (whole_ && !options_.nodes && e.node_lines == 0);
    e.array_bytes = e.vertices * e.array_row_bytes;
    if (largest_row_bytes_ == 0) return;
    const auto chunk_rows = DefaultChunkRows(e.vertices, largest_row_bytes_);
    e.largest_chunk_bytes =
        (options_.chunk_rows != 0 ? options_.chunk_rows : chunk_rows.value_or(128)) *
        largest_row_bytes_;
  }

  FileSystem& fs_;
  const IngestOptions& options_;
  InputEstimate estimate_;
  IdSample edge_ids_;
  IdSample node_ids_;
  bool whole_ = true;  // the samples were all of the edges
  std::uint64_t array_rows_ = 0;
  std::uint64_t largest_row_bytes_ = 0;
};

/// What is written beside one edge's two ends.
std::uint64_t ColumnBytes(const IngestOptions& options) {
  std::uint64_t bytes =
      8 * EdgeAttributeNames(options).size() + (HasEdgeTypes(options) ? sizeof(TypeId) : 0);
  for (const std::string& name : options.columns) bytes += name == "weight" ? 4 : 0;
  return bytes;
}

std::uint64_t WriteBytes(const IngestOptions& options) {
  std::uint64_t bytes = kWriteBytesPerEdge + 24 * EdgeAttributeNames(options).size() +
                        (HasEdgeTypes(options) ? 6 : 0);
  for (const std::string& name : options.columns) bytes += name == "weight" ? 16 : 0;
  return bytes;
}

/// Of the dictionary of all ids in memory.
std::uint64_t DictionaryBytes(const InputEstimate& estimate) {
  if (estimate.dense_ids) return 0;
  const double key = estimate.string_ids ? 2 * estimate.id_bytes + 40 + estimate.id_bytes : 16;
  return static_cast<std::uint64_t>(static_cast<double>(estimate.vertices) * (key + 32));
}

std::uint64_t NodeBytes(const InputEstimate& estimate) {
  const std::uint64_t dictionary =
      estimate.dense_ids ? 0
                         : static_cast<std::uint64_t>(static_cast<double>(estimate.node_lines) *
                                                      (estimate.id_bytes + 40));
  return estimate.node_lines * estimate.node_column_bytes + dictionary;
}

}  // namespace

Result<InputEstimate> EstimateInput(FileSystem& fs, const IngestOptions& options) {
  return Estimator(fs, options).Run();
}

std::uint64_t MemoryToHold(const InputEstimate& estimate, const IngestOptions& options) {
  const std::uint64_t directed = estimate.edges * (options.undirected ? 2 : 1);
  const std::uint64_t growing = estimate.edges_exact ? 16 : 40;  // a vector's, as it doubles
  const std::uint64_t read =
      estimate.edges * (growing + 2 * ColumnBytes(options)) + DictionaryBytes(estimate);
  const std::uint64_t build = directed * (kHeldBytesPerEdge + WriteBytes(options)) +
                              estimate.vertices * kBuildBytesPerVertex;
  return std::max(read, build) + NodeBytes(estimate) + estimate.array_bytes +
         2 * estimate.largest_chunk_bytes;
}

std::uint32_t PartitionsThatFit(std::uint64_t memory_bytes, std::uint64_t vertices,
                                std::uint64_t directed_edges, std::uint64_t edge_bytes,
                                std::uint32_t threads, std::uint32_t given) {
  // Partitions are not quite equal.
  const double all = 1.1 * static_cast<double>(directed_edges) * static_cast<double>(edge_bytes);
  for (const std::uint32_t at_once : {std::max(threads, 1U), 1U}) {
    // More than 64 partitions take more memory for each vertex, and so perhaps still more of them.
    for (std::uint32_t most = 64; most <= kMaxPartitions; most += 64) {
      const std::uint64_t vertex_bytes = BuildVertexBytes(vertices, most);
      if (vertex_bytes >= memory_bytes) break;
      const double partitions =
          std::ceil(all * at_once / static_cast<double>(memory_bytes - vertex_bytes));
      if (partitions > most || given > most) continue;
      return std::max({static_cast<std::uint32_t>(partitions), given, 1U});
    }
  }
  return 0;
}

Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& options) {
  IngestPlan plan;
  RHIZOME_ASSIGN_OR_RETURN(plan.input, EstimateInput(fs, options));
  const InputEstimate& input = plan.input;
  plan.edges = input.edges * (options.undirected ? 2 : 1);
  const std::uint64_t edge_bytes = WriteBytes(options);
  const std::uint64_t vertex_bytes = input.vertices * kBuildBytesPerVertex;
  const std::uint64_t fixed = NodeBytes(input) + 2 * input.largest_chunk_bytes;
  plan.memory_to_hold = MemoryToHold(input, options);
  plan.least_memory = vertex_bytes + fixed + plan.edges * edge_bytes * 11 / 10 / kMaxPartitions +
                      (std::uint64_t{4} << 20);
  plan.least_memory = std::min(plan.least_memory, plan.memory_to_hold);
  plan.memory_bytes = options.memory_bytes == 0 ? plan.memory_to_hold : options.memory_bytes;
  plan.spilled = plan.memory_bytes < plan.memory_to_hold;
  const PartitionOptions& partition = options.build.partition;
  plan.partitioner = partition.kind;
  plan.partitions = partition.partitions;

  // What each step takes, on one core of a server of 2020 (see `bench ingest`), in edges a second.
  const auto edges = static_cast<double>(input.edges);
  const auto directed = static_cast<double>(plan.edges);
  const double threads = std::max(partition.threads, 1U);
  double seconds = static_cast<double>(input.text_bytes) / 60e6 + edges / 25e6 +
                   static_cast<double>(input.array_bytes) / 250e6;
  const std::uint64_t spool = input.edges * (8 + ColumnBytes(options));
  if (!plan.spilled) {
    plan.peak_memory_bytes = plan.memory_to_hold;
  } else {
    const std::uint64_t left = plan.memory_bytes - std::min(plan.memory_bytes, fixed);
    const bool holds = plan.edges * (edge_bytes + kHeldBytesPerEdge) + vertex_bytes <= left;
    if (!holds) {
      const std::uint32_t fit =
          PartitionsThatFit(left, input.vertices, plan.edges, edge_bytes,
                            static_cast<std::uint32_t>(threads), plan.partitions);
      plan.partitions = std::max(fit, plan.partitions);
      if (!StreamingPartitioner::Supports(plan.partitioner) && plan.partitions > 1)
        plan.partitioner = PartitionerKind::kHdrf;
    }
    plan.peak_memory_bytes = plan.memory_bytes;
    plan.scratch_bytes = holds ? spool : 2 * spool;
    if (!input.dense_ids)
      plan.scratch_bytes = std::max<std::uint64_t>(
          plan.scratch_bytes,
          2 * spool + input.edges * 2 * static_cast<std::uint64_t>(8 + input.id_bytes + 8));
    plan.scratch_bytes += input.array_bytes;
    seconds += edges / 12e6 * (holds ? 1 : 2) + static_cast<double>(input.array_bytes) / 250e6;
    if (!input.dense_ids) seconds += edges / 2e6;
  }
  if (plan.partitions > 1) {
    const bool expansion = !StreamingPartitioner::Supports(plan.partitioner);
    const double rate = expansion                                    ? 0.9e6 * threads
                        : plan.partitioner == PartitionerKind::kHdrf ? 4e6
                                                                     : 15e6;
    seconds += edges / rate;
  }
  const double writers = std::min<double>(threads, plan.partitions);
  seconds += directed / (5e6 * writers);
  plan.seconds = seconds;

  const bool both = !options.undirected && options.build.directions == Direction::kBoth;
  std::uint64_t edge_disk = (both ? 9 : 5) + ColumnBytes(options);
  const bool weighted =
      std::find(options.columns.begin(), options.columns.end(), "weight") != options.columns.end();
  if (both && (weighted || !EdgeAttributeNames(options).empty())) edge_disk += 4;  // in-edges' ids
  plan.store_bytes = plan.edges * edge_disk + input.vertices * 12 + input.array_bytes +
                     (input.array_row_bytes > 0 ? input.vertices * 4 : 0);
  if (!input.dense_ids)
    plan.store_bytes += static_cast<std::uint64_t>(static_cast<double>(input.vertices) *
                                                   ((input.string_ids ? input.id_bytes : 8) + 8));
  plan.disk_bytes = plan.store_bytes + plan.scratch_bytes;
  return plan;
}

}  // namespace rhizome
