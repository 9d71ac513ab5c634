#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Returns the words of `text`: runs of at least two ASCII letters or digits, in lower case.
std::vector<std::string> WordsOf(std::string_view text);

/// Computes features of texts by feature hashing. Each word adds sign * (1 + ln count) * ln((n + 1)
/// / (texts with it + 1)) to one of `dim` columns; a hash of the word selects the column and the
/// sign. Rows have L2 norm 1 (a text without words: zeros). Returns [texts.size(), dim], row-major.
/// Source: Weinberger et al., Feature Hashing for Large Scale Multitask Learning, ICML 2009.
std::vector<float> HashTexts(std::span<const std::string_view> texts, std::uint64_t dim);

}  // namespace rhizome
