#include <charconv>
#include <system_error>

#include "rhizome/graph_types.h"

namespace rhizome {

std::string ToString(const ExternalId& id) {
  if (const auto* integer = std::get_if<std::int64_t>(&id)) return std::to_string(*integer);
  return std::get<std::string>(id);
}

std::optional<std::int64_t> ParseCanonicalInteger(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
  if (digits.front() == '0' && text != "0") return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace rhizome
