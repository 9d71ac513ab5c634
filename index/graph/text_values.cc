#include "rhizome/text_values.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "index/delta/graph_texts.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/exceptions.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxClassNames = std::uint64_t{1} << 20;

/// Finds the array of codes: by name or reference, or as the first part of an edge attribute.
const ArrayEntry* FindCodes(const Manifest& manifest, std::string_view name) {
  if (const ArrayEntry* array = manifest.FindArray(name)) return array;
  return FindStoredArray(manifest.arrays, fmt::format("{}.p0000", name));
}

/// Returns the names in the attribute kLabelNamesAttribute. The contents of a store are untrusted:
/// names that do not parse are ignored.
std::vector<std::string> NamesInAttribute(const ArrayEntry& array) {
  std::vector<std::string> names;
  for (const auto& [key, value] : array.attributes) {
    if (key != kLabelNamesAttribute) continue;
    const nlohmann::json list = ParseUntrustedJson(value);
    if (!list.is_array()) continue;
    for (const nlohmann::json& name : list)
      names.push_back(name.is_string() ? name.get<std::string>() : std::string());
  }
  return names;
}

}  // namespace

class TextValues::Impl {
 public:
  std::shared_ptr<const GraphSnapshot> graph;
  ArrayEntry codes;
  std::shared_ptr<const GraphTexts> texts;
};

TextValues::TextValues(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TextValues::~TextValues() = default;
std::uint64_t TextValues::size() const { return impl_->texts->size(); }

Result<std::shared_ptr<const TextValues>> TextValues::OpenIfAny(const Graph& graph,
                                                                std::string_view array) try {
  auto impl = std::make_unique<Impl>();
  impl->graph = graph.Snapshot();
  const Store& store = impl->graph->store();
  const ArrayEntry* codes = FindCodes(store.manifest(), array);
  if (codes == nullptr) return nullptr;
  RHIZOME_ASSIGN_OR_RETURN(impl->texts, GraphTexts::Open(store, *codes, impl->graph->delta()));
  if (impl->texts == nullptr) return nullptr;
  impl->codes = *codes;
  return std::shared_ptr<const TextValues>(new TextValues(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::shared_ptr<const TextValues>> TextValues::Open(const Graph& graph,
                                                           std::string_view array) try {
  RHIZOME_ASSIGN_OR_RETURN(auto texts, OpenIfAny(graph, array));
  if (texts != nullptr) return texts;
  const auto snapshot = graph.Snapshot();
  if (FindCodes(snapshot->store().manifest(), array) == nullptr) {
    const auto opened = snapshot->store().OpenArray(array);  // its message lists the arrays
    if (!opened) return Fail(opened.error());
  }
  return Fail(
      Status::InvalidArgument(fmt::format("the array '{}' holds numbers, not texts", array)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::string> TextValues::TextOf(std::int64_t code) const try {
  RHIZOME_ASSIGN_OR_RETURN(auto texts, TextsOf(std::span(&code, 1)));
  return std::move(texts.front());
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> TextValues::TextsOf(std::span<const std::int64_t> codes) const
    try {
  return impl_->texts->TextsOf(codes);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> TextValues::TextsOfVertices(
    std::span<const VertexId> vertices) const try {
  if (IsOfEdges(impl_->codes) || impl_->codes.dim != 1)
    return Fail(Status::InvalidArgument(fmt::format(
        "the array '{}' does not have one text for each vertex", ShownName(impl_->codes.name))));
  std::vector<std::int64_t> codes(vertices.size());
  RHIZOME_RETURN_IF_ERROR(impl_->graph->ReadRows(impl_->codes.name, vertices,
                                                 std::as_writable_bytes(std::span(codes))));
  return TextsOf(codes);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> TextValues::All(std::uint64_t max_texts) const try {
  if (size() > max_texts)
    return Fail(Status::InvalidArgument(
        fmt::format("the array '{}' has {} texts, more than {}; look up those that are needed",
                    ShownName(impl_->codes.name), size(), max_texts)));
  std::vector<std::int64_t> codes(size());
  std::iota(codes.begin(), codes.end(), std::int64_t{0});
  return TextsOf(codes);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::optional<std::int64_t>> TextValues::CodeOf(std::string_view text) const try {
  if (text.empty()) return std::optional<std::int64_t>(-1);
  return impl_->texts->CodeOf(text);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<std::string>> ReadClassNames(const Graph& graph, std::string_view labels) try {
  RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::OpenIfAny(graph, labels));
  if (texts != nullptr && texts->size() <= kMaxClassNames) return texts->All(kMaxClassNames);
  const auto snapshot = graph.Snapshot();
  const ArrayEntry* array = snapshot->store().manifest().FindArray(labels);
  return array == nullptr ? std::vector<std::string>() : NamesInAttribute(*array);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
