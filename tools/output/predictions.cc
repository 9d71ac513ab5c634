#include "tools/output/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "index/graph/live_vertices.h"
#include "index/input/npy_header.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text_output.h"
#include "tools/output/row_files.h"

namespace rhizome {
namespace {

constexpr const char* kPhase = "exporting";

bool IsNpy(const Path& path) { return path.extension() == ".npy"; }

float Sigmoid(float score) { return static_cast<float>(1 / (1 + std::exp(-double{score}))); }

bool AreFinite(std::span<const float> scores) {
  return std::all_of(scores.begin(), scores.end(), [](float s) { return std::isfinite(s); });
}

/// Converts the scores of a row to predictions: probabilities, or unchanged values for regression.
/// If a score of a class is not finite, all probabilities are NaN.
void ToAnswers(Task task, std::span<float> row) {
  if (task == Task::kRegression) return;
  if (task != Task::kMultilabel && !AreFinite(row)) {
    std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  if (task != Task::kMulticlass) {
    std::transform(row.begin(), row.end(), row.begin(), Sigmoid);
    return;
  }
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float score : row) sum += std::exp(score - most);
  for (float& score : row) score = static_cast<float>(std::exp(score - most) / sum);
}

/// Returns the first class with the highest score; nullopt if a score is NaN or infinite.
std::optional<std::size_t> BestOf(std::span<const float> scores) {
  if (!AreFinite(scores)) return std::nullopt;
  return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// Reads rows of scores in vertex-id order, one tile at a time; within a tile, chunks are read in
/// order.
class ScoreReader {
 public:
  explicit ScoreReader(const InferResult& scores)
      : scores_(scores), live_(LiveVertices::Of(scores.graph)) {}

  std::uint64_t rows() const { return live_.count(); }
  std::size_t columns() const { return scores_.array.entry().dim; }
  VertexId VertexOf(std::uint64_t place) const { return live_.At(place); }

  /// Returns the memory per row of a tile; a chunk is held in addition.
  std::uint64_t bytes_per_row() const {
    return columns() * sizeof(float) + sizeof(std::pair<Row, std::uint64_t>);
  }

  /// Reads the rows of the live vertices [first, first + count) into `out` [count, columns].
  Status Read(std::uint64_t first, std::uint64_t count, std::span<float> out) {
    places_.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const Row row, scores_.graph.RowOf(live_.At(first + i)));
      places_.emplace_back(row, i);
    }
    std::sort(places_.begin(), places_.end());
    const std::uint64_t chunk_rows = scores_.array.entry().chunk_rows;
    for (const auto& [row, place] : places_) {
      const auto at = static_cast<std::uint64_t>(row);
      if (!chunk_ || *chunk_ != at / chunk_rows) {
        chunk_ = at / chunk_rows;
        values_.resize(scores_.array.RowsInChunk(*chunk_) * columns());
        RHIZOME_RETURN_IF_ERROR(
            scores_.array.ReadChunk(*chunk_, std::as_writable_bytes(std::span(values_))));
      }
      std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(at % chunk_rows * columns()),
                  columns(), out.begin() + static_cast<std::ptrdiff_t>(place * columns()));
    }
    return Status::Ok();
  }

 private:
  const InferResult& scores_;
  const LiveVertices live_;
  std::vector<std::pair<Row, std::uint64_t>> places_;
  std::optional<std::uint64_t> chunk_;  // the chunk that `values_` holds
  std::vector<float> values_;
};

/// Calls use(first place, rows [count, columns]) for each tile of rows.
Status ForTiles(ScoreReader& reader, std::uint64_t memory_bytes, const JobControl& control,
                const std::function<Status(std::uint64_t, std::span<float>)>& use) {
  const std::uint64_t all = reader.rows();
  const std::uint64_t tile =
      std::min(all, std::max<std::uint64_t>(memory_bytes / reader.bytes_per_row(), 1024));
  std::vector<float> rows(tile * reader.columns());
  for (std::uint64_t first = 0; first < all; first += tile) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = kPhase, .done = first, .total = all}));
    const std::uint64_t count = std::min(tile, all - first);
    const std::span<float> of_tile = std::span(rows).first(count * reader.columns());
    RHIZOME_RETURN_IF_ERROR(reader.Read(first, count, of_tile));
    RHIZOME_RETURN_IF_ERROR(use(first, of_tile));
  }
  return Status::Ok();
}

bool HasClasses(Task task) { return task == Task::kMulticlass || task == Task::kBinary; }

std::string HeadLine(Task task, std::size_t columns, char separator) {
  if (HasClasses(task)) return fmt::format("id{0}class{0}probability", separator);
  std::string line = task == Task::kMultilabel ? fmt::format("id{}labels", separator) : "id";
  const char* const name = task == Task::kMultilabel ? "probability" : "value";
  if (task == Task::kRegression && columns == 1) return line + separator + name;
  for (std::size_t c = 0; c < columns; ++c) line += fmt::format("{}{}_{}", separator, name, c);
  return line;
}

/// As ToAnswers, but replaces each NaN by a positive one, because a sign would be printed.
void ToShownAnswers(Task task, std::span<float> row) {
  ToAnswers(task, row);
  for (float& value : row)
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
}

