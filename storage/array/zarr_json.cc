#include "rhizome/storage/zarr_json.h"

#include <fmt/format.h>

#include "rhizome/storage/types.h"
#include "rhizome/storage/untrusted_json.h"

namespace rhizome {
Status BadZarrJson(std::string_view field, std::string_view why) {
  return Status::Corruption(fmt::format("zarr.json, {}: {}", field, why));
}

Result<ZarrJson> ParseZarrJson(std::string_view text) {
  if (text.size() > kMaxZarrJsonBytes) return Fail(BadZarrJson("length", "more than 1 MiB"));
  if (IsJsonTooDeep(text))
    return Fail(BadZarrJson("nesting", fmt::format("deeper than {}", kMaxJsonNesting)));
  ZarrJson json = ParseUntrustedJson(text);
  if (json.is_discarded()) return Fail(BadZarrJson("syntax", "not JSON"));
  if (!json.is_object()) return Fail(BadZarrJson("syntax", "not an object"));
  return json;
}

const ZarrJson& ZarrAt(const ZarrJson& json, const char* pointer) {
  static const ZarrJson null;
  const ZarrJson::json_pointer at(pointer);
  return json.contains(at) ? json.at(at) : null;
}

Result<std::uint64_t> ZarrNumberAt(const ZarrJson& json, const char* pointer) {
  const ZarrJson& value = ZarrAt(json, pointer);
  if (!value.is_number_unsigned()) return Fail(BadZarrJson(pointer, "not an unsigned number"));
  return value.get<std::uint64_t>();
}

Result<std::string> ZarrTextAt(const ZarrJson& json, const char* pointer) {
  const ZarrJson& value = ZarrAt(json, pointer);
  if (!value.is_string()) return Fail(BadZarrJson(pointer, "not a string"));
  return value.get<std::string>();
}

}  // namespace rhizome
