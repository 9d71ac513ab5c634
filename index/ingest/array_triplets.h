#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rhizome/index/ingest_context.h"
#include "rhizome/index/row_source.h"

namespace rhizome::inline internal {

/// One line of a sparse array file.
struct Triplet {
  std::uint64_t row = 0;
  std::uint64_t column = 0;
  float value = 0;
};

/// Reads all triplets, in the order of the file. `take` may fail; `held_bytes` is what it holds.
Status ReadTriplets(IngestContext& context, const ArrayFile& file,
                    const std::function<Status(const Triplet&)>& take,
                    const std::function<std::uint64_t()>& held_bytes);

/// "array 'x': x.npy", for messages.
std::string ArrayPlace(const ArrayFile& file);

/// May the rows be stored as `dtype`, and are their columns those that were asked for?
Status CheckRows(const ArrayFile& file, const RowSource& source, DataType dtype);

/// Are triplets told how many columns there are, and can they be stored as `dtype`?
Status CheckTripletFile(const ArrayFile& file, DataType dtype);

Status ValueDoesNotFit(const ArrayFile& file, std::uint64_t row, std::uint64_t column,
                       DataType dtype);
Status GivenTwice(const ArrayFile& file, std::uint64_t row, std::uint64_t column);

}  // namespace rhizome::inline internal
