// Resolves a batch, operation by operation. Each operation checks its arguments, looks up its
// vertices in the batch, the delta and the generation, adds missing vertices and types if the
// options allow it, and records the change in a DeltaRunBuilder.

#include "index/delta/batch_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "index/delta/type_facts.h"
#include "index/homes/home_array.h"
#include "index/input/number.h"
#include "index/topology/id_limit.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/type_names.h"
#include "storage/base/mutant.h"
#include "storage/base/utf8.h"

namespace rhizome {
inline namespace internal {

namespace {

template <typename... Args>
Status Invalid(fmt::format_string<Args...> text, Args&&... args) {
  return Status::InvalidArgument(fmt::format(text, std::forward<Args>(args)...));
}

std::string_view KindName(WriteBatch::Kind kind) {
  switch (kind) {
    case WriteBatch::Kind::kPutVertex:
      return "put vertex";
    case WriteBatch::Kind::kDeleteVertex:
      return "delete vertex";
    case WriteBatch::Kind::kPutEdge:
      return "put edge";
    case WriteBatch::Kind::kUpsertEdge:
      return "upsert edge";
    case WriteBatch::Kind::kDeleteEdge:
      return "delete edge";
    case WriteBatch::Kind::kPutTexts:
      return "put texts";
    default:
      return "put row";
  }
}

// Returns the number of a name: of the schema, or one that the batch has added. `numbers` has the
// names that the batch has used.
std::optional<TypeId> NumberOf(const std::string& name, const std::vector<std::string>& schema,
                               std::unordered_map<std::string, TypeId>& numbers) {
  if (const auto known = numbers.find(name); known != numbers.end()) return known->second;
  const auto at = std::find(schema.begin(), schema.end(), name);
  if (at == schema.end()) return std::nullopt;
  return numbers[name] = static_cast<TypeId>(at - schema.begin());
}

Status UnknownType(std::string_view what, const std::string& name,
                   const std::vector<std::string>& schema) {
  return Invalid("{} type '{}' does not exist; existing types: {}. With `create_types` it is added",
                 what, name, ListOfNames(schema));
}

}  // namespace

BatchResolver::BatchResolver(const Store& store, const GraphParts& parts,
                             std::shared_ptr<const Delta> before, OpenDictionaries& dictionaries,
                             const WriteOptions& options)
    : store_(store),
      parts_(parts),
      delta_(*before),
      options_(options),
      builder_(delta_.symmetric(),
               static_cast<std::uint32_t>(EdgeValueCount(parts.edge_attributes)),
               static_cast<VertexId>(delta_.vertices())),
      texts_(store, parts, std::move(before), dictionaries, builder_) {}

// Applies the operations in order to the builder. The first operation that fails ends the batch;
// the message has its place and its vertex.
Status BatchResolver::Resolve(const WriteBatch& batch) {
  RHIZOME_RETURN_IF_ERROR(texts_.Find(batch));
  const auto operations = batch.operations();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Status status = Apply(operations[i]);
    if (!status.ok())
      return status.WithContext(fmt::format(
          "{} ({} {})", options_.place ? options_.place(i) : fmt::format("operation {}", i),
          KindName(operations[i].kind), ToString(operations[i].id)));
  }
  return Status::Ok();
}

Status BatchResolver::Apply(const Operation& operation) {
  switch (operation.kind) {
    case WriteBatch::Kind::kPutVertex:
      return PutVertex(operation);
    case WriteBatch::Kind::kDeleteVertex: {
      RHIZOME_ASSIGN_OR_RETURN(ExternalId id, OwnKind(operation.id));
      if (const auto vertex = Find(id)) {
        builder_.DeleteVertex(*vertex);
        own_ids_[std::move(id)] = std::nullopt;
      }
      return Status::Ok();
    }
    case WriteBatch::Kind::kPutEdge:
    case WriteBatch::Kind::kUpsertEdge:
      return PutEdge(operation);
    case WriteBatch::Kind::kDeleteEdge:
      return DeleteEdge(operation);
    case WriteBatch::Kind::kPutTexts:
      return PutTexts(operation);
    default:
      return PutRow(operation);
  }
}

Status BatchResolver::PutVertex(const Operation& operation) {
  RHIZOME_ASSIGN_OR_RETURN(ExternalId id, OwnKind(operation.id));
  RHIZOME_ASSIGN_OR_RETURN(const TypeId type, VertexType(operation.name));
  if (Find(id)) return Status::Ok();
  own_ids_[id] = builder_.AddVertex(id, type);
  return Status::Ok();
}

Status BatchResolver::PutEdge(const Operation& operation) {
  RHIZOME_ASSIGN_OR_RETURN(const TypeId type, EdgeType(operation.name));
  if (!std::isfinite(operation.weight)) return Invalid("the weight is not finite");
  if (!parts_.info().weighted && operation.weight != 1)
    return Invalid(
        "a weight was given, but the edges of this store have none; alter the store to have "
        "weights, or leave them out");
  const std::uint64_t values = EdgeValueCount(parts_.edge_attributes);
  if (!operation.attributes.empty() && operation.attributes.size() != values)
    return Invalid("{} values of edge attributes were given, but an edge of this store has {}",
                   operation.attributes.size(), values);
  RHIZOME_ASSIGN_OR_RETURN(const auto bits, AttributeBits(operation.attributes));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId src, FindOrAdd(operation.id));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId dst, FindOrAdd(operation.dst));
  if (operation.kind == WriteBatch::Kind::kUpsertEdge) builder_.EraseEdges(src, dst, type);
  builder_.AddEdge(src, dst, type, operation.weight, bits);
  return Status::Ok();
}

