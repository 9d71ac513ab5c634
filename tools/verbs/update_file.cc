#include "tools/verbs/update_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "index/generation/graph_builder.h"
#include "index/input/number.h"
#include "storage/array/array_facts.h"
#include "storage/base/escaped_text.h"
#include "storage/section/untrusted_json.h"

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

/// Parses an edge attribute by `parse`, ParseElement or ParseElementJson. Returns nullopt for
/// malformed text or JSON.
template <typename Given, typename Parse>
std::optional<EdgeValue> AttributeOf(const EdgeAttributeInfo& info, const Given& given,
                                     const Parse& parse) {
  std::array<std::byte, 8> element{};
  if (!parse(ElementType(info), given, element)) return std::nullopt;
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, element.data(), sizeof(value));
    return EdgeValue(value);
  };
  if (info.dtype == DataType::kInt64) return as(std::int64_t{0});
  return info.dtype == DataType::kFloat32 ? as(0.0F) : as(0.0);
}
std::optional<EdgeValue> AttributeOf(const EdgeAttributeInfo& info, std::string_view text) {
  return AttributeOf(info, text, [](const ElementType& type, std::string_view given, auto& out) {
    return ParseElement(type, given, out);
  });
}
std::optional<EdgeValue> AttributeOf(const EdgeAttributeInfo& info, const Json& value) {
  return AttributeOf(info, value, [](const ElementType& type, const Json& given, auto& out) {
    return ParseElementJson(type, given, out);
  });
}

/// Returns why a float32 attribute cannot have a number: it would be 0, or another integer.
std::optional<std::string_view> Lost(const EdgeAttributeInfo& info, std::string_view text) {
  if (info.dtype != DataType::kFloat32) return std::nullopt;
  const auto number = ParseDouble(text);
  if (!number) return std::nullopt;
  return LostInFloat32(*number);
}
std::optional<std::string_view> Lost(const EdgeAttributeInfo& info, const Json& value) {
  if (info.dtype != DataType::kFloat32 || !value.is_number()) return std::nullopt;
  return LostInFloat32(value.get<double>());
}

/// Parses a weight of JSON. Returns the reason if it is not one.
std::optional<std::string> TakeWeight(const Json& value, float& weight) {
  if (!value.is_number() || !ParseElement(DataType::kFloat32, value.dump(),
                                          std::as_writable_bytes(std::span(&weight, 1))))
    return fmt::format("the weight {} is not a finite number", value.dump());
  if (VanishesInFloat32(value.get<double>()))
    return fmt::format("the weight {} {}", value.dump(), kVanishes);
  return std::nullopt;
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

/// Explains why null is refused: an array has a value for it only if it had nulls from the start.
std::string_view AboutNull(const Json& value) {
  return value.is_null() ? "; it had no null when it was ingested, so no number means null: give a "
                           "number, or ingest again with a null"
                         : "";
}

bool IsText(const EdgeAttributeInfo& info) { return TypeOf(info.attributes) == kTypeText; }

/// Parses a number, or a list of numbers if the attribute has several, into `edge`. Returns an
/// error message, or nullopt on success.
std::optional<std::string> TakeAttribute(const EdgeAttributeInfo& info, const Json& value,
                                         EdgeFields& edge) {
  const bool list = value.is_array();
  if (info.dim != (list ? value.size() : 1))
    return fmt::format("{} of '{}' is not a list of {} numbers", value.dump(), info.name, info.dim);
  for (std::uint64_t i = 0; i < info.dim; ++i) {
    const Json& number = list ? value[i] : value;
    const auto parsed = AttributeOf(info, number);
    if (const auto reason = Lost(info, number))
      return fmt::format("{} of '{}' {}", number.dump(), info.name, *reason);
    if (!parsed)
      return fmt::format("{} of '{}' is not {}{}", value.dump(), info.name,
                         ExpectedElement(ElementType(info)), AboutNull(number));
    edge.attributes[info.first_value + i] = *parsed;
  }
  return std::nullopt;
}

Status NoArray(std::string_view name) {
  return Status::NotFound(
      fmt::format("the new store has no array '{}'; give its schema by --schema", name));
}

/// Explains that a member that names something has a bare NaN or infinity as its value; nullopt if
/// there is none.
std::optional<std::string> NonFiniteName(std::string_view text) {
  for (const std::string_view name : {"op", "src", "dst", "id", "type"}) {
    const std::size_t at = text.find(fmt::format("\"{}\"", name));
    if (at == text.npos) continue;
    const std::size_t colon = text.find_first_not_of(" \t", at + name.size() + 2);
    if (colon == text.npos || text[colon] != ':') continue;
    const std::size_t value = text.find_first_not_of(" \t", colon + 1);
    if (value == text.npos) continue;
    for (const std::string_view number : {"NaN", "Infinity", "-Infinity"})
      if (text.substr(value).starts_with(number))
        return fmt::format("has {} as \"{}\", but a name is an integer or a text", number, name);
  }
  return std::nullopt;
}

std::string Known(std::span<const EdgeAttributeInfo> attributes) {
  std::string names;
  for (const EdgeAttributeInfo& attribute : attributes)
    names += (names.empty() ? "" : ", ") + attribute.name;
  return names.empty() ? "none" : names;
}

/// Returns the reason why a text is not valid JSON.
std::string WhyNoJson(std::string_view text) {
  try {
    const Json parsed = Json::parse(text);
  } catch (const Json::out_of_range& refused) {  // the exception names the number
    return fmt::format("is not readable: {}", refused.what());
  } catch (const Json::parse_error&) {
  }
  return "is not a JSON object";
}

}  // namespace

