#include "tools/verbs/update_target.h"

#include <fmt/format.h>

#include <utility>

namespace rhizome {
namespace {

std::optional<std::string> NullOf(
    const std::vector<std::pair<std::string, std::string>>& attributes) {
  for (const auto& [key, value] : attributes)
    if (key == "null") return value;
  return std::nullopt;
}

}  // namespace

UpdateTarget::UpdateTarget(std::shared_ptr<const GraphSnapshot> graph)
    : graph_(std::move(graph)), edge_attributes_(graph_->edge_attributes()) {}

UpdateTarget::UpdateTarget(const GraphSchema& schema) {
  std::uint64_t values = 0;
  // A store has its attributes in the order of their names.
  std::map<std::string, const EdgeAttributeSchema*> by_name;
  for (const EdgeAttributeSchema& attribute : schema.edge_attributes)
    by_name[attribute.name] = &attribute;
  for (const auto& [name, attribute] : by_name) {
    edge_attributes_.push_back(
        {.name = name, .dtype = attribute->dtype, .dim = attribute->dim, .first_value = values});
    values += attribute->dim;
  }
  for (const ArraySchema& array : schema.arrays)
    arrays_[array.name] = {array.dtype, array.dim, NullOf(array.attributes)};
}

Result<const UpdateTarget::Columns*> UpdateTarget::Find(const std::string& array) {
  if (const auto found = arrays_.find(array); found != arrays_.end()) return &found->second;
  if (graph_ == nullptr)
    return Fail(Status::NotFound(
        fmt::format("the new store would have no array '{}'; give its schema by --schema", array)));
  const ArrayEntry* const entry = graph_->store().manifest().FindArray(array);
  if (entry == nullptr) return Fail(graph_->store().OpenArray(array).error());
  return &(arrays_[array] = {entry->dtype, entry->dim, NullOf(entry->attributes)});
}

}  // namespace rhizome