// Converts attribute values to the representation of the delta. An empty list means zeros, or no
// texts.
Result<std::vector<std::int64_t>> BatchResolver::AttributeBits(std::span<const EdgeValue> values) {
  std::vector<std::int64_t> bits;
  if (values.empty() && !texts_.any_attribute()) return bits;
  const std::vector<EdgeValue> none(values.empty() ? EdgeValueCount(parts_.edge_attributes) : 0);
  if (values.empty()) values = none;
  bits.reserve(values.size());
  for (std::size_t a = 0; a < parts_.edge_attributes.size(); ++a) {
    const EdgeAttributeInfo& attribute = parts_.edge_attributes[a];
    for (std::uint64_t i = 0; i < attribute.dim; ++i) {
      RHIZOME_ASSIGN_OR_RETURN(bits.emplace_back(), BitsOf(a, values[attribute.first_value + i]));
    }
  }
  return bits;
}

Result<std::int64_t> BatchResolver::BitsOf(std::size_t attribute, const EdgeValue& value) {
  const EdgeAttributeInfo& info = parts_.edge_attributes[attribute];
  const ArrayEntry* const texts = texts_.OfAttribute(attribute);
  if (texts != nullptr && !value.given()) return -1;
  if (texts != nullptr && value.text() != nullptr) return texts_.CodeOf(*texts, *value.text());
  const auto kept = value.BitsAs(info.dtype);
  if (!kept)
    return Fail(Invalid("the edge attribute '{}' is {}, but a {} was given that it cannot hold",
                        info.name, DataTypeName(info.dtype), value.type_name()));
  if (info.dtype == DataType::kFloat32)
    if (const auto reason = LostInFloat32(std::bit_cast<double>(*kept)))
      return Fail(Invalid("a value of the edge attribute '{}', {}, {}", info.name,
                          std::bit_cast<double>(*kept), *reason));
  if (texts != nullptr) RHIZOME_RETURN_IF_ERROR(texts_.CheckCode(*texts, *kept));
  return *kept;
}

