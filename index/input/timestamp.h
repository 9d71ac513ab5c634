#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Parses a date or a time in ISO 8601, and returns microseconds since 1970 in UTC: 2024-05-01,
/// 2024-05-01T12:30, 2024-05-01 12:30:00.25, each time optionally with Z or an offset (+02:00,
/// +0200, +02). A blank may replace the T; a time without an offset is UTC. Returns nullopt for
/// other text, a day that does not exist, a leap second (:60), or more than 6 digits of a fraction
/// unless the rest are zeros. Years have four digits, from 0001.
std::optional<std::int64_t> ParseTimestamp(std::string_view text);

/// Returns the text that ParseTimestamp converts to `microseconds`: "2024-05-01T12:30:00Z", with
/// three or six digits of a fraction if there is one. Returns the number itself if the year has no
/// four digits.
std::string TimestampText(std::int64_t microseconds);

}  // namespace rhizome
