#include "cache/feed/class_names.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {

void SetClassNames(const std::vector<std::string>& names, TensorFile& file) {
  if (names.empty()) return;
  std::string json = nlohmann::json(names).dump();
  // The header of a model file is JSON, which contains this JSON as a string.
  if (nlohmann::json(json).dump().size() <= kMaxClassNameBytes)
    file.metadata[kClassesMetadataKey] = std::move(json);
}

std::vector<std::string> ClassNamesOf(const TensorFile& file) {
  const auto found = file.metadata.find(kClassesMetadataKey);
  if (found == file.metadata.end()) return {};
  const nlohmann::json json = ParseUntrustedJson(found->second);
  std::vector<std::string> names;
  if (!json.is_array()) return names;
  for (const nlohmann::json& name : json) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::string ShownClass(const std::vector<std::string>& names, std::size_t label) {
  return label < names.size() ? fmt::format("'{}'", names[label]) : fmt::format("{}", label);
}

}  // namespace internal
}  // namespace rhizome
