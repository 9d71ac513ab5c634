#pragma once

#include <string>
#include <string_view>

#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// The zarr.json of an array and of a group: text and struct, no file (storage/FORMAT.md,
/// "Arrays"). Source: Zarr v3 core specification.
std::string EncodeArrayJson(const ArrayEntry& entry);

/// Parses what EncodeArrayJson writes, spaces and order of keys aside; a metadata document of other
/// writers that says something this engine cannot keep is refused. The name of an array is its
/// folder's. Errors: kCorruption, naming the field.
Result<ArrayEntry> DecodeArrayJson(std::string_view text, std::string_view name);

}  // namespace rhizome::inline internal
