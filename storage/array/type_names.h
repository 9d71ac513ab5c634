#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// The maximum length of the name of a vertex type or an edge type, in bytes.
inline constexpr std::size_t kMaxTypeNameBytes = 512;

/// The maximum number of types in a manifest before version 4.
inline constexpr std::size_t kMaxPlainTypes = 4096;

/// Checks the name of a vertex type or an edge type: 1 to kMaxTypeNameBytes bytes of UTF-8 without
/// control characters, such as "/people/person" or "part of". Unlike the name of an array
/// (CheckName), it is never the name of a file. `what` says in the message what is being named.
/// Errors: kInvalidArgument, with the name and the rule.
Status CheckTypeName(std::string_view what, std::string_view name);

/// Returns whether builds before version 4 of the manifest can read these types: at most
/// kMaxPlainTypes names, and CheckName accepts all of them.
bool ArePlainTypes(std::span<const std::string> names);

/// Lists names for a message: all, or the first few and how many there are.
std::string ListOfNames(std::span<const std::string> names);

}  // namespace rhizome
