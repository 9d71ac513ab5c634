#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/storage/json_value.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

using ZarrJson = JsonValue;

/// "zarr.json, <field>: <why>". kCorruption.
Status BadZarrJson(std::string_view field, std::string_view why);

/// The object that a zarr.json holds: at most 1 MiB long and 32 levels deep.
Result<ZarrJson> ParseZarrJson(std::string_view text);

/// The value at a JSON pointer such as "/a/0", or null.
const ZarrJson& ZarrAt(const ZarrJson& json, const char* pointer);
Result<std::uint64_t> ZarrNumberAt(const ZarrJson& json, const char* pointer);
Result<std::string> ZarrTextAt(const ZarrJson& json, const char* pointer);

}  // namespace rhizome::inline internal