/// Appends the class and its probability to the line of a vertex.
Status AppendClass(const InferResult& scores, std::span<float> row, TableForm form,
                   std::string& line) {
  std::optional<std::size_t> answer = BestOf(row);
  if (answer && scores.task == Task::kBinary) answer = row[0] > 0 ? 1 : 0;
  ToShownAnswers(scores.task, row);
  line += SeparatorOf(form);
  if (answer && *answer < scores.class_names.size()) {
    const Status added = AppendField(scores.class_names[*answer], form, line);
    if (!added.ok()) return added.WithContext("the name of a class");
  } else if (answer) {
    line += std::to_string(*answer);
  }
  const bool binary = scores.task == Task::kBinary;
  line += fmt::format("{}{}", SeparatorOf(form), row[answer && !binary ? *answer : 0]);
  return Status::Ok();
}

/// Appends the fields that follow the id in the line of a vertex, for a task without classes.
void AppendAnswer(Task task, std::span<float> row, char separator, std::string& line) {
  if (task == Task::kMultilabel) {
    line += separator;
    const char* between = "";
    const bool known = AreFinite(row);
    if (!known) line += "nan";  // an empty field would mean that it has no label
    for (std::size_t c = 0; known && c < row.size(); ++c) {
      if (!(row[c] > 0)) continue;
      line += fmt::format("{}{}", between, c);
      between = " ";
    }
  }
  ToShownAnswers(task, row);
  for (const float value : row) line += fmt::format("{}{}", separator, value);
}

Status WriteTable(const InferResult& scores, const Path& path, std::uint64_t memory_bytes,
                  const JobControl& control) {
  const bool csv = path.extension() == ".csv";
  const TableForm form = csv ? TableForm::kCsv : TableForm::kTabs;
  const char separator = SeparatorOf(form);
  ScoreReader reader(scores);
  RHIZOME_ASSIGN_OR_RETURN(TextOutput out, TextOutput::Create(path));
  RHIZOME_RETURN_IF_ERROR(out.Line(HeadLine(scores.task, reader.columns(), separator)));
  std::string line;
  RHIZOME_RETURN_IF_ERROR(ForTiles(
      reader, memory_bytes, control, [&](std::uint64_t first, std::span<float> rows) -> Status {
        for (std::uint64_t i = 0; i < rows.size() / reader.columns(); ++i) {
          line.clear();
          const VertexId vertex = reader.VertexOf(first + i);
          RHIZOME_RETURN_IF_ERROR(AppendIdField(*scores.graph.ExternalIdOf(vertex), form, line));
          const auto row = rows.subspan(i * reader.columns(), reader.columns());
          if (HasClasses(scores.task))
            RHIZOME_RETURN_IF_ERROR(AppendClass(scores, row, form, line));
          else
            AppendAnswer(scores.task, row, separator, line);
          RHIZOME_RETURN_IF_ERROR(out.Line(line));
        }
        return Status::Ok();
      }));
  return out.Commit();
}

Result<WrittenFile> WriteNpy(const InferResult& scores, const Path& path,
                             std::uint64_t memory_bytes, const JobControl& control) {
  ScoreReader reader(scores);
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes(DataType::kFloat32, reader.rows(), reader.columns());
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  RHIZOME_RETURN_IF_ERROR(
      ForTiles(reader, memory_bytes, control, [&](std::uint64_t, std::span<float> rows) -> Status {
        for (std::size_t at = 0; at < rows.size(); at += reader.columns())
          ToAnswers(scores.task, rows.subspan(at, reader.columns()));
        return out.Append(std::as_bytes(rows));
      }));
  return WrittenFile{std::move(out), reader.rows()};
}

}  // namespace

Status CheckPredictionFiles(const PredictionFiles& files) {
  const std::string form = files.rows.extension();
  if (form == ".npy" || form == ".csv" || form == ".tsv") return Status::Ok();
  return Status::InvalidArgument(fmt::format(
      "--out {}: a file of predictions must end in .csv, .tsv or .npy", files.rows.string()));
}

// Writes either an array of rows and a file of ids, which are committed together, or a text table.
// Both read the scores tile by tile (ScoreReader, ForTiles). Then describes the files for the
// answer.
Result<Json> WritePredictions(const InferResult& scores, const PredictionFiles& files,
                              std::uint64_t memory_bytes, const JobControl& control) {
  const std::size_t columns = scores.array.entry().dim;
  const std::uint64_t vertices = LiveVertices::Of(scores.graph).count();
  Json entries = Json::array();
  if (IsNpy(files.rows)) {
    RHIZOME_ASSIGN_OR_RETURN(WrittenFile ids, WriteIds(scores.graph, LiveVertices::Of(scores.graph),
                                                       files.ids, control));
    RHIZOME_ASSIGN_OR_RETURN(WrittenFile rows, WriteNpy(scores, files.rows, memory_bytes, control));
    RHIZOME_RETURN_IF_ERROR(CommitBoth(std::move(rows), files.rows, std::move(ids), files.ids));
    entries.push_back({{"path", files.rows.string()},
                       {"rows", vertices},
                       {"dim", columns},
                       {"dtype", DataTypeName(DataType::kFloat32)}});
    entries.push_back(
        {{"path", files.ids.string()}, {"rows", vertices}, {"dim", 1}, {"dtype", "text"}});
    return entries;
  }
  RHIZOME_RETURN_IF_ERROR(WriteTable(scores, files.rows, memory_bytes, control));
  const std::string head = HeadLine(scores.task, columns, ',');
  entries.push_back({{"path", files.rows.string()},
                     {"rows", vertices},
                     {"dim", std::count(head.begin(), head.end(), ',') + 1},
                     {"dtype", "text"}});
  return entries;
}

}  // namespace rhizome
