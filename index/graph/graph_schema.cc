// The schema of a store as JSON: ParseSchema reads the members of the object one by one, SchemaText
// writes them, and SchemaOf collects them from an open graph.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "index/delta/stale_vertices.h"
#include "index/homes/home_array.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/base/exceptions.h"
#include "storage/section/json_value.h"

namespace rhizome {
namespace {

// Attributes of an array that describe its values, and not how its rows came to be.
constexpr std::string_view kDescriptions[] = {"label_names", kMissingAttribute, "null", "type"};

constexpr std::pair<std::string_view, Direction> kDirections[] = {
    {"both", Direction::kBoth}, {"out", Direction::kOut}, {"in", Direction::kIn}};

template <typename... Args>
Status Invalid(fmt::format_string<Args...> text, Args&&... args) {
  return Status::InvalidArgument(fmt::format(text, std::forward<Args>(args)...));
}

/// Reads the members of an object of a schema. `where` names the object in messages.
class MemberReader {
 public:
  MemberReader(const JsonValue& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  /// Checks that the object has no members other than `known`.
  Status CheckNames(std::initializer_list<std::string_view> known) const {
    if (!object_.is_object()) return Invalid("{} is not a JSON object", where_);
    for (const JsonMember& member : object_.members())
      if (std::find(known.begin(), known.end(), member.name) == known.end())
        return Invalid("{} has the member \"{}\", but it can have {}", where_, member.name,
                       fmt::join(known, ", "));
    return Status::Ok();
  }

  Status Read(std::string_view name, bool& value) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    value = *found == JsonValue(true);
    return value || *found == JsonValue(false) ? Status::Ok() : Wrong(name, "true or false");
  }
  Status Read(std::string_view name, std::string& value) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    if (!found->is_string()) return Wrong(name, "a text");
    value = found->text();
    return Status::Ok();
  }
  Status Read(std::string_view name, std::uint64_t& value) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    if (!found->is_unsigned()) return Wrong(name, "a whole number");
    value = found->unsigned_number();
    return Status::Ok();
  }
  Status Read(std::string_view name, std::vector<std::string>& values) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    values.clear();
    for (const JsonValue& item : found->items()) {
      if (!item.is_string()) return Wrong(name, "a list of texts");
      values.push_back(item.text());
    }
    return found->is_array() ? Status::Ok() : Wrong(name, "a list of texts");
  }
  Status Read(std::string_view name,
              std::vector<std::pair<std::string, std::string>>& values) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    if (!found->is_object()) return Wrong(name, "a JSON object of texts");
    for (const JsonMember& member : found->members()) {
      if (!member.value.is_string()) return Wrong(name, "a JSON object of texts");
      values.emplace_back(member.name, member.value.text());
    }
    return Status::Ok();
  }
  Status Read(std::string_view name, DataType& value) const {
    std::string text(DataTypeName(value));
    RHIZOME_RETURN_IF_ERROR(Read(name, text));
    const auto parsed = ParseDataType(text);
    if (!parsed) return Invalid("{}: the dtype \"{}\" does not exist", where_, text);
    value = *parsed;
    return Status::Ok();
  }
  /// Reads one of several words.
  template <typename T, typename Words>
  Status Read(std::string_view name, const Words& words, T& value) const {
    std::string text;
    RHIZOME_RETURN_IF_ERROR(Read(name, text));
    if (text.empty() && object_.Find(name) == nullptr) return Status::Ok();
    std::string known;
    for (const auto& [word, meant] : words) {
      if (word == text) {
        value = meant;
        return Status::Ok();
      }
      known += fmt::format("{}\"{}\"", known.empty() ? "" : " or ", word);
    }
    return Invalid("{}: \"{}\" is \"{}\", but must be {}", where_, name, text, known);
  }
  /// Reads a list of objects: calls read(reader, value) for each.
  template <typename T, typename ReadOne>
  Status ReadList(std::string_view name, std::vector<T>& values, ReadOne&& read) const {
    const JsonValue* const found = object_.Find(name);
    if (found == nullptr) return Status::Ok();
    if (!found->is_array()) return Wrong(name, "a list of objects");
    for (const JsonValue& item : found->items()) {
      const MemberReader reader(item, fmt::format("{}, {} {}", where_, name, values.size()));
      RHIZOME_RETURN_IF_ERROR(read(reader, values.emplace_back()));
    }
    return Status::Ok();
  }
  Status Wrong(std::string_view name, std::string_view kind) const {
    return Invalid("{}: \"{}\" is not {}", where_, name, kind);
  }

 private:
  const JsonValue& object_;
  const std::string where_;
};

Status ReadAttribute(const MemberReader& in, EdgeAttributeSchema& attribute) {
  RHIZOME_RETURN_IF_ERROR(in.CheckNames({"name", "dtype", "dim", "attributes"}));
  RHIZOME_RETURN_IF_ERROR(in.Read("name", attribute.name));
  RHIZOME_RETURN_IF_ERROR(in.Read("dtype", attribute.dtype));
  RHIZOME_RETURN_IF_ERROR(in.Read("dim", attribute.dim));
  return in.Read("attributes", attribute.attributes);
}

Status ReadArray(const MemberReader& in, ArraySchema& array) {
  static const std::vector<std::pair<std::string_view, ArrayLayout>> layouts = {
      {ArrayLayoutName(ArrayLayout::kRow), ArrayLayout::kRow},
      {ArrayLayoutName(ArrayLayout::kChunk), ArrayLayout::kChunk}};
  RHIZOME_RETURN_IF_ERROR(in.CheckNames({"name", "dtype", "dim", "layout", "attributes"}));
  RHIZOME_RETURN_IF_ERROR(in.Read("name", array.name));
  RHIZOME_RETURN_IF_ERROR(in.Read("dtype", array.dtype));
  RHIZOME_RETURN_IF_ERROR(in.Read("dim", array.dim));
  RHIZOME_RETURN_IF_ERROR(in.Read("layout", layouts, array.layout));
  return in.Read("attributes", array.attributes);
}

