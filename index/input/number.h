#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Parses a decimal number and returns the nearest finite float32. Returns nullopt for other text,
/// text after the number, NaN, or a number beyond float32.
std::optional<float> ParseFiniteFloat(std::string_view text);

/// Returns whether a nonzero number becomes 0 as the nearest float32. The text is a decimal number.
bool VanishesInFloat32(double number);
bool VanishesInFloat32(std::string_view text);

/// End of an error message about such a number; the number comes before it.
inline constexpr std::string_view kVanishes =
    "is not 0, but too small for float32, in which it would be 0 (the smallest is 1.4e-45); scale "
    "such numbers, or give their logarithms";

/// Infers the type of a text column from its values: int64 while all are integers, float32 from the
/// first other number on. It refuses values that the conversion would silently change: an integer
/// beyond int64, an integer that float32 rounds in a column with other numbers, and a nonzero
/// number that would become 0.
class NumberColumn {
 public:
  /// Returns the reason why the column `name` cannot hold the number `field`, or nullopt if it can.
  /// `integer` is its value if it is an integer.
  std::optional<std::string> Refuse(std::string_view field, std::string_view name,
                                    std::optional<std::int64_t> integer) const;

  /// Records a value that Refuse accepted.
  void Keep(std::optional<std::int64_t> integer);

 private:
  bool floats_ = false;
  bool rounds_ = false;  // some integer would be rounded as float32
};

}  // namespace rhizome
