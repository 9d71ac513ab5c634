#include "tools/import/stored_texts.h"

#include <cstring>
#include <utility>
#include <vector>

#include "storage/array/array_facts.h"
#include "tools/import/elements.h"

namespace rhizome {
namespace {

std::vector<std::int64_t> CodesOf(std::span<const std::byte> row) {
  std::vector<std::int64_t> codes(row.size() / sizeof(std::int64_t));
  std::memcpy(codes.data(), row.data(), codes.size() * sizeof(std::int64_t));
  return codes;
}

}  // namespace

Result<const TextValues*> StoredTexts::Of(const std::string& array) {
  auto& texts = open_[array];
  if (texts == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(texts, TextValues::Open(graph_, array));
  }
  return texts.get();
}

Result<Json> StoredTexts::RowJson(const ArrayEntry& entry, std::span<const std::byte> row) {
  if (!HasTexts(entry)) return ToJson(ElementType(entry), row);
  RHIZOME_ASSIGN_OR_RETURN(const TextValues* const texts, Of(entry.name));
  const std::vector<std::int64_t> codes = CodesOf(row);
  RHIZOME_ASSIGN_OR_RETURN(auto found, texts->TextsOf(codes));
  Json values = Json::array();
  for (std::size_t i = 0; i < codes.size(); ++i)
    values.push_back(codes[i] == -1 ? Json() : Json(std::move(found[i])));
  return values;
}

}  // namespace rhizome
