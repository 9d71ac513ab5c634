#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/dtype.h"

namespace rhizome {

/// Returns the header of a .npy file (format 1.0, C order) with shape [rows, dim], or [rows]
/// without a `dim`. Either may be 0. Its length is a multiple of 64 bytes, so that the data after
/// it is aligned.
std::string NpyHeaderBytes(DataType dtype, std::uint64_t rows,
                           std::optional<std::uint64_t> dim = {});

/// Does the same for a type that arrays of a store cannot have, given as NumPy describes it, such
/// as "<u2".
std::string NpyHeaderBytes(std::string_view description, std::uint64_t rows,
                           std::optional<std::uint64_t> dim = {});

}  // namespace rhizome
