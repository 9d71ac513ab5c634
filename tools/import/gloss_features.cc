#include "tools/import/gloss_features.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "storage/base/hash.h"
#include "storage/base/mix.h"

namespace rhizome {
namespace {

using DocumentCounts = std::unordered_map<std::string, std::uint64_t>;
// sorted, so that sums are added in a fixed order
using WordCounts = std::map<std::string, std::uint64_t>;

WordCounts CountWords(std::string_view text) {
  WordCounts counts;
  for (std::string& word : WordsOf(text)) ++counts[std::move(word)];
  return counts;
}

std::uint64_t HashWord(std::string_view word) {
  const Hash128 hash = Xxh3(std::as_bytes(std::span(word)));
  std::uint64_t value = 0;
  std::memcpy(&value, hash.data(), sizeof(value));
  return value;
}

void FillRow(const WordCounts& counts, const DocumentCounts& documents, std::size_t texts,
             std::span<float> row) {
  std::vector<double> sums(row.size(), 0);
  for (const auto& [word, count] : counts) {
    const auto with_word = static_cast<double>(documents.at(word));
    const double rarity = std::log((static_cast<double>(texts) + 1) / (with_word + 1));
    const double value = (1 + std::log(static_cast<double>(count))) * rarity;
    const std::uint64_t hash = HashWord(word);
    sums[ScaleTo(Mix64(hash), row.size())] += (hash & 1) != 0 ? value : -value;
  }
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  if (squares == 0) return;
  const double scale = 1 / std::sqrt(squares);
  for (std::size_t c = 0; c < row.size(); ++c) row[c] = static_cast<float>(sums[c] * scale);
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (word.size() >= 2) words.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z')
      word.push_back(static_cast<char>(c - 'A' + 'a'));
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      word.push_back(c);
    else
      finish();
  }
  finish();
  return words;
}

std::vector<float> HashTexts(std::span<const std::string_view> texts, std::uint64_t dim) {
  DocumentCounts documents;
  for (const std::string_view text : texts)
    for (const auto& entry : CountWords(text)) ++documents[entry.first];
  std::vector<float> rows(texts.size() * dim);
  for (std::size_t i = 0; i < texts.size(); ++i)
    FillRow(CountWords(texts[i]), documents, texts.size(), std::span(rows).subspan(i * dim, dim));
  return rows;
}

}  // namespace rhizome
