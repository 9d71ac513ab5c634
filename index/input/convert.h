#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns whether it is a type of floating-point numbers.
bool IsFloat(DataType type);

/// Returns whether a float type holds every integer up to the magnitude of `value`.
bool IsExact(std::int64_t value, DataType type);

/// Returns the dtype of an edge attribute whose rows have `dtype`: int64 for integers and bool,
/// float64 for float64, float32 for narrower floats.
DataType EdgeDtypeOf(DataType dtype);

/// Returns whether elements of type `from` can be converted to `to`, if their values allow it.
/// Floats convert to other floats (narrower ones by rounding to nearest); integers, and bool as 0
/// and 1, to integers, bool or floats. Floats never convert to integers.
bool CanConvert(DataType from, DataType to);

/// Converts in.size() / DataTypeBytes(from) elements. Returns the index of the first element that
/// `to` cannot represent (an integer that is out of range or inexact as a float, a finite float
/// beyond the range of `to`, a bool that is neither 0 nor 1), or nullopt if there is none. Requires
/// CanConvert, and `out` of the same number of elements.
std::optional<std::size_t> ConvertElements(DataType from, std::span<const std::byte> in,
                                           DataType to, std::span<std::byte> out);

}  // namespace rhizome
