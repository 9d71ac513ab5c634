#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The finite float32 nearest to a decimal number that is all of `text`; nothing for other text,
/// NaN, or a number beyond float32.
std::optional<float> ParseFiniteFloat(std::string_view text);

/// A column of a text whose values choose its type: int64 while all are integers, float32 from the
/// first on that is none. It refuses what this would change in silence: an integer beyond int64,
/// and one that float32 rounds, beside numbers that are none.
class NumberColumn {
 public:
  /// Why `field`, a number, cannot stand in the column `name`. `integer`: what it is, if it is one.
  std::optional<std::string> Refuse(std::string_view field, std::string_view name,
                                    std::optional<std::int64_t> integer) const;

  /// Takes what was not refused.
  void Keep(std::optional<std::int64_t> integer);

 private:
  bool floats_ = false;
  bool rounds_ = false;  // some integer, as float32
};

}  // namespace rhizome
