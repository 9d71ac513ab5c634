#pragma once

#include <memory>

#include "index/input/text_sniffer.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// An array file whose kind is decided, with the plan of its text if it is text.
struct ResolvedArray {
  ArrayFile file;
  FilePlan plan;
};

/// Decides how an array file is read. For a text with a row of the array on each line, sets `open`,
/// which counts the rows and finds their dtype when it is first called; for triplets, sets
/// `triplets`. `header` and `delimiter` are as in IngestOptions.
/// Errors: kInvalidArgument, the file is neither an array nor text, or could be both rows and
/// triplets, naming the file; any error of InputStream.
Result<ResolvedArray> ResolveArray(FileSystem& fs, const ArrayFile& file,
                                   std::optional<bool> header, std::optional<Delimiter> delimiter);

}  // namespace internal
}  // namespace rhizome
