#include "gnn/infer/input_pass.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/blocks/chunk_reader.h"
#include "cache/feed/inputs.h"
#include "cache/feed/row_types.h"
#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
// InputPass::Run (1) opens the arrays, and lists the chunks that each array is read from; (2) for
// each chunk of the output, copies the rows of features by type, some thousand rows at a time, and
// computes them.

namespace {

/// An array of features, read once in ascending order of rows.
class InputReader {
 public:
  static Result<std::unique_ptr<InputReader>> Open(const GraphSnapshot& graph,
                                                   const std::string& name, bool normalize,
                                                   ChunkReaderOptions options,
                                                   const JobControl& control) {
    std::unique_ptr<InputReader> made(new InputReader);
    RHIZOME_ASSIGN_OR_RETURN(made->array_, graph.store().OpenArray(name));
    const ArrayEntry& entry = made->array_->entry();
    RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                             FeatureDecoder::Create(entry, normalize));
    made->reader_ = std::make_unique<ChunkReader>(*made->array_, decoder, options, control,
                                                  DeltaRows::Of(graph.Snapshot(), entry));
    return made;
  }

  /// Announces a row that will be read. Rows are announced and read in ascending order.
  void Announce(std::uint64_t row) {
    const std::uint64_t chunk = row / array_->entry().chunk_rows;
    if (announced_ > 0 && last_ == chunk) return;
    reader_->Append(chunk);
    ++announced_;
    last_ = chunk;
  }

  /// Returns an announced row, valid until the next call.
  Result<const float*> Read(std::uint64_t row) {
    while (current_.values == nullptr ||
           row >= static_cast<std::uint64_t>(current_.first_row) + current_.rows) {
      current_ = {};  // its memory may be reused for the next chunk
      RHIZOME_ASSIGN_OR_RETURN(current_, reader_->Next());
    }
    return current_.values.get() +
           (row - static_cast<std::uint64_t>(current_.first_row)) * array_->entry().dim;
  }

  ChunkReaderStats Finish() { return reader_->Finish(); }

 private:
  InputReader() = default;
  std::unique_ptr<ChunkArray> array_;
  std::unique_ptr<ChunkReader> reader_;
  std::uint64_t announced_ = 0;
  std::uint64_t last_ = 0;
  DecodedChunk current_;
};

/// The readers of a pass, and the types of rows.
class InputRows {
 public:
  InputRows(const GraphSnapshot& graph, const InputLayer& layer)
      : graph_(graph), types_(graph), layer_(layer) {}

  Status Open(std::span<const FeatureInput> inputs, const LayerSizes& sizes, bool normalize,
              const JobControl& control) {
    const std::vector<std::string> arrays = ArraysOf(inputs);
    for (const std::string& array : arrays) {
      const ArrayEntry& entry = *graph_.store().manifest().FindArray(array);
      RHIZOME_ASSIGN_OR_RETURN(auto reader,
                               InputReader::Open(graph_, array, normalize,
                                                 sizes.InputReader(entry, arrays.size()), control));
      readers_.push_back(std::move(reader));
    }
    for (const FeatureInput& input : inputs) {
      const auto found = std::find(arrays.begin(), arrays.end(), input.array);
      reader_of_.push_back(found == arrays.end()
                               ? nullptr
                               : readers_[static_cast<std::size_t>(found - arrays.begin())].get());
    }
    return Status::Ok();
  }

  void Announce(std::uint64_t row) {
    InputReader* const reader = reader_of_[types_.Of(static_cast<Row>(row))];
    if (reader != nullptr) reader->Announce(row);
  }

