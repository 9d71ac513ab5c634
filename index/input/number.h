#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// Returns the finite float32 nearest to the decimal number that is all of `text`; nullopt for
/// other text, NaN, or a number beyond float32.
std::optional<float> ParseFiniteFloat(std::string_view text);

/// Whether a number is not 0, but the float32 nearest to it is. The text is a decimal number.
bool VanishesInFloat32(double number);
bool VanishesInFloat32(std::string_view text);

/// A message says this of such a number, which comes before it.
inline constexpr std::string_view kVanishes =
    "is not 0, but too small for float32, in which it would be 0 (the smallest is 1.4e-45); scale "
    "such numbers, or give their logarithms";

/// Infers the type of a text column from its values: int64 while all are integers, float32 from the
/// first other number on. It refuses values that this would silently change: an integer beyond
/// int64, an integer that float32 rounds in a column with other numbers, and a number that would
/// be 0.
class NumberColumn {
 public:
  /// Returns why the number `field` cannot stand in the column `name`, or nullopt. `integer` is its
  /// value if it is an integer.
  std::optional<std::string> Refuse(std::string_view field, std::string_view name,
                                    std::optional<std::int64_t> integer) const;

  /// Records a value that Refuse accepted.
  void Keep(std::optional<std::int64_t> integer);

 private:
  bool floats_ = false;
  bool rounds_ = false;  // float32 would round some integer
};

}  // namespace rhizome
