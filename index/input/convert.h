#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// Can every element type `from` be turned into `to`, values permitting? Floats become other floats
/// (float16 is rounded to nearest), integers become integers or floats; floats never become
/// integers.
bool CanConvert(DataType from, DataType to);

/// Converts in.size() / DataTypeBytes(from) elements. Returns the index of the first one that `to`
/// cannot hold: an integer out of range or not exact as a float, a finite float beyond float16.
/// Requires CanConvert, and `out` of as many elements.
std::optional<std::size_t> ConvertElements(DataType from, std::span<const std::byte> in,
                                           DataType to, std::span<std::byte> out);

}  // namespace rhizome
