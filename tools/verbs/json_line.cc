#include "tools/verbs/json_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/section/untrusted_json.h"

namespace rhizome {
namespace {

constexpr std::string_view kNumbers[] = {"NaN", "Infinity", "-Infinity"};

// The first byte of a string that replaces a number, and how JSON writes it. No other string of the
// line may hold it.
constexpr char kMarker = '\x01';
constexpr std::string_view kEscapedMarker = "\\u0001";

/// Returns the text with the numbers replaced by strings that begin with the marker; nullopt if it
/// has none, or holds the marker already.
std::optional<std::string> WithStrings(std::string_view text) {
  if (text.find(kEscapedMarker) != text.npos) return std::nullopt;
  std::string replaced;
  bool any = false;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto* const number =
        quoted ? std::end(kNumbers)
               : std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](std::string_view one) {
                   return text.substr(i).starts_with(one);
                 });
    if (number != std::end(kNumbers)) {
      replaced += fmt::format("\"{}{}\"", kEscapedMarker, *number);
      i += number->size() - 1;
      any = true;
      continue;
    }
    replaced += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size())
      replaced += text[++i];
    else if (text[i] == '"')
      quoted = !quoted;
  }
  return any ? std::optional(std::move(replaced)) : std::nullopt;
}

bool IsMarked(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with(kMarker);
}

void RemoveMarkers(Json& value) {
  if (IsMarked(value)) value = value.get_ref<const std::string&>().substr(1);
  if (value.is_structured())
    for (Json& inner : value) RemoveMarkers(inner);
}

/// Returns the reason why a text is not valid JSON.
std::string WhyNoJson(std::string_view text) {
  try {
    const Json parsed = Json::parse(text);
  } catch (const Json::out_of_range& refused) {  // the exception names the number
    return fmt::format("is not readable: {}", refused.what());
  } catch (const Json::parse_error&) {
  }
  return "is not a JSON object";
}

Json Discarded() { return Json(Json::value_t::discarded); }

}  // namespace

Json ParseJsonLine(std::string_view text, std::initializer_list<std::string_view> names,
                   std::string& reason) {
  reason.clear();
  if (IsJsonTooDeep(text)) {
    reason = fmt::format("is nested deeper than {}", kMaxJsonNesting);
    return Discarded();
  }
  std::optional<std::string> repeated;
  Json object = ParseUntrustedJson(text, &repeated);
  const bool again = object.is_discarded() && !repeated;
  if (const auto replaced = again ? WithStrings(text) : std::nullopt) {
    object = ParseUntrustedJson(*replaced, &repeated);
    for (const std::string_view name : names) {
      const auto member = object.is_object() ? object.find(name) : object.end();
      if (!object.is_object() || member == object.end() || !IsMarked(*member)) continue;
      reason =
          fmt::format("has {} as \"{}\"", member->get_ref<const std::string&>().substr(1), name);
      return Discarded();
    }
    RemoveMarkers(object);
  }
  if (repeated) {
    reason = fmt::format("has the key \"{}\" twice", *repeated);
  } else if (object.is_discarded()) {
    reason = WhyNoJson(text);
  } else if (!object.is_object()) {
    reason = "is not a JSON object";
  }
  return reason.empty() ? std::move(object) : Discarded();
}

}  // namespace rhizome
