#include "tools/verbs/update_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/input/number.h"
#include "storage/base/escaped_text.h"
#include "tools/import/elements.h"
#include "tools/verbs/json_line.h"

namespace rhizome {
namespace {

using Form = UpdateFormat::Form;
using LineSubject = UpdateFormat::Subject;

Form FormOf(const std::string& path) {
  const std::string extension = ContentExtension(path);
  if (extension == ".csv") return Form::kCsv;
  const bool json = extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
  return json ? Form::kJson : Form::kTsv;
}

TableForm TableFormOf(Form form) {
  if (form == Form::kCsv) return TableForm::kCsv;
  return form == Form::kJson ? TableForm::kLines : TableForm::kTabs;
}

std::vector<std::string> DefaultColumns(const UpdateFormat& format) {
  if (format.subject == LineSubject::kVertices) return {"id"};
  return {"src", "dst"};
}

std::optional<std::size_t> Position(const std::vector<std::string>& names, std::string_view name) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

/// Returns a JSON number as int64, or nullopt if it does not fit. (nlohmann converts the other
/// operand to unsigned when it compares an unsigned number, so the range is checked by type.)
std::optional<std::int64_t> IntegerOf(const Json& value) {
  const bool beyond =
      value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>());
  if (!value.is_number_integer() || beyond) return std::nullopt;
  return value.get<std::int64_t>();
}

/// Returns whether a nonzero edge attribute or weight would be rounded to 0.
bool Vanishes(DataType dtype, std::string_view text) {
  return dtype == DataType::kFloat32 && VanishesInFloat32(text);
}
bool Vanishes(DataType dtype, const Json& value) {
  return dtype == DataType::kFloat32 && value.is_number_float() &&
         VanishesInFloat32(value.get<double>());
}

/// Parses an edge attribute and returns its stored bits, or nullopt for malformed text or JSON.
std::optional<std::int64_t> AttributeBits(DataType dtype, std::string_view text) {
  if (dtype == DataType::kInt64) return ParseCanonicalInteger(text);
  const auto number = ParseFiniteFloat(text);
  if (!number) return std::nullopt;
  return std::bit_cast<std::int64_t>(double{*number});
}
std::optional<std::int64_t> AttributeBits(DataType dtype, const Json& value) {
  if (dtype == DataType::kInt64) return IntegerOf(value);
  float number = NAN;
  if (value.is_null()) return std::bit_cast<std::int64_t>(double{number});
  if (!ParseElementJson(DataType::kFloat32, value, std::as_writable_bytes(std::span(&number, 1))))
    return std::nullopt;
  return std::bit_cast<std::int64_t>(double{number});
}

/// Returns the id of a vertex from a JSON integer or string, or nullopt.
std::optional<ExternalId> IdOf(const Json& value) {
  if (value.is_string()) return ExternalId(value.get<std::string>());
  const auto number = IntegerOf(value);
  return number ? std::optional<ExternalId>(*number) : std::nullopt;
}

std::uint64_t ValueCount(std::span<const EdgeAttributeInfo> attributes) {
  return attributes.empty() ? 0 : attributes.back().first_value + attributes.back().dim;
}

/// `changes` of an older version wrote null for NaN and both infinities, so that the value is lost.
std::string_view AboutNull(const Json& value, bool of_changes) {
  return value.is_null() && of_changes
             ? "; `changes` of an older version wrote null for NaN, Infinity and -Infinity: export "
               "the changes again"
             : "";
}

/// Parses a number, or a list of numbers if the attribute has several, into `edge`. Returns an
/// error message, or nullopt on success.
std::optional<std::string> TakeAttribute(const EdgeAttributeInfo& info, const Json& value,
                                         bool of_changes, EdgeFields& edge) {
  const bool list = value.is_array();
  if (info.dim != (list ? value.size() : 1))
    return fmt::format("{} of '{}' is not a list of {} numbers", value.dump(), info.name, info.dim);
  for (std::uint64_t i = 0; i < info.dim; ++i) {
    const Json& number = list ? value[i] : value;
    const bool lost = of_changes && number.is_null();
    const auto bits = lost ? std::nullopt : AttributeBits(info.dtype, number);
    if (Vanishes(info.dtype, number))
      return fmt::format("{} of '{}' {}", number.dump(), info.name, kVanishes);
    if (!bits)
      return fmt::format("{} of '{}' is not {} {} number{}", value.dump(), info.name,
                         info.dtype == DataType::kInt64 ? "an" : "a", DataTypeName(info.dtype),
                         AboutNull(number, of_changes));
    edge.attributes[info.first_value + i] = EdgeValue::OfBits(info.dtype, *bits);
  }
  return std::nullopt;
}

std::string Known(std::span<const EdgeAttributeInfo> attributes) {
  std::string names;
  for (const EdgeAttributeInfo& attribute : attributes)
    names += (names.empty() ? "" : ", ") + attribute.name;
  return names.empty() ? "none" : names;
}

/// Writes the null of an array; returns false if it has none.
bool PutNull(const UpdateTarget::Columns& columns, std::span<std::byte> out) {
  if (columns.null) return ParseElement(columns.dtype, *columns.null, out);
  return ParseElementJson(columns.dtype, "NaN", out);
}

}  // namespace

