#include "tools/import/stored_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "tools/import/elements.h"

namespace rhizome {
namespace {

std::vector<std::int64_t> CodesOf(std::span<const std::byte> row) {
  std::vector<std::int64_t> codes(row.size() / sizeof(std::int64_t));
  std::memcpy(codes.data(), row.data(), codes.size() * sizeof(std::int64_t));
  return codes;
}

/// Lists the first texts, for messages.
Result<std::string> Listed(const TextValues& texts) {
  constexpr std::uint64_t kShown = 8;
  std::vector<std::int64_t> codes(std::min(texts.size(), kShown));
  std::iota(codes.begin(), codes.end(), std::int64_t{0});
  RHIZOME_ASSIGN_OR_RETURN(const auto shown, texts.TextsOf(codes));
  std::string list;
  for (const std::string& text : shown)
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", text);
  return texts.size() > kShown ? list + ", ..." : list;
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

Result<std::int64_t> StoredTexts::CodeOf(const ArrayEntry& entry, std::string_view text) {
  RHIZOME_ASSIGN_OR_RETURN(const TextValues* const texts, Of(entry.name));
  RHIZOME_ASSIGN_OR_RETURN(const auto code, texts->CodeOf(text));
  if (code) return *code;
  RHIZOME_ASSIGN_OR_RETURN(const std::string known, Listed(*texts));
  return Fail(Status::InvalidArgument(
      fmt::format("'{}' is not one of the {} texts of '{}' ({}); an ingestion defines the texts of "
                  "an array: ingest again with a line that has it",
                  text, texts->size(), ShownName(entry.name), known)));
}

}  // namespace rhizome
