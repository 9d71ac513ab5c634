#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rhizome/types.h"

namespace rhizome {

/// Files of the database, one per part of speech, in the order in which synsets are numbered.
inline constexpr std::string_view kWordNetFiles[] = {"noun", "verb", "adj", "adv"};

/// Returns the index of the file that holds synsets of type `letter` (n, v, a, s, r).
std::optional<std::size_t> WordNetFileOf(char letter);

/// The vertex type of a synset is the position of its letter in this string.
inline constexpr std::string_view kWordNetLetters = "nvasr";

/// Returns the edge type of a pointer symbol.
std::optional<TypeId> WordNetPointerType(std::string_view symbol);

}  // namespace rhizome
