#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "index/ingest/ingest_context.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// One line of a sparse array file.
struct Triplet {
  std::uint64_t row = 0;
  std::uint64_t column = 0;
  double value = 0;
};

/// Converts the value of a triplet to `dtype`. Returns false if it does not fit, or if float32
/// cannot represent it (LostInFloat32).
bool ConvertTriplet(const Triplet& triplet, DataType dtype, std::span<std::byte> out);

/// Reads all triplets in file order. `take` may fail; `held_bytes()` returns the memory that it
/// holds.
Status ReadTriplets(IngestContext& context, const ArrayFile& file,
                    const std::function<Status(const Triplet&)>& take,
                    const std::function<std::uint64_t()>& held_bytes);

/// Returns the description of an array file for messages: "array 'x': x.npy".
std::string ArrayPlace(const ArrayFile& file);

/// Checks that the rows can be stored as `dtype` and have the requested number of columns.
Status CheckRows(const ArrayFile& file, const RowSource& source, DataType dtype);

/// Checks that the number of columns of the triplets was specified, and that they can be stored as
/// `dtype`.
Status CheckTripletFile(const ArrayFile& file, DataType dtype);

/// Return the errors for a value that `dtype` cannot represent, and for a repeated (row, column).
Status ValueDoesNotFit(const ArrayFile& file, std::uint64_t row, std::uint64_t column,
                       DataType dtype);
Status DuplicateTriplet(const ArrayFile& file, std::uint64_t row, std::uint64_t column);

}  // namespace internal
}  // namespace rhizome
