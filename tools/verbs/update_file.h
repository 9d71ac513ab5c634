#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/input/table_reader.h"
#include "rhizome/write_batch.h"
#include "tools/cli/cli.h"
#include "tools/import/elements.h"
#include "tools/verbs/change_marks.h"

namespace rhizome {

/// Action that an update file performs on the objects that its lines name.
enum class UpdateVerb : std::uint8_t { kPut, kUpsert, kDelete };

/// Format of an update file.
struct UpdateFormat {
  enum class Form : std::uint8_t {
    kAuto,  ///< from the file's name: .csv, .jsonl or .ndjson, otherwise tab-separated
    kTsv,
    kCsv,
    kJson,  ///< one object per line: see kUpdateJsonHelp
  };
  enum class Subject : std::uint8_t { kEdges, kVertices, kRows };

  UpdateVerb verb = UpdateVerb::kPut;
  Form form = Form::kAuto;
  Subject subject = Subject::kEdges;  ///< for TSV and CSV; JSON objects specify it themselves
  std::string array;                  ///< for kRows: lines are `id v1 v2 ...`
  std::vector<std::string> columns;   ///< empty: DefaultColumns
  bool header = false;
};

/// The field of a JSON line with the edge attributes whose names are fields of their own.
inline constexpr const char* kAttributesField = "attributes";

/// Returns whether an edge attribute has the name of a field of JSON lines.
bool IsJsonField(std::string_view attribute);

/// Text of --help about JSON lines.
extern const char* const kUpdateJsonHelp;

/// Reads a file of updates line by line into a batch. The file may be plain or compressed; "-" is
/// standard input. Malformed lines are reported here, with file and line. Graph::Write reports
/// operations that do not match the vertices and types of the graph.
/// Threads: one at a time.
class UpdateFile {
 public:
  /// Opens `path` for updates of `graph`; if it is null, of a store that is created afterwards and
  /// has no edge attributes and arrays.
  /// Errors: as InputStream::Open; kInvalidArgument, columns or an array that the graph does not
  /// have.
  static Result<std::unique_ptr<UpdateFile>> Open(FileSystem& fs, const std::string& path,
                                                  UpdateFormat format,
                                                  std::shared_ptr<const GraphSnapshot> graph);

  /// Adds the operations of the next line to `batch`. Returns false at the end. Blank lines of JSON
  /// are skipped.
  /// Errors: as InputStream::Read; kInvalidArgument, naming file, line and reason.
  Result<bool> ReadLine(WriteBatch& batch);

  /// Returns the location of the line read last, or of a given line, as "edges.tsv:12".
  std::string Place() const { return table_->Place(); }
  std::string PlaceOf(std::uint64_t line) const;

  /// Mark of the line read last, if it has one (JSON lines of `changes`).
  const std::optional<ChangeMark>& mark() const { return mark_; }
  std::uint64_t line() const { return table_->line(); }

  /// Returns whether an edge so far was given with a weight.
  bool gives_weights() const { return gives_weights_; }
  const InputStream& stream() const { return table_->stream(); }

 private:
  using Fields = std::span<const std::string_view>;
  using Reason = std::optional<std::string>;

  UpdateFile(UpdateFormat format, std::shared_ptr<const GraphSnapshot> graph)
      : format_(std::move(format)),
        graph_(std::move(graph)),
        edge_attributes_(graph_ == nullptr ? std::vector<EdgeAttributeInfo>()
                                           : graph_->edge_attributes()) {}
  Status FindColumns();
  Status FindArray(std::string_view name);
  Reason TakeLine(Fields fields, WriteBatch& batch);
  Reason TakeEdge(Fields fields, WriteBatch& batch);
  Reason TakeRow(Fields fields, WriteBatch& batch);
  Reason TakeJson(std::string_view text, WriteBatch& batch);
  Reason TakeMark(Json& object);
  Reason TakeText(const Json& value, std::string_view name, std::string& text) const;
  Reason TakeJsonEdge(const Json& object, UpdateVerb verb, WriteBatch& batch);
  Reason TakeJsonAttribute(std::string_view name, const Json& value, EdgeFields& edge);
  Reason TakeJsonVertex(const Json& object, UpdateVerb verb, WriteBatch& batch);
  Reason TakeJsonRow(const std::string& array, const Json& given, const ExternalId& id,
                     WriteBatch& batch);
  std::optional<std::size_t> AttributeNumber(std::string_view name) const;

  UpdateFormat format_;
  const std::shared_ptr<const GraphSnapshot> graph_;
  const std::vector<EdgeAttributeInfo> edge_attributes_;  // of the graph
  std::unique_ptr<TableReader> table_;
  std::optional<ChangeMark> mark_;
  bool gives_weights_ = false;
  bool bare_numbers_ = false;  // the line has NaN or an infinity without quotes
  // For TSV and CSV: the positions of the columns, and for each attribute column the number of the
  // attribute in the graph.
  std::size_t id_ = 0;
  std::size_t dst_ = 0;
  std::optional<std::size_t> type_;
  std::optional<std::size_t> weight_;
  std::vector<std::pair<std::size_t, std::size_t>> attributes_;
  ElementType element_ = DataType::kInvalid;  // for kRows: of the array
  std::uint64_t dim_ = 0;
};

}  // namespace rhizome