bool IsJsonField(std::string_view attribute) {
  constexpr std::array<std::string_view, 8> kFields = {
      "op", "src", "dst", "id", "type", "weight", kAttributesField, kMarkField};
  return std::find(kFields.begin(), kFields.end(), attribute) != kFields.end();
}

const char* const kUpdateJsonHelp =
    "JSON lines (.jsonl, .ndjson, --format json): one object per line, an edge or a vertex:\n"
    "  {\"src\": 1, \"dst\": 2, \"type\": \"cites\", \"weight\": 0.5, \"time\": 17}\n"
    "  {\"id\": 7, \"type\": \"author\", \"rows\": {\"feat\": [0.1, 0.2]}}\n"
    "Other keys of an edge are edge attributes; those called like a key above are in an object\n"
    "\"attributes\": {\"op\": 3}. For one line, \"op\": \"put\", \"upsert\"\n"
    "or \"delete\" replaces the verb. NaN and infinities are NaN, Infinity,\n"
    "-Infinity, also as strings; times are ISO 8601; null is for no value.\n";

Result<std::unique_ptr<UpdateFile>> UpdateFile::Open(FileSystem& fs, const std::string& path,
                                                     UpdateFormat format,
                                                     std::shared_ptr<const GraphSnapshot> graph) {
  if (format.form == Form::kAuto) format.form = FormOf(path);
  const bool json = format.form == Form::kJson;
  const bool named =
      !format.columns.empty() || format.subject != LineSubject::kEdges || format.header;
  if (json && named)
    return Fail(Status::InvalidArgument(
        fmt::format("{}: JSON lines name their fields: --columns, --vertices, --array and --header "
                    "are for TSV and CSV",
                    path)));
  std::unique_ptr<UpdateFile> file(new UpdateFile(std::move(format), std::move(graph)));
  if (!json) RHIZOME_RETURN_IF_ERROR(file->FindColumns());
  RHIZOME_ASSIGN_OR_RETURN(auto stream, InputStream::OpenOnce(fs, path));
  RHIZOME_ASSIGN_OR_RETURN(
      file->table_,
      TableReader::Open(std::move(stream), TableFormOf(file->format_.form), file->format_.header));
  return file;
}