Result<GraphSchema> Parse(std::string_view json) {
  static constexpr std::pair<std::string_view, bool> kIds[] = {{"integer", false}, {"text", true}};
  const auto parsed = ParseJson(json);
  if (!parsed) return Fail(Invalid("the schema is {}", parsed.error().message()));
  GraphSchema schema;
  const MemberReader in(*parsed, "the schema");
  RHIZOME_RETURN_IF_ERROR(
      in.CheckNames({"ids", "undirected", "directions", "weighted", "vertex_types", "edge_types",
                     "edge_attributes", "arrays"}));
  RHIZOME_RETURN_IF_ERROR(in.Read("ids", kIds, schema.text_ids));
  RHIZOME_RETURN_IF_ERROR(in.Read("undirected", schema.undirected));
  RHIZOME_RETURN_IF_ERROR(in.Read("directions", kDirections, schema.directions));
  RHIZOME_RETURN_IF_ERROR(in.Read("weighted", schema.weighted));
  RHIZOME_RETURN_IF_ERROR(in.Read("vertex_types", schema.vertex_types));
  RHIZOME_RETURN_IF_ERROR(in.Read("edge_types", schema.edge_types));
  RHIZOME_RETURN_IF_ERROR(in.ReadList("edge_attributes", schema.edge_attributes, ReadAttribute));
  RHIZOME_RETURN_IF_ERROR(in.ReadList("arrays", schema.arrays, ReadArray));
  return schema;
}

JsonValue ListOf(const std::vector<std::string>& texts) {
  JsonValue list = JsonValue::Array();
  for (const std::string& text : texts) list.Add(text);
  return list;
}

/// Returns the members that attributes of edges and arrays share.
template <typename Columns>
JsonValue ToJson(const Columns& columns) {
  JsonValue json = JsonValue::Object()
                       .With("name", columns.name)
                       .With("dtype", DataTypeName(columns.dtype))
                       .With("dim", columns.dim);
  if (columns.attributes.empty()) return json;
  JsonValue attributes = JsonValue::Object();
  for (const auto& [key, value] : columns.attributes) attributes.Set(key, value);
  json.Set("attributes", std::move(attributes));
  return json;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

/// Returns the facts that describe values, without those that only a store with texts can have.
Facts DescriptionsOf(const Facts& facts) {
  Facts kept;
  for (const auto& fact : facts) {
    const bool describes = std::ranges::find(kDescriptions, fact.first) != std::end(kDescriptions);
    if (describes && fact != Facts::value_type("type", "text")) kept.push_back(fact);
  }
  return kept;
}

/// Returns the name under which the schema has a stored array; nullopt if it has not.
std::optional<std::string> NameInSchema(const Manifest& manifest, const ArrayEntry& array) {
  const bool derived = IsOfEdges(array) || array.name.ends_with(kSidecarSuffix) ||
                       array.name.ends_with(kStaleSuffix) || OriginOf(array);
  if (derived || HomesOfArray(array).value_or(std::nullopt)) return std::nullopt;
  const auto version = SplitVersion(array.name);
  if (!version) return array.name;
  if (manifest.FindArray(version->first) != &array) return std::nullopt;
  return std::string(version->first);
}

}  // namespace

Result<GraphSchema> ParseSchema(std::string_view json) try { return Parse(json); } catch (...) {
  return Fail(StatusOfException());
}

std::string SchemaText(const GraphSchema& schema) {
  JsonValue attributes = JsonValue::Array();
  for (const EdgeAttributeSchema& attribute : schema.edge_attributes)
    attributes.Add(ToJson(attribute));
  JsonValue arrays = JsonValue::Array();
  for (const ArraySchema& array : schema.arrays)
    arrays.Add(ToJson(array).With("layout", ArrayLayoutName(array.layout)));
  const auto* const directions =
      std::find_if(std::begin(kDirections), std::end(kDirections),
                   [&](const auto& one) { return one.second == schema.directions; });
  return JsonValue::Object()
             .With("ids", schema.text_ids ? "text" : "integer")
             .With("undirected", schema.undirected)
             .With("directions", directions->first)
             .With("weighted", schema.weighted)
             .With("vertex_types", ListOf(schema.vertex_types))
             .With("edge_types", ListOf(schema.edge_types))
             .With("edge_attributes", std::move(attributes))
             .With("arrays", std::move(arrays))
             .Dump(2) +
         "\n";
}

GraphSchema SchemaOf(const GraphSnapshot& graph) {
  const GenerationInfo& info = graph.info();
  GraphSchema schema{.text_ids = info.id_kind == ExternalIdKind::kString,
                     .undirected = info.symmetric,
                     .weighted = info.weighted,
                     .directions = info.directions,
                     .vertex_types = graph.vertex_types(),
                     .edge_types = graph.edge_types()};
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes())
    schema.edge_attributes.push_back({.name = attribute.name,
                                      .dtype = attribute.dtype,
                                      .dim = attribute.dim,
                                      .attributes = DescriptionsOf(attribute.attributes)});
  const Manifest& manifest = graph.store().manifest();
  for (const ArrayEntry& array : manifest.arrays) {
    const auto name = NameInSchema(manifest, array);
    if (!name) continue;
    ArraySchema& one = schema.arrays.emplace_back();
    one = {.name = *name,
           .dtype = array.dtype,
           .dim = array.dim,
           .layout = array.layout,
           .attributes = DescriptionsOf(array.attributes)};
  }
  return schema;
}

}  // namespace rhizome
