#include "index/delta/batch_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/text_files.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::string_view kLabelArray = "label";

/// Returns the name of an array, or of the edge attribute that it is a part of.
std::string NameOf(const ArrayEntry& array) {
  return IsOfEdges(array) ? array.name.substr(0, array.name.rfind('.')) : ShownName(array.name);
}

bool IsOfClasses(const ArrayEntry& array) {
  const auto version = SplitVersion(array.name);
  return !IsOfEdges(array) && (version ? version->first : array.name) == kLabelArray;
}

}  // namespace

BatchTexts::BatchTexts(const Store& store, const GraphParts& parts,
                       std::shared_ptr<const Delta> before, OpenDictionaries& dictionaries,
                       DeltaRunBuilder& builder)
    : store_(store),
      parts_(parts),
      before_(std::move(before)),
      dictionaries_(dictionaries),
      builder_(builder) {
  for (const EdgeAttributeInfo& attribute : parts_.edge_attributes) {
    const ArrayEntry* array = FindStoredArray(store.manifest().arrays, attribute.name + ".p0000");
    of_attribute_.push_back(array != nullptr && HasTexts(*array) ? array : nullptr);
    any_attribute_ = any_attribute_ || of_attribute_.back() != nullptr;
  }
}

Status BatchTexts::Find(const WriteBatch& batch) {
  std::unordered_map<const ArrayEntry*, std::vector<std::string_view>> wanted;
  for (const WriteBatch::Operation& operation : batch.operations()) {
    for (std::size_t a = 0; a < of_attribute_.size() && !operation.attributes.empty(); ++a) {
      const std::uint64_t value = parts_.edge_attributes[a].first_value;
      if (of_attribute_[a] == nullptr || value >= operation.attributes.size()) continue;
      const std::string* const text = operation.attributes[value].text();
      if (text != nullptr) wanted[of_attribute_[a]].push_back(*text);
    }
    if (operation.kind != WriteBatch::Kind::kPutTexts) continue;
    const ArrayEntry* const array = store_.manifest().FindArray(operation.name);
    if (array == nullptr || !HasTexts(*array) || IsOfEdges(*array)) continue;
    auto& texts = wanted[array];
    texts.insert(texts.end(), operation.texts.begin(), operation.texts.end());
  }
  for (auto& [array, texts] : wanted) {
    RHIZOME_ASSIGN_OR_RETURN(Dictionary* const dictionary, Open(*array));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    for (const std::string_view text : texts) {
      RHIZOME_ASSIGN_OR_RETURN(dictionary->found[text], dictionary->before->CodeOf(text));
    }
  }
  return Status::Ok();
}

Result<BatchTexts::Dictionary*> BatchTexts::Open(const ArrayEntry& array) {
  Dictionary& dictionary = open_[&array];
  if (dictionary.before == nullptr) {
    dictionary.id = TextsIdOf(store_.manifest(), array);
    RHIZOME_ASSIGN_OR_RETURN(auto stored, dictionaries_.Of(store_, array));
    RHIZOME_ASSIGN_OR_RETURN(dictionary.before,
                             GraphTexts::Open(store_, array, before_, std::move(stored)));
  }
  return &dictionary;
}

Result<std::int64_t> BatchTexts::CodeOf(const ArrayEntry& array, const std::string& text) {
  if (text.empty()) return -1;
  RHIZOME_ASSIGN_OR_RETURN(Dictionary* const dictionary, Open(array));
  if (const auto own = dictionary->added.find(text); own != dictionary->added.end())
    return own->second;
  auto found = dictionary->found.find(text);
  if (found == dictionary->found.end()) {
    RHIZOME_ASSIGN_OR_RETURN(const auto code, dictionary->before->CodeOf(text));
    found = dictionary->found.emplace(text, code).first;
  }
  if (found->second) return *found->second;
  RHIZOME_RETURN_IF_ERROR(CheckNew(array, *dictionary, text));
  const auto code = static_cast<std::int64_t>(dictionary->size());
  builder_.AddText(dictionary->id, code, text);
  dictionary->added.emplace(text, code);
  return code;
}

Status BatchTexts::CheckNew(const ArrayEntry& array, const Dictionary& dictionary,
                            const std::string& text) const {
  const std::string name = NameOf(array);
  RHIZOME_RETURN_IF_ERROR(CheckText(fmt::format("the text given for '{}'", name), text));
  if (dictionary.size() >= kMaxTexts)
    return Status::InvalidArgument(
        fmt::format("'{}' would have more than {} texts", name, kMaxTexts));
  if (!IsOfClasses(array)) return Status::Ok();
  std::vector<std::int64_t> codes(std::min<std::uint64_t>(dictionary.size(), 8));
  std::iota(codes.begin(), codes.end(), std::int64_t{0});
  RHIZOME_ASSIGN_OR_RETURN(const auto classes, dictionary.before->TextsOf(codes));
  return Status::InvalidArgument(
      fmt::format("'{}' is not one of the {} classes of '{}' ('{}'{}); models are trained for "
                  "these classes, so "
                  "updates cannot add one: ingest again with a line that has it",
                  text, dictionary.size(), name, fmt::join(classes, "', '"),
                  dictionary.size() > codes.size() ? ", ..." : ""));
}

Status BatchTexts::CheckCode(const ArrayEntry& array, std::int64_t code) {
  RHIZOME_ASSIGN_OR_RETURN(const Dictionary* const dictionary, Open(array));
  if (code == -1 || (code >= 0 && static_cast<std::uint64_t>(code) < dictionary->size()))
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("code {} of '{}' has no text; codes are in [0, {}), or -1 (none)", code,
                  NameOf(array), dictionary->size()));
}

}  // namespace internal
}  // namespace rhizome
