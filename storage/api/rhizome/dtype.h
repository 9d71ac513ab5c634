#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Element type of an array. Stored on disk: never renumber, only append.
enum class DataType : std::uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kInt64 = 3,
  kInt32 = 4,
  kUint32 = 5,
  kUint8 = 6,
};

/// Returns the size of one element in bytes; 0 for kInvalid.
std::size_t DataTypeBytes(DataType type);

/// Returns the name that Zarr v3 and NumPy use, such as "float32"; "invalid" for kInvalid.
std::string_view DataTypeName(DataType type);

/// The inverse of DataTypeName; returns nullopt for an unsupported name.
std::optional<DataType> ParseDataType(std::string_view name);

}  // namespace rhizome
