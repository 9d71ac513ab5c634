#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/variant.h"

namespace RHIZOME_API rhizome {

/// The user's key of a vertex: an integer or a UTF-8 string.
using ExternalId = Variant<std::int64_t, std::string>;

/// Formats an id: "42" or "dog.n.01".
std::string ToString(const ExternalId& id);

/// Parses a canonical decimal integer: no sign except '-', no leading zeros, in range. Returns
/// nullopt for any other text.
std::optional<std::int64_t> ParseCanonicalInteger(std::string_view text);

}  // namespace rhizome
