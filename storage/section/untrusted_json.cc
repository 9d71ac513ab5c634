#include "storage/section/untrusted_json.h"

#include <set>
#include <vector>

namespace rhizome {
inline namespace internal {

bool IsJsonTooDeep(std::string_view text) {
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
      if (++depth > kMaxJsonNesting) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

nlohmann::json ParseUntrustedJson(std::string_view text, std::optional<std::string>* repeated) {
  if (IsJsonTooDeep(text)) return nlohmann::json::value_t::discarded;
  std::vector<std::set<std::string>> open;  // keys so far of each unclosed object
  std::optional<std::string> twice;
  const auto see = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second && !twice)
      twice = parsed.get<std::string>();
    return true;
  };
  nlohmann::json parsed = nlohmann::json::parse(text, see, /*allow_exceptions=*/false);
  if (repeated != nullptr) *repeated = twice;
  return twice ? nlohmann::json(nlohmann::json::value_t::discarded) : parsed;
}

}  // namespace internal
}  // namespace rhizome