Status BatchResolver::DeleteEdge(const Operation& operation) {
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId src_id, OwnKind(operation.id));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId dst_id, OwnKind(operation.dst));
  const auto type = operation.name.empty()
                        ? std::optional<TypeId>(0)
                        : NumberOf(operation.name, delta_.edge_types(), edge_types_);
  // A change feed deletes edges of a type that the follower never had, if they came and went.
  if (!type && options_.create_types) return Status::Ok();
  if (!type) return UnknownType("edge", operation.name, delta_.edge_types());
  const auto src = Find(src_id);
  const auto dst = Find(dst_id);
  if (src && dst) builder_.EraseEdges(*src, *dst, *type);
  return Status::Ok();
}

Result<const ArrayEntry*> BatchResolver::FindArray(const std::string& name) const {
  const ArrayEntry* array = store_.manifest().FindArray(name);
  if (array == nullptr || array->name.ends_with(kSidecarSuffix)) {
    // The store's own error message lists the existing arrays.
    const auto opened = store_.OpenArray(name);
    return Fail(Invalid("{}", opened ? "this array holds checksums" : opened.error().message()));
  }
  if (IsOfEdges(*array))
    return Fail(Invalid("array '{}' has a row for each edge", ShownName(array->name)));
  return array;
}

Status BatchResolver::PutTexts(const Operation& operation) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry* const array, FindArray(operation.name));
  if (!HasTexts(*array))
    return Invalid("array '{}' holds numbers ({}), but texts were given", ShownName(array->name),
                   DataTypeName(array->dtype));
  if (operation.texts.size() != array->dim)
    return Invalid("{} texts were given, but a row of array '{}' has {}", operation.texts.size(),
                   ShownName(array->name), array->dim);
  std::vector<std::int64_t> codes;
  for (const std::string& text : operation.texts) {
    RHIZOME_ASSIGN_OR_RETURN(codes.emplace_back(), texts_.CodeOf(*array, text));
  }
  const auto bytes = std::as_bytes(std::span(codes));
  return AddRow(operation, *array, row_bytes_.emplace_back(bytes.begin(), bytes.end()));
}

Status BatchResolver::PutRow(const Operation& operation) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry* const array, FindArray(operation.name));
  const std::string_view dtype = DataTypeName(array->dtype);
  const bool other_type = !operation.row_type.empty() && operation.row_type != dtype;
  if (other_type && !RHIZOME_MUTANT("the type of a row is not checked"))
    return Invalid("array '{}' is {}, but the row given is {}; rows are not converted{}",
                   ShownName(array->name), dtype, operation.row_type,
                   array->dtype == DataType::kFloat16 ? "; give the bytes of float16" : "");
  if (operation.row.size() != array->row_bytes())
    return Invalid("the row given has {} bytes, but a row of array '{}' has {} x {} = {} bytes",
                   operation.row.size(), ShownName(array->name), array->dim,
                   DataTypeName(array->dtype), array->row_bytes());
  RHIZOME_ASSIGN_OR_RETURN(const auto homes, HomesOfArray(*array));
  if (homes) {
    std::int32_t home = kNoHome;
    std::memcpy(&home, operation.row.data(), sizeof(home));
    if (!homes->Allows(home))
      return Invalid("home {} is neither in [0, {}) nor -1 (none)", home, homes->homes);
  }
  if (HasTexts(*array)) {
    std::vector<std::int64_t> codes(array->dim);
    std::memcpy(codes.data(), operation.row.data(), operation.row.size());
    for (const std::int64_t code : codes) RHIZOME_RETURN_IF_ERROR(texts_.CheckCode(*array, code));
  }
  return AddRow(operation, *array, operation.row);
}

Status BatchResolver::AddRow(const Operation& operation, const ArrayEntry& array,
                             std::span<const std::byte> row) {
  // A vertex that the row adds has the type of a bound array.
  const auto bound = TypeNamed(delta_.vertex_types(), BoundType(array));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, FindOrAdd(operation.id, bound.value_or(0)));
  if (bound && TypeOf(vertex) != *bound) return OtherType(operation, array, TypeOf(vertex));
  builder_.PutRow(array.array_id, vertex);
  rows_.push_back({array.array_id, vertex, row});
  return Status::Ok();
}

