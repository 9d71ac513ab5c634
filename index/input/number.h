#pragma once

#include <optional>
#include <string_view>

namespace rhizome {

/// The finite float32 nearest to a decimal number that is all of `text`; nothing for other text,
/// NaN, or a number beyond float32.
std::optional<float> ParseFiniteFloat(std::string_view text);

}  // namespace rhizome
