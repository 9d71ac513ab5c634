#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rhizome::fuzzing {

/// Applies small changes chosen by the fuzz input to a valid document, so that mutations reach
/// fields deep inside without a corpus. A change has 4 bytes of input: place (2 bytes, modulo the
/// length), kind (1: replace, insert, erase or add), value (1). An incomplete change at the end of
/// the input is ignored.
template <typename Container>
Container WithEdits(Container document, std::span<const std::uint8_t> input) {
  using Element = typename Container::value_type;
  for (; input.size() >= 4 && !document.empty(); input = input.subspan(4)) {
    const std::size_t at = (input[0] + 256u * input[1]) % document.size();
    const auto place = document.begin() + static_cast<std::ptrdiff_t>(at);
    const auto value = static_cast<Element>(input[3]);
    switch (input[2] % 4) {
      case 0:
        *place = value;
        break;
      case 1:
        document.insert(place, value);
        break;
      case 2:
        document.erase(place);
        break;
      default:
        *place = static_cast<Element>(static_cast<unsigned>(*place) + input[3]);
    }
  }
  return document;
}

}  // namespace rhizome::fuzzing
