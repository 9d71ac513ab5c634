#include "storage/options/option.h"

#include <fmt/format.h>

namespace rhizome {
inline namespace internal {

std::string RangeText(const Option& option) {
  if (option.max == std::numeric_limits<double>::infinity())
    return fmt::format("{} {}", option.open ? "above" : "at least", option.min);
  return fmt::format("in [{}, {}]", option.min, option.max);
}

}  // namespace internal
}  // namespace rhizome
