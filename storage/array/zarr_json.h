#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/status.h"
#include "storage/section/json_value.h"

namespace rhizome {
inline namespace internal {

using ZarrJson = JsonValue;

/// Creates kCorruption, "zarr.json, <field>: <why>".
Status BadZarrJson(std::string_view field, std::string_view why);

/// Parses a zarr.json, which must be an object of at most 1 MiB and 32 nesting levels.
/// Errors: kCorruption.
Result<ZarrJson> ParseZarrJson(std::string_view text);

/// Returns the value at a JSON pointer such as "/a/0", or null. The result is valid as long as
/// `json`.
const ZarrJson& ZarrAt(const ZarrJson& json, const char* pointer);

/// Return the unsigned number, or the text, at a JSON pointer. Errors: kCorruption.
Result<std::uint64_t> ZarrNumberAt(const ZarrJson& json, const char* pointer);
Result<std::string> ZarrTextAt(const ZarrJson& json, const char* pointer);

}  // namespace internal
}  // namespace rhizome
