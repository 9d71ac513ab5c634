#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/storage/variant.h"

namespace rhizome {

/// The user's key of a vertex: an integer or a UTF-8 string.
using ExternalId = Variant<std::int64_t, std::string>;

/// "42" or "dog.n.01".
std::string ToString(const ExternalId& id);

/// The integer that `text` is the canonical decimal of: no sign but '-', no leading zeros, in
/// range.
std::optional<std::int64_t> ParseCanonicalInteger(std::string_view text);

}  // namespace rhizome
