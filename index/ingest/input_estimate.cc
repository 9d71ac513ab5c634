// Estimates an input from file lengths, headers and samples. Estimator::Run visits every input file
// once and adds up its share.

#include "index/ingest/input_estimate.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "index/ids/id_sample.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/node_file.h"
#include "index/ingest/row_sources.h"
#include "index/input/convert.h"
#include "index/input/npy.h"
#include "index/input/table_reader.h"
#include "index/input/text_sample.h"
#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"
#include "storage/io/files.h"

namespace rhizome {
namespace {

class Estimator {
 public:
  Estimator(FileSystem& fs, const InputPlan& plan) : fs_(fs), plan_(plan), options_(plan.options) {}

  // Samples the edge files, the nodes file and the arrays, adding up edges, lines and bytes; then
  // estimates the number of vertices from the sampled ids (CountVertices).
  Result<InputEstimate> Run() {
    for (std::size_t i = 0; i < options_.edges.size(); ++i) {
      const EdgeFile& file = options_.edges[i];
      const FilePlan& plan = plan_.edges[i];
      if (file.spans)
        TakeSpans(*file.spans);
      else if (plan.format == InputFormat::kNpy)
        RHIZOME_RETURN_IF_ERROR(TakeNpyEdges(file));
      else
        RHIZOME_RETURN_IF_ERROR(TakeEdgeLines(plan));
    }
    if (options_.node_ids)
      TakeNodes(*options_.node_ids);
    else if (options_.nodes)
      RHIZOME_RETURN_IF_ERROR(TakeNodes(*plan_.nodes));
    for (const ArrayFile& file : options_.arrays) RHIZOME_RETURN_IF_ERROR(TakeArray(file));
    CountVertices();
    return estimate_;
  }

 private:
  /// Samples ids in memory, evenly, and returns whether all of them were sampled.
  static bool Sample(const IdSpan& ids, IdSample& sample) {
    constexpr std::size_t kMost = kSamples * kSampleBytes / 16;
    const std::size_t step = (ids.size() + kMost - 1) / kMost;
    for (std::size_t i = 0; i < ids.integers.size(); i += step) sample.Add(ids.integers[i]);
    for (std::size_t i = 0; i < ids.texts.size(); i += step) sample.Add(ids.texts[i]);
    return step <= 1;
  }

  void TakeSpans(const EdgeSpans& edges) {
    estimate_.edges += edges.size();
    if (!Sample(edges.src, edge_ids_)) whole_ = false;
    if (!Sample(edges.dst, edge_ids_)) whole_ = false;
  }

  void TakeNodes(const IdSpan& ids) {
    estimate_.node_lines = ids.size();
    if (!Sample(ids, node_ids_)) whole_ = false;
  }

