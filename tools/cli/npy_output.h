#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/storage/dtype.h"

namespace rhizome {

/// The header of a .npy file (format 1.0, C order) whose shape is [rows, dim], or [rows] if `dim`
/// is 0; a multiple of 64 bytes, so that the data behind it is aligned.
std::string NpyHeaderBytes(DataType dtype, std::uint64_t rows, std::uint64_t dim);

/// The same for a type that arrays of a store cannot have, as NumPy describes it: "<u2".
std::string NpyHeaderBytes(std::string_view description, std::uint64_t rows, std::uint64_t dim);

}  // namespace rhizome