  /// Reads rows, which must have been announced. The result is valid until the next call.
  Result<RowsByType> Read(std::span<const std::uint64_t> rows) {
    RowsByType made{.types = std::vector<RowsByType::OfType>(layer_.types()),
                    .rows = static_cast<std::int64_t>(rows.size())};
    values_.resize(layer_.types());
    for (std::vector<float>& values : values_) values.clear();
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      const TypeId type = types_.Of(static_cast<Row>(rows[i]));
      const std::size_t number = layer_.NumberOf(type);
      RowsByType::OfType& of_type = made.types[number];
      if (reader_of_[type] != nullptr) {
        RHIZOME_ASSIGN_OR_RETURN(const float* const row, reader_of_[type]->Read(rows[i]));
        of_type.place.push_back(static_cast<std::uint32_t>(of_type.target.size()));
        values_[number].insert(values_[number].end(), row, row + layer_.columns(number));
      }
      of_type.target.push_back(i);
    }
    for (std::size_t number = 0; number < made.types.size(); ++number) {
      const std::int64_t columns = layer_.columns(number);
      if (columns == 0) continue;
      std::vector<float>& values = values_[number];
      made.types[number].table = torch::from_blob(
          values.data(), {static_cast<std::int64_t>(values.size()) / columns, columns},
          torch::kFloat32);
    }
    return made;
  }

  void AddCosts(InferLayerCosts& costs) {
    for (const auto& reader : readers_) {
      const ChunkReaderStats stats = reader->Finish();
      costs.chunk_requests += stats.requests;
      costs.chunk_reads += stats.reads;
      costs.bytes_read += stats.bytes_read;
      costs.read_seconds += stats.read_seconds;
    }
  }

 private:
  const GraphSnapshot& graph_;
  const RowTypes types_;
  const InputLayer& layer_;
  std::vector<std::unique_ptr<InputReader>> readers_;
  std::vector<InputReader*> reader_of_;     // [types of the graph]; null: no features
  std::vector<std::vector<float>> values_;  // [types of the model], of the last Read
};

/// Returns the rows of chunk `chunk` of the output.
std::vector<std::uint64_t> RowsOfChunk(const ArrayEntry& entry, const RowOrder& order,
                                       std::uint64_t chunk) {
  const std::uint64_t first = chunk * entry.chunk_rows;
  std::vector<std::uint64_t> rows(std::min(entry.chunk_rows, entry.rows - first));
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::uint64_t>(order.RowAt(first + i));
  return rows;
}

}  // namespace

Result<InferLayerCosts> InputPass::Run(LayerOutput& output, const JobControl& control) const {
  const c10::InferenceMode guard;
  const ArrayEntry& entry = output.entry();
  const InputLayer& layer = *model_.inputs();
  layer.Freeze();
  InputRows inputs(graph_, layer);
  RHIZOME_RETURN_IF_ERROR(inputs.Open(options_.inputs, LayerSizes(graph_, model_, options_),
                                      model_.shape().spec.normalize_features, control));
  std::vector<std::uint64_t> chunks;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    if (output.done()[chunk]) continue;
    chunks.push_back(chunk);
    for (const std::uint64_t row : RowsOfChunk(entry, order_, chunk)) inputs.Announce(row);
  }
  InferLayerCosts costs;
  for (const std::uint64_t chunk : chunks) {
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {.phase = "inputs", .done = chunk, .total = entry.chunk_count(), .detail = {}}));
    const std::vector<std::uint64_t> rows = RowsOfChunk(entry, order_, chunk);
    for (std::size_t first = 0; first < rows.size(); first += LayerSizes::kInputRows) {
      const auto some = std::span(rows).subspan(
          first, std::min<std::size_t>(LayerSizes::kInputRows, rows.size() - first));
      const Stopwatch filling;
      RHIZOME_ASSIGN_OR_RETURN(RowsByType read, inputs.Read(some));
      costs.fill_seconds += filling.seconds();
      const Stopwatch computing;
      layer.Compute(
          std::move(read),
          output.Rows(static_cast<Row>(chunk * entry.chunk_rows + first), some.size()).data());
      costs.model_seconds += computing.seconds();
    }
    costs.vertices += rows.size();
    RHIZOME_RETURN_IF_ERROR(output.FinishChunk(chunk, {}));
  }
  inputs.AddCosts(costs);
  return costs;
}

}  // namespace internal
}  // namespace rhizome