std::optional<std::size_t> UpdateFile::AttributeNumber(std::string_view name) const {
  const auto& known = edge_attributes_;
  for (std::size_t a = 0; a < known.size(); ++a)
    if (known[a].name == name) return a;
  return std::nullopt;
}

Status UpdateFile::FindArray(std::string_view name) {
  if (graph_ == nullptr) return NoArray(name);
  RHIZOME_ASSIGN_OR_RETURN(const auto array, graph_->store().OpenArray(name));
  element_ = ElementType(array->entry());
  dim_ = array->entry().dim;
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
          edges ? "; the store's edge attributes are: " + Known(edge_attributes_) : ""));
    if (const std::uint64_t dim = edge_attributes_[*number].dim; dim != 1)
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
  if (fields.size() != format_.columns.size()) {
    const bool json = !fields.empty() && fields[0].starts_with('{');
    return fmt::format("{} field{} found, but {} expected ({}){}", fields.size(),
                       fields.size() == 1 ? "" : "s", format_.columns.size(),
                       fmt::join(format_.columns, ","),
                       json ? "; if these are JSON lines, give --format json"
                            : fmt::format("; fields are separated by {}",
                                          format_.form == Form::kCsv ? "commas" : "tabs"));
  }
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
  if (!attributes_.empty()) edge.attributes.resize(ValueCount(edge_attributes_));
  for (const auto& [column, number] : attributes_) {
    const EdgeAttributeInfo& info = edge_attributes_[number];
    if (IsText(info)) {
      edge.attributes[info.first_value] = EdgeValue(fields[column]);
      continue;
    }
    const auto parsed = AttributeOf(info, fields[column]);
    if (const auto reason = Lost(info, fields[column]))
      return fmt::format("'{}' in the column '{}' {}", fields[column], info.name, *reason);
    if (!parsed)
      return fmt::format("'{}' in the column '{}' is not {}", fields[column], info.name,
                         ExpectedElement(ElementType(info)));
    edge.attributes[info.first_value] = *parsed;
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
  const ArrayEntry* const entry = graph_->store().manifest().FindArray(format_.array);
  if (HasTexts(*entry)) {
    const std::vector<std::string> texts(fields.begin() + 1, fields.end());
    batch.PutTexts(ExternalId(std::string(fields[0])), format_.array, texts);
    return std::nullopt;
  }
  const std::size_t element_bytes = DataTypeBytes(element_.dtype);
  std::vector<std::byte> row(dim_ * element_bytes);
  for (std::size_t i = 0; i < dim_; ++i) {
    if (!ParseElement(element_, fields[i + 1], std::span(row).subspan(i * element_bytes)))
      return fmt::format("value {}, '{}', is not {}", i + 1, fields[i + 1],
                         ExpectedElement(element_));
  }
  batch.PutRow(ExternalId(std::string(fields[0])), format_.array, row);
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeJson(std::string_view text, WriteBatch& batch) {
  if (IsJsonTooDeep(text)) return fmt::format("is nested deeper than {}", kMaxJsonNesting);
  std::optional<std::string> repeated;
  std::string quoted;
  if (text.find_first_of("NI") != text.npos) {
    if (auto reason = NonFiniteName(text)) return reason;
    quoted = QuoteNonFinite(text);
    bare_numbers_ = quoted != text;
    text = quoted;
  } else {
    bare_numbers_ = false;
  }
  Json object = ParseUntrustedJson(text, &repeated);
  if (repeated) return fmt::format("has the key \"{}\" twice", *repeated);
  if (object.is_discarded()) return WhyNoJson(text);
  if (!object.is_object()) return "is not a JSON object";
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
      return fmt::format("op {} is not \"put\", \"upsert\" or \"delete\"{}", op->dump(),
                         AttributeNumber("op")
                             ? "; the edge attribute of this name is given in \"attributes\""
                             : "");
    }
  }
  if (const auto type = object.find("type"); type != object.end() && !type->is_string())
    return fmt::format("type {} is not a string", type->dump());
  const bool edge = object.contains("src") && object.contains("dst");
  // Beside src and dst, id is an edge attribute of this name.
  if (edge ? object.contains("id") && !AttributeNumber("id") : !object.contains("id"))
    return "must name either an edge (src and dst) or a vertex (id)";
  return edge ? TakeJsonEdge(object, verb, batch) : TakeJsonVertex(object, verb, batch);
}

