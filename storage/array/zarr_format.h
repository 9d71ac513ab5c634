#pragma once

#include <string>
#include <string_view>

#include "rhizome/storage/manifest.h"

namespace rhizome::inline internal {

/// Makes the zarr.json of an array (storage/FORMAT.md, "Arrays"). Source: Zarr v3 core
/// specification. These functions touch no file.
std::string EncodeArrayJson(const ArrayEntry& entry);

/// Parses a document that EncodeArrayJson wrote; spaces and the order of keys may differ. It
/// refuses a document with any content that this engine would not write. The array gets the name
/// `name`, that of its folder. Errors: kCorruption, naming the field.
Result<ArrayEntry> DecodeArrayJson(std::string_view text, std::string_view name);

}  // namespace rhizome::inline internal