  Status TakeNpyEdges(const EdgeFile& file) {
    RHIZOME_ASSIGN_OR_RETURN(const NpyEdges edges, OpenNpyEdges(fs_, file));
    const auto& reader = edges.reader;
    const Path& path = file.path;
    const std::uint64_t rows = edges.edges();
    estimate_.edges += rows;
    estimate_.input_bytes += reader->stream().total_bytes();
    if (file.src) return Status::Ok();  // the ids are in known ranges
    if (reader->header().dtype != DataType::kInt64) return SampleNpy(*reader, 2 * rows);
    constexpr std::uint64_t kBlockRows = kSampleBytes / 16;
    RHIZOME_ASSIGN_OR_RETURN(const bool compressed, IsCompressed(fs_, path));
    if (rows > kSamples * kBlockRows) whole_ = false;
    std::vector<std::int64_t> ends;
    const auto take = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < 2 * count; ++i) edge_ids_.Add(ends[i]);
    };
    if (compressed || rows <= kSamples * kBlockRows) {
      const std::uint64_t count = std::min(rows, kSamples * kBlockRows);
      ends.resize(2 * count);
      RHIZOME_RETURN_IF_ERROR(reader->Read(std::as_writable_bytes(std::span(ends))));
      take(count);
      return Status::Ok();
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto raw, fs_.OpenRead(std::filesystem::canonical(path)));
    ends.resize(2 * kBlockRows);
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint64_t first = (rows - kBlockRows) / (kSamples - 1) * i;
      const auto out = std::as_writable_bytes(std::span(ends));
      const Status read = ReadExactly(*raw, reader->header().data_offset + first * 16, out);
      if (!read.ok()) return Status::Ok();  // truncated: the ingestion reports it
      take(kBlockRows);
    }
    return Status::Ok();
  }

  /// Samples the first ids of an array that is not int64.
  Status SampleNpy(NpyReader& reader, std::uint64_t ids) {
    const std::uint64_t count = std::min<std::uint64_t>(ids, kSamples * kSampleBytes / 8);
    if (count < ids) whole_ = false;
    const DataType dtype = reader.header().dtype;
    std::vector<std::byte> bytes(count * DataTypeBytes(dtype));
    RHIZOME_RETURN_IF_ERROR(reader.Read(bytes));
    std::vector<std::int64_t> integers(count);
    static_cast<void>(ConvertElements(dtype, bytes, DataType::kInt64,
                                      std::as_writable_bytes(std::span(integers))));
    for (const std::int64_t id : integers) edge_ids_.Add(id);
    return Status::Ok();
  }

  Status TakeEdgeLines(const FilePlan& plan) {
    std::size_t src = 0;
    std::size_t dst = 1;
    for (std::size_t i = 0; i < plan.columns.size(); ++i) {
      if (plan.columns[i].role == "src") src = i;
      if (plan.columns[i].role == "dst") dst = i;
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t lines,
                             TakeLines(plan, [&](std::span<const std::string_view> fields) {
                               if (std::max(src, dst) >= fields.size()) return;
                               edge_ids_.Add(fields[src]);
                               edge_ids_.Add(fields[dst]);
                             }));
    estimate_.edges += lines;
    estimate_.edges_exact = false;
    return Status::Ok();
  }

  Status TakeNodes(const FilePlan& plan) {
    RHIZOME_ASSIGN_OR_RETURN(
        estimate_.node_lines, TakeLines(plan, [&](std::span<const std::string_view> fields) {
          for (std::size_t i = 0; i < fields.size(); ++i)
            if (i < options_.node_columns.size() && options_.node_columns[i] == "id")
              node_ids_.Add(fields[i]);
        }));
    const std::size_t arrays = NodeArrayNames(options_).size();
    estimate_.node_column_bytes = 16 * arrays;
    estimate_.array_row_bytes += 8 * arrays;
    return Status::Ok();
  }

  /// Calls take(fields) for the sampled lines; returns an estimate of the number of all lines.
  template <typename Take>
  Result<std::uint64_t> TakeLines(const FilePlan& plan, Take take) {
    RHIZOME_ASSIGN_OR_RETURN(const TextSample sample, SampleText(fs_, plan.path));
    std::uint64_t lines = 0;
    std::uint64_t bytes = 0;
    for (std::size_t piece = 0; piece < sample.pieces.size(); ++piece) {
      bytes += sample.pieces[piece].size();
      const auto reader =
          TableReader::Open(InputStream::OfText(sample.pieces[piece], plan.path), plan.dialect,
                            /*header=*/piece == 0 && plan.header);
      if (!reader) continue;  // the ingestion reports the error
      while (true) {
        RHIZOME_ASSIGN_OR_RETURN(const auto next, (*reader)->ReadLine());
        if (next == TableReader::Next::kEnd) break;
        ++lines;
        take((*reader)->fields());
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

  /// Returns whether all ids are in ranges that an importer specified.
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
    // Integers may have gaps, so not all of 0..largest need exist.
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
  const InputPlan& plan_;
  const IngestOptions& options_;
  InputEstimate estimate_;
  IdSample edge_ids_;
  IdSample node_ids_;
  bool whole_ = true;  // the samples covered all edges
  std::uint64_t array_rows_ = 0;
  std::uint64_t largest_row_bytes_ = 0;
};

}  // namespace

Result<InputEstimate> EstimateInput(FileSystem& fs, const InputPlan& plan) {
  return Estimator(fs, plan).Run();
}

}  // namespace rhizome
