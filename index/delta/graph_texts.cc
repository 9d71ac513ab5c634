#include "index/delta/graph_texts.h"

#include <fmt/format.h>

#include <utility>

#include "index/delta/graph_parts.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {

TextsId TextsIdOf(const Manifest& manifest, const ArrayEntry& array) {
  if (!IsOfEdges(array)) return array.array_id;
  const std::string attribute = array.name.substr(0, array.name.rfind('.'));
  TextsId position = 0;
  for (const EdgeAttributeInfo& info : EdgeAttributesOf(manifest)) {
    if (info.name == attribute) break;
    ++position;
  }
  return kEdgeTexts + position;
}

Result<std::shared_ptr<const GraphTexts>> GraphTexts::Open(const Store& store,
                                                           const ArrayEntry& array,
                                                           std::shared_ptr<const Delta> delta) {
  RHIZOME_ASSIGN_OR_RETURN(auto dictionary, TextDictionary::Open(store, array));
  if (dictionary == nullptr) return nullptr;
  return Open(store, array, std::move(delta), std::move(dictionary));
}

Result<std::shared_ptr<const GraphTexts>> GraphTexts::Open(
    const Store& store, const ArrayEntry& array, std::shared_ptr<const Delta> delta,
    std::shared_ptr<const TextDictionary> dictionary) {
  std::shared_ptr<GraphTexts> texts(new GraphTexts);
  texts->name_ = ShownName(array.name);
  texts->id_ = TextsIdOf(store.manifest(), array);
  texts->size_ = dictionary->size();
  if (const auto first = delta->FirstText(texts->id_)) {
    if (static_cast<std::uint64_t>(*first) != dictionary->size())
      return Fail(Status::Corruption(
          fmt::format("array '{}': commits add texts from code {} on, but its dictionary has {}",
                      texts->name_, *first, dictionary->size())));
    texts->size_ = static_cast<std::uint64_t>(delta->EndOfTexts(texts->id_).value_or(*first));
  }
  texts->dictionary_ = std::move(dictionary);
  texts->delta_ = std::move(delta);
  return std::shared_ptr<const GraphTexts>(std::move(texts));
}

Result<std::vector<std::string>> GraphTexts::TextsOf(std::span<const std::int64_t> codes) const {
  const auto stored = static_cast<std::int64_t>(dictionary_->size());
  std::vector<std::int64_t> in_dictionary(codes.begin(), codes.end());
  std::vector<std::size_t> in_delta;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < -1 || codes[i] >= static_cast<std::int64_t>(size_))
      return Fail(Status::InvalidArgument(fmt::format(
          "code {} of the array '{}' has no text; there are {}", codes[i], name_, size_)));
    if (codes[i] < stored) continue;
    in_delta.push_back(i);
    in_dictionary[i] = -1;
  }
  RHIZOME_ASSIGN_OR_RETURN(auto texts, dictionary_->TextsOf(in_dictionary));
  for (const std::size_t i : in_delta) texts[i] = *delta_->TextOf(id_, codes[i]);
  return texts;
}

Result<std::optional<std::int64_t>> GraphTexts::CodeOf(std::string_view text) const {
  if (const auto code = delta_->FindText(id_, text)) return code;
  return dictionary_->CodeOf(text);
}

Result<std::shared_ptr<const TextDictionary>> OpenDictionaries::Of(const Store& store,
                                                                   const ArrayEntry& array) {
  auto& dictionary = open_[TextsIdOf(store.manifest(), array)];
  if (dictionary == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(dictionary, TextDictionary::Open(store, array));
  }
  return dictionary;
}

}  // namespace internal
}  // namespace rhizome
