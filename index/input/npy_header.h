#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the header of a .npy file (format 1.0, C order) of shape [rows, dim], or [rows] if `dim`
/// is absent. `rows` and `dim` may be 0. The length of the header is a multiple of 64 bytes, so
/// that the data after it is aligned.
std::string NpyHeaderBytes(DataType dtype, std::uint64_t rows,
                           std::optional<std::uint64_t> dim = {});

/// As above, for a type that the arrays of a store do not support. `description` is NumPy's name of
/// the type, such as "<u2".
std::string NpyHeaderBytes(std::string_view description, std::uint64_t rows,
                           std::optional<std::uint64_t> dim = {});

}  // namespace rhizome