const char* const kUpdateJsonHelp =
    "JSON lines (.jsonl, .ndjson, --format json): one object per line, an edge or a vertex:\n"
    "  {\"src\": 1, \"dst\": 2, \"type\": \"cites\", \"weight\": 0.5, \"time\": 17}\n"
    "  {\"id\": 7, \"type\": \"author\", \"rows\": {\"feat\": [0.1, 0.2]}}\n"
    "Other keys of an edge are edge attributes. For one line, \"op\": \"put\", \"upsert\"\n"
    "or \"delete\" replaces the verb. Floats can be NaN, Infinity and -Infinity, also in\n"
    "quotes; null is NaN, or the null of an array of integers that has one.\n";

Result<std::unique_ptr<UpdateFile>> UpdateFile::Open(FileSystem& fs, const std::string& path,
                                                     UpdateFormat format, UpdateTarget target) {
  if (format.form == Form::kAuto) format.form = FormOf(path);
  const bool json = format.form == Form::kJson;
  const bool named =
      !format.columns.empty() || format.subject != LineSubject::kEdges || format.header;
  if (json && named)
    return Fail(Status::InvalidArgument(
        fmt::format("{}: JSON lines name their fields: --columns, --vertices, --array and --header "
                    "are for TSV and CSV",
                    path)));
  std::unique_ptr<UpdateFile> file(new UpdateFile(std::move(format), std::move(target)));
  if (!json) RHIZOME_RETURN_IF_ERROR(file->FindColumns());
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(
      file->table_,
      TableReader::Open(std::move(stream), TableFormOf(file->format_.form), file->format_.header));
  return file;
}

std::optional<std::size_t> UpdateFile::AttributeNumber(std::string_view name) const {
  const auto& known = target_.edge_attributes();
  for (std::size_t a = 0; a < known.size(); ++a)
    if (known[a].name == name) return a;
  return std::nullopt;
}

Status UpdateFile::FindArray(std::string_view name) {
  RHIZOME_ASSIGN_OR_RETURN(const UpdateTarget::Columns* const columns,
                           target_.Find(std::string(name)));
  dtype_ = columns->dtype;
  dim_ = columns->dim;
  return Status::Ok();
}

Status UpdateFile::FindColumns() {
  if (format_.subject == LineSubject::kRows) {
    if (!format_.columns.empty())
      return Status::InvalidArgument(
          "--columns is not used with --array, whose lines are `id v1 v2 ...`");
    return FindArray(format_.array);
  }
  if (format_.columns.empty()) format_.columns = DefaultColumns(format_);
  const auto& columns = format_.columns;
  const bool edges = format_.subject == LineSubject::kEdges;
  const auto id = Position(columns, edges ? "src" : "id");
  const auto dst = Position(columns, "dst");
  if (!id || (edges && !dst))
    return Status::InvalidArgument(fmt::format("--columns {} must name {}", fmt::join(columns, ","),
                                               edges ? "src and dst" : "id"));
  id_ = *id;
  dst_ = dst.value_or(0);
  type_ = Position(columns, "type");
  if (edges) weight_ = Position(columns, "weight");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == "-") continue;
    if (Position(columns, columns[i]) != i)
      return Status::InvalidArgument(fmt::format("--columns: '{}' appears twice", columns[i]));
    if (i == id_ || i == type_ || (edges && (i == dst_ || i == weight_))) continue;
    const auto number = edges ? AttributeNumber(columns[i]) : std::nullopt;
    if (!number)
      return Status::InvalidArgument(fmt::format(
          "--columns: '{}' is not {}; - skips a column{}", columns[i],
          edges ? "src, dst, type, weight or an edge attribute" : "id or type",
          edges ? "; the store's edge attributes are: " + Known(target_.edge_attributes()) : ""));
    if (const std::uint64_t dim = target_.edge_attributes()[*number].dim; dim != 1)
      return Status::InvalidArgument(fmt::format(
          "--columns: an edge has {} values of '{}'; write them as a list in JSON lines", dim,
          columns[i]));
    attributes_.emplace_back(i, *number);
  }
  return Status::Ok();
}

std::string UpdateFile::PlaceOf(std::uint64_t line) const {
  return fmt::format("{}:{}", stream().path().string(), line);
}

