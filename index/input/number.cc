#include "rhizome/index/number.h"

#include <fast_float/fast_float.h>

#include <cmath>
#include <system_error>

namespace rhizome {

std::optional<float> ParseFiniteFloat(std::string_view text) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = fast_float::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace rhizome
