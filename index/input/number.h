#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Parses a decimal number and returns the nearest finite float32. Returns nullopt for other text,
/// text after the number, NaN, or a number beyond float32.
std::optional<float> ParseFiniteFloat(std::string_view text);

/// Parses a decimal number, inf, infinity or nan (in any case, with a sign) and returns the nearest
/// float64. Returns nullopt for other text, text after the number, a finite number beyond float64,
/// or a nonzero number that would become 0.
std::optional<double> ParseDouble(std::string_view text);

/// Returns whether a text is a decimal number, whether or not float64 can hold it.
bool IsDecimal(std::string_view text);

/// Returns whether the nearest float32 of a number denotes the same decimal (DecimalOf), so that
/// float32 keeps the number.
bool KeepsDecimal(double number);

/// Returns why float32 cannot represent a number, or nullopt if it can: a number beyond its range,
/// a nonzero number that would be 0, or an integer that would be another one. The number comes
/// before the reason in a message. Other numbers may be rounded.
std::optional<std::string_view> LostInFloat32(double number);

/// Returns whether a nonzero number becomes 0 as the nearest float32. The text is a decimal number.
bool VanishesInFloat32(double number);
bool VanishesInFloat32(std::string_view text);

/// End of an error message about such a number; the number comes before it.
inline constexpr std::string_view kVanishes =
    "is not 0, but too small for float32, in which it would be 0 (the smallest is 1.4e-45); scale "
    "such numbers, or give their logarithms";

/// Parses a value of an array and writes it to the beginning of `out`, which has at least
/// DataTypeBytes(dtype) bytes. Integers have no fraction; bool is true, false, True, False, 0 or 1;
/// floats are rounded to the nearest, and may be inf and nan (ParseDouble). Returns false for other
/// text, and for a finite number that is out of range of the type.
bool ParseElement(DataType dtype, std::string_view text, std::span<std::byte> out);

/// Parses true, false, True, False, TRUE or FALSE.
std::optional<bool> ParseBool(std::string_view text);

/// Returns whether a field of a table means that there is no value: an empty field, null, NULL or
/// NA. (nan is a number, though it means null as well.)
bool IsNullWord(std::string_view text);

}  // namespace rhizome
