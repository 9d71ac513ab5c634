#include "storage/array/zarr_json.h"

#include <fmt/format.h>

#include <charconv>

#include "rhizome/types.h"
#include "storage/section/untrusted_json.h"

namespace rhizome {
inline namespace internal {
Status BadZarrJson(std::string_view field, std::string_view why) {
  return Status::Corruption(fmt::format("zarr.json, {}: {}", field, why));
}

Result<ZarrJson> ParseZarrJson(std::string_view text) {
  if (text.size() > kMaxZarrJsonBytes) return Fail(BadZarrJson("length", "more than 1 MiB"));
  if (IsJsonTooDeep(text))
    return Fail(BadZarrJson("nesting", fmt::format("deeper than {}", kMaxJsonNesting)));
  auto json = ParseJson(text);
  if (!json) return Fail(BadZarrJson("syntax", json.error().message()));
  if (!json->is_object()) return Fail(BadZarrJson("syntax", "not an object"));
  return json;
}

const ZarrJson& ZarrAt(const ZarrJson& json, const char* pointer) {
  static const ZarrJson null;
  const ZarrJson* at = &json;
  for (std::string_view rest = pointer; !rest.empty();) {
    const std::string_view step = rest.substr(1, rest.find('/', 1) - 1);
    rest.remove_prefix(1 + step.size());
    if (at->is_array()) {
      std::size_t index = 0;
      const char* const end = step.data() + step.size();
      const bool number = std::from_chars(step.data(), end, index).ptr == end && !step.empty();
      at = number && index < at->size() ? &(*at)[index] : nullptr;
    } else {
      at = at->Find(step);
    }
    if (at == nullptr) return null;
  }
  return *at;
}

Result<std::uint64_t> ZarrNumberAt(const ZarrJson& json, const char* pointer) {
  const ZarrJson& value = ZarrAt(json, pointer);
  if (!value.is_unsigned()) return Fail(BadZarrJson(pointer, "not an unsigned number"));
  return value.unsigned_number();
}

Result<std::string> ZarrTextAt(const ZarrJson& json, const char* pointer) {
  const ZarrJson& value = ZarrAt(json, pointer);
  if (!value.is_string()) return Fail(BadZarrJson(pointer, "not a string"));
  return value.text();
}

}  // namespace internal
}  // namespace rhizome
