#include "rhizome/storage/zarr_json.h"

#include <fmt/format.h>

#include "rhizome/storage/types.h"

namespace rhizome {
namespace {

constexpr std::size_t kMaxNesting = 32;

// The library's parser keeps one level of stack for each bracket of its own and no limit.
Status CheckNesting(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxNesting) return BadZarrJson("nesting", "deeper than 32");
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return Status::Ok();
}

}  // namespace

Status BadZarrJson(std::string_view field, std::string_view why) {
  return Status::Corruption(fmt::format("zarr.json, {}: {}", field, why));
}

Result<ZarrJson> ParseZarrJson(std::string_view text) {
  if (text.size() > kMaxZarrJsonBytes) return Fail(BadZarrJson("length", "more than 1 MiB"));
  RHIZOME_RETURN_IF_ERROR(CheckNesting(text));
  ZarrJson json = ZarrJson::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
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