/// Takes a text; null: none. A bare NaN, which some programs write for a missing text, is refused.
UpdateFile::Reason UpdateFile::TakeText(const Json& value, std::string_view name,
                                        std::string& text) const {
  const bool bare =
      bare_numbers_ && (value == "NaN" || value == "Infinity" || value == "-Infinity");
  if (bare || (!value.is_string() && !value.is_null()))
    return fmt::format("{} of '{}' is neither a text nor null (none)",
                       bare ? value.get<std::string>() : value.dump(), name);
  if (value.is_string()) text = value.get<std::string>();
  return std::nullopt;
}

UpdateFile::Reason UpdateFile::TakeMark(Json& object) {
  mark_.reset();
  const auto field = object.find(kMarkField);
  if (field == object.end()) return std::nullopt;
  mark_ = ParseMark(*field);
  if (!mark_)
    return fmt::format("{} does not have the form that `rhizome changes` writes", kMarkField);
  object.erase(kMarkField);
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
      if (auto reason = TakeWeight(value, edge.weight)) return reason;
    } else if (key == kAttributesField && value.is_object()) {
      for (const auto& [name, given] : value.items()) {
        if (object.contains(name) && (name == "id" || !IsJsonField(name)))
          return fmt::format("has the edge attribute '{}' twice", name);
        if (auto reason = TakeJsonAttribute(name, given, edge)) return reason;
      }
    } else if (auto reason = TakeJsonAttribute(key, value, edge)) {
      return reason;
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

UpdateFile::Reason UpdateFile::TakeJsonAttribute(std::string_view name, const Json& value,
                                                 EdgeFields& edge) {
  const auto number = AttributeNumber(name);
  if (!number)
    return fmt::format("'{}' is not op, src, dst, type, weight or an edge attribute; those are: {}",
                       name, Known(edge_attributes_));
  edge.attributes.resize(ValueCount(edge_attributes_));
  const EdgeAttributeInfo& info = edge_attributes_[*number];
  if (!IsText(info)) return TakeAttribute(info, value, edge);
  std::string text;
  if (auto reason = TakeText(value, info.name, text)) return reason;
  edge.attributes[info.first_value] = EdgeValue(text);
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

UpdateFile::Reason UpdateFile::TakeJsonRow(const std::string& array, const Json& given,
                                           const ExternalId& id, WriteBatch& batch) {
  if (graph_ == nullptr) return NoArray(array).message();
  const ArrayEntry* entry = graph_->store().manifest().FindArray(array);
  if (entry == nullptr) return graph_->store().OpenArray(array).error().message();
  const bool one = HasTexts(*entry) && (given.is_string() || given.is_null());
  const Json values = one ? Json::array({given}) : given;
  if (!values.is_array() || values.size() != entry->dim)
    return fmt::format("the row of array '{}' is not a list of {} numbers", array, entry->dim);
  if (HasTexts(*entry)) {
    std::vector<std::string> texts;
    for (const Json& value : values)
      if (auto reason = TakeText(value, array, texts.emplace_back())) return reason;
    batch.PutTexts(id, array, std::move(texts));
    return std::nullopt;
  }
  const ElementType type(*entry);
  const std::size_t element_bytes = DataTypeBytes(type.dtype);
  std::vector<std::byte> row(entry->row_bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto element = std::span(row).subspan(i * element_bytes, element_bytes);
    if (ParseElementJson(type, values[i], element)) continue;
    return fmt::format("value {} of array '{}', {}, is not {}{}", i + 1, array, values[i].dump(),
                       ExpectedElement(type), AboutNull(values[i]));
  }
  batch.PutRow(id, array, row);
  return std::nullopt;
}

}  // namespace rhizome