// Reads one line in three steps: (1) TableReader splits it into fields (a line of JSON is one
// field); (2) TakeJson or TakeLine parses it into operations of the batch, or returns a reason for
// rejecting it; (3) the reason becomes an error prefixed with file and line.
Result<bool> UpdateFile::ReadLine(WriteBatch& batch) {
  while (true) {
    RHIZOME_ASSIGN_OR_RETURN(const auto next, table_->ReadLine());
    if (next == TableReader::Next::kEnd) return false;
    const bool json = format_.form == Form::kJson;
    if (json && next == TableReader::Next::kFields &&
        table_->fields()[0].find_first_not_of(" \t") == std::string_view::npos)
      continue;
    const Reason reason = next == TableReader::Next::kMalformed ? table_->reason()
                          : json ? TakeJson(table_->fields()[0], batch)
                                 : TakeLine(table_->fields(), batch);
    if (reason)
      return Fail(Status::InvalidArgument(fmt::format("{}: {}", Place(), Excerpt(*reason))));
    return true;
  }
}

UpdateFile::Reason UpdateFile::TakeLine(Fields fields, WriteBatch& batch) {
  if (format_.subject == LineSubject::kRows) return TakeRow(fields, batch);
  if (fields.size() != format_.columns.size())
    return fmt::format("{} fields, but --columns names {}", fields.size(), format_.columns.size());
  if (format_.subject == LineSubject::kEdges) return TakeEdge(fields, batch);
  ExternalId id{std::string(fields[id_])};
  if (format_.verb == UpdateVerb::kDelete) {
    batch.DeleteVertex(std::move(id));
  } else {
    batch.PutVertex(std::move(id), type_ ? fields[*type_] : "");
  }
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeEdge(Fields fields, WriteBatch& batch) {
  EdgeFields edge;
  if (type_) edge.type = fields[*type_];
  if (weight_) {
    const auto weight = ParseFiniteFloat(fields[*weight_]);
    if (!weight) return fmt::format("the weight '{}' is not a finite number", fields[*weight_]);
    if (*weight == 0 && VanishesInFloat32(fields[*weight_]))
      return fmt::format("the weight '{}' {}", fields[*weight_], kVanishes);
    edge.weight = *weight;
  }
  gives_weights_ = gives_weights_ || weight_.has_value();
  if (!attributes_.empty()) edge.attributes.resize(ValueCount(target_.edge_attributes()));
  for (const auto& [column, number] : attributes_) {
    const EdgeAttributeInfo& info = target_.edge_attributes()[number];
    const auto bits = AttributeBits(info.dtype, fields[column]);
    if (Vanishes(info.dtype, fields[column]))
      return fmt::format("'{}' in the column '{}' {}", fields[column], info.name, kVanishes);
    if (!bits)
      return fmt::format("'{}' in the column '{}' is not a {} number", fields[column], info.name,
                         DataTypeName(info.dtype));
    edge.attributes[info.first_value] = EdgeValue::OfBits(info.dtype, *bits);
  }
  ExternalId src{std::string(fields[id_])};
  ExternalId dst{std::string(fields[dst_])};
  if (format_.verb == UpdateVerb::kDelete) {
    batch.DeleteEdge(std::move(src), std::move(dst), edge.type);
  } else if (format_.verb == UpdateVerb::kUpsert) {
    batch.UpsertEdge(std::move(src), std::move(dst), std::move(edge));
  } else {
    batch.PutEdge(std::move(src), std::move(dst), std::move(edge));
  }
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeRow(Fields fields, WriteBatch& batch) {
  if (fields.size() != dim_ + 1)
    return fmt::format("{} fields, but a line of array '{}' has an id and {} values", fields.size(),
                       format_.array, dim_);
  const std::size_t element_bytes = DataTypeBytes(dtype_);
  std::vector<std::byte> row(dim_ * element_bytes);
  for (std::size_t i = 0; i < dim_; ++i) {
    if (!ParseElement(dtype_, fields[i + 1], std::span(row).subspan(i * element_bytes)))
      return fmt::format("value {}, '{}', is not a {} number", i + 1, fields[i + 1],
                         DataTypeName(dtype_));
  }
  batch.PutRow(ExternalId(std::string(fields[0])), format_.array, row);
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeJson(std::string_view text, WriteBatch& batch) {
  std::string wrong;
  Json object = ParseJsonLine(text, {"op", "src", "dst", "id", "type"}, wrong);
  if (!wrong.empty()) return wrong;
  if (auto reason = TakeMark(object)) return reason;
  if (mark_ && object.empty()) return std::nullopt;  // a line with a mark and without changes
  UpdateVerb verb = format_.verb;
  if (const auto op = object.find("op"); op != object.end()) {
    if (*op == "put") {
      verb = UpdateVerb::kPut;
    } else if (*op == "upsert") {
      verb = UpdateVerb::kUpsert;
    } else if (*op == "delete") {
      verb = UpdateVerb::kDelete;
    } else {
      return fmt::format("op {} is not \"put\", \"upsert\" or \"delete\"", op->dump());
    }
  }
  if (const auto type = object.find("type"); type != object.end() && !type->is_string())
    return fmt::format("type {} is not a string", type->dump());
  const bool edge = object.contains("src") && object.contains("dst");
  if (edge == object.contains("id"))
    return "must name either an edge (src and dst) or a vertex (id)";
  return edge ? TakeJsonEdge(object, verb, batch) : TakeJsonVertex(object, verb, batch);
}

UpdateFile::Reason UpdateFile::TakeMark(Json& object) {
  mark_.reset();
  const auto field = object.find(kMarkField);
  if (field == object.end()) return std::nullopt;
  mark_ = ParseMark(*field);
  if (!mark_)
    return fmt::format("{} does not have the form that `rhizome changes` writes", kMarkField);
  object.erase(kMarkField);
  of_changes_ = true;
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeJsonEdge(const Json& object, UpdateVerb verb,
                                            WriteBatch& batch) {
  EdgeFields edge;
  for (const auto& [key, value] : object.items()) {
    if (key == "op" || key == "src" || key == "dst") continue;
    if (key == "type") {
      edge.type = value.get<std::string>();
    } else if (key == "weight") {
      gives_weights_ = true;
      const auto bits = AttributeBits(DataType::kFloat32, value);
      edge.weight = bits ? static_cast<float>(std::bit_cast<double>(*bits)) : NAN;
      if (!std::isfinite(edge.weight))
        return fmt::format("the weight {} is not a finite number", value.dump());
      if (Vanishes(DataType::kFloat32, value))
        return fmt::format("the weight {} {}", value.dump(), kVanishes);
    } else if (const auto number = AttributeNumber(key)) {
      edge.attributes.resize(ValueCount(target_.edge_attributes()));
      if (auto reason = TakeAttribute(target_.edge_attributes()[*number], value, of_changes_, edge))
        return reason;
    } else {
      return fmt::format(
          "'{}' is not op, src, dst, type, weight or an edge attribute; those are: {}", key,
          Known(target_.edge_attributes()));
    }
  }
  auto src = IdOf(object["src"]);
  auto dst = IdOf(object["dst"]);
  if (!src || !dst) return "src and dst must be integers or strings";
  if (verb == UpdateVerb::kDelete) {
    batch.DeleteEdge(*std::move(src), *std::move(dst), edge.type);
  } else if (verb == UpdateVerb::kUpsert) {
    batch.UpsertEdge(*std::move(src), *std::move(dst), std::move(edge));
  } else {
    batch.PutEdge(*std::move(src), *std::move(dst), std::move(edge));
  }
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeJsonVertex(const Json& object, UpdateVerb verb,
                                              WriteBatch& batch) {
  const auto id = IdOf(object["id"]);
  if (!id) return "id must be an integer or a string";
  for (const auto& [key, value] : object.items()) {
    if (key == "op" || key == "id" || key == "type") continue;
    if (key != "rows") return fmt::format("'{}' is not op, id, type or rows", key);
    if (!value.is_object()) return "rows must be an object: {\"<array>\": [numbers]}";
    if (verb == UpdateVerb::kDelete) return "rows cannot be deleted; delete the vertex instead";
  }
  if (verb == UpdateVerb::kDelete) {
    batch.DeleteVertex(*id);
    return std::nullopt;
  }
  batch.PutVertex(*id, object.contains("type") ? object["type"].get<std::string>() : "");
  if (!object.contains("rows")) return std::nullopt;
  for (const auto& [array, values] : object["rows"].items())
    if (auto reason = TakeJsonRow(array, values, *id, batch)) return reason;
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeJsonRow(const std::string& array, const Json& values,
                                           const ExternalId& id, WriteBatch& batch) {
  const auto found = target_.Find(array);
  if (!found) return found.error().message();
  const UpdateTarget::Columns& columns = **found;
  if (!values.is_array() || values.size() != columns.dim)
    return fmt::format("the row of array '{}' is not a list of {} numbers", array, columns.dim);
  const std::size_t element_bytes = DataTypeBytes(columns.dtype);
  std::vector<std::byte> row(columns.dim * element_bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = std::span(row).subspan(i * element_bytes, element_bytes);
    if (values[i].is_null() && !of_changes_ && PutNull(columns, element)) continue;
    if (ParseElementJson(columns.dtype, values[i], element)) continue;
    return fmt::format("value {} of array '{}', {}, is not a {} number{}", i + 1, array,
                       values[i].dump(), DataTypeName(columns.dtype),
                       AboutNull(values[i], of_changes_));
  }
  batch.PutRow(id, array, row);
  return std::nullopt;
}

}  // namespace rhizome
