#pragma once

#include <string>
#include <string_view>

#include "rhizome/manifest.h"

namespace rhizome {
inline namespace internal {

/// Creates the zarr.json of an array (storage/FORMAT.md, "Arrays"). Source: Zarr v3 core
/// specification. These functions access no file.
std::string EncodeArrayJson(const ArrayEntry& entry);

/// Parses a document that EncodeArrayJson wrote; whitespace and the order of keys may differ.
/// Refuses a document with any content that this engine would not write. The array is called
/// `name`, like its folder.
/// Errors: kCorruption, naming the field.
Result<ArrayEntry> DecodeArrayJson(std::string_view text, std::string_view name);

}  // namespace internal
}  // namespace rhizome