TypeId BatchResolver::TypeOf(VertexId vertex) const {
  const auto v = static_cast<std::uint64_t>(vertex);
  if (v < delta_.vertices()) return TypeOfVertex(parts_.order, delta_, vertex);
  return builder_.pending().vertex_types[v - delta_.vertices()];
}

Status BatchResolver::OtherType(const Operation& operation, const ArrayEntry& array,
                                TypeId type) const {
  const auto& known = delta_.vertex_types();
  const auto& added = builder_.pending().new_vertex_types;
  return Invalid("vertex '{}' has the type '{}', but array '{}' has rows of the type '{}' only",
                 ToString(operation.id),
                 type < known.size() ? known[type] : added[type - known.size()],
                 ShownName(array.name), BoundType(array));
}

Result<ExternalId> BatchResolver::OwnKind(const ExternalId& given) const {
  auto id = parts_.OwnKind(given);
  if (!id)
    return Fail(
        Invalid("id '{}' is not an integer, but this store has integer ids", ToString(given)));
  const auto* text = std::get_if<std::string>(&*id);
  if (text != nullptr && (text->empty() || text->size() > kMaxIdBytes || !IsUtf8(*text)))
    return Fail(Invalid("an id must have 1 to {} bytes of UTF-8, but one has {} bytes{}",
                        kMaxIdBytes, text->size(), IsUtf8(*text) ? "" : " that are not UTF-8"));
  return *std::move(id);
}

std::optional<VertexId> BatchResolver::Find(const ExternalId& id) const {
  if (const auto own = own_ids_.find(id); own != own_ids_.end()) return own->second;
  return parts_.Find(id, delta_);
}

Result<VertexId> BatchResolver::FindOrAdd(const ExternalId& given, TypeId type_of_added) {
  RHIZOME_ASSIGN_OR_RETURN(ExternalId id, OwnKind(given));
  if (const auto vertex = Find(id)) return *vertex;
  if (!options_.create_vertices)
    return Fail(Status::NotFound(
        fmt::format("there is no vertex with the external id \"{}\"", ToString(id))));
  const VertexId vertex = builder_.AddVertex(id, type_of_added);
  own_ids_[std::move(id)] = vertex;
  return vertex;
}

Result<TypeId> BatchResolver::EdgeType(const std::string& name) {
  if (name.empty()) return TypeId{0};
  const auto& added = builder_.pending().new_edge_types;
  if (const auto type = NumberOf(name, delta_.edge_types(), edge_types_)) return *type;
  if (!options_.create_types) return Fail(UnknownType("edge", name, delta_.edge_types()));
  RHIZOME_RETURN_IF_ERROR(CheckTypeName("edge type", name));
  const std::size_t number = delta_.edge_types().size() + added.size();
  if (number >= kMaxTypes)
    return Fail(Invalid("there would be more than {} edge types", kMaxTypes));
  builder_.AddEdgeType(name);
  return edge_types_[name] = static_cast<TypeId>(number);
}

Result<TypeId> BatchResolver::VertexType(const std::string& name) {
  if (name.empty()) return TypeId{0};
  const auto& added = builder_.pending().new_vertex_types;
  if (const auto type = NumberOf(name, delta_.vertex_types(), vertex_types_)) return *type;
  if (!options_.create_types) return Fail(UnknownType("vertex", name, delta_.vertex_types()));
  RHIZOME_RETURN_IF_ERROR(CheckTypeName("vertex type", name));
  const std::size_t number = delta_.vertex_types().size() + added.size();
  if (number >= kMaxTypes)
    return Fail(Invalid("there would be more than {} vertex types", kMaxTypes));
  builder_.AddVertexType(name);
  return vertex_types_[name] = static_cast<TypeId>(number);
}

}  // namespace internal
}  // namespace rhizome
