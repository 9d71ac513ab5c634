#pragma once

#include <string>
#include <vector>

#include "cache/job/safetensors.h"
#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Key of the class names in the metadata of a model's safetensors file: a JSON array of strings,
/// by class. If it is absent, the classes have no names.
inline constexpr const char* kClassesMetadataKey = "classes";

/// Max bytes of the names in a model file: half of its header.
inline constexpr std::size_t kMaxClassNameBytes = kMaxTensorHeaderBytes / 2;

/// Sets the names of a model file; does nothing if there are none, or if they are too long.
void SetClassNames(const std::vector<std::string>& names, TensorFile& file);

/// Returns the names of a model file's classes; empty if it has none, or if they are malformed.
std::vector<std::string> ClassNamesOf(const TensorFile& file);

/// Returns how messages show a class: its name in quotes, or its number.
std::string ShownClass(const std::vector<std::string>& names, std::size_t label);

}  // namespace internal
}  // namespace rhizome
