#include "index/ingest/id_plan.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "rhizome/graph_types.h"
#include "storage/array/type_names.h"
#include "storage/base/escaped_text.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kMaxVariants = 3;
constexpr std::string_view kDigits = "0123456789";

/// Returns a number without a sign +, leading zeros and a fraction of zeros; nullopt for other
/// text.
std::optional<std::string> PlainNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  if (point != text.npos) {
    if (text.find_first_not_of('0', point + 1) != text.npos) return std::nullopt;
    text = text.substr(0, point);
  }
  if (text.empty() || text.find_first_not_of(kDigits) != text.npos) return std::nullopt;
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  return fmt::format("{}{}", negative ? "-" : "", text);
}

}  // namespace

std::string_view WhyNoInteger(std::string_view text) {
  const bool sign = text.starts_with('-');
  const std::string_view digits = text.substr(sign ? 1 : 0);
  if (text.starts_with('+')) return "it begins with +";
  if (digits.find_first_not_of("0123456789.eE+-") != digits.npos || digits.empty())
    return "it has other characters than digits";
  if (digits.find_first_not_of(kDigits) != digits.npos) return "it has a decimal point or exponent";
  if (digits.size() > 1 && digits.front() == '0') return "it begins with 0";
  return text == "-0" ? "it is -0" : "it does not fit 64 bits";
}

Status CheckTypedIds(std::span<const std::string> types) {
  const std::set<std::string_view> known(types.begin(), types.end());
  for (const std::string_view type : types) {
    RHIZOME_RETURN_IF_ERROR(CheckTypeName("type", type));
    for (std::size_t at = type.find(':'); at != type.npos; at = type.find(':', at + 1)) {
      const std::string_view other = type.substr(0, at);
      if (known.contains(other))
        return Status::InvalidArgument(
            fmt::format("the id '{0}:7' could be of the type '{0}' or of the type '{1}'; rename "
                        "one of the types",
                        type, other));
    }
  }
  return Status::Ok();
}

void IdCensus::Add(std::string_view id, const Path& path, std::uint64_t line) {
  if (id.empty()) return;
  const auto place = [&] { return fmt::format("{}:{}", path.string(), line); };
  const auto integer = ParseCanonicalInteger(id);
  integers_ = integers_ || integer;
  if (!integer && !plan_.texts) {
    plan_.texts = true;
    plan_.place = place();
    plan_.id = Excerpt(id, 60);
    plan_.reason = WhyNoInteger(id);
  }
  if (plan_.variants.size() == kMaxVariants) return;
  const auto number = PlainNumber(id);
  if (!number) return;
  const auto [known, fresh] = numbers_.try_emplace(*number, Spelling{std::string(id), ""});
  Spelling& spelling = known->second;
  if (fresh) spelling.place = place();
  if (spelling.told || spelling.text == id) return;
  spelling.told = true;
  plan_.variants.push_back(fmt::format("the ids '{}' ({}) and '{}' ({}) are different vertices",
                                       spelling.text, spelling.place, id, place()));
}

IdPlan IdCensus::Plan(bool requested) && {
  plan_.mixed = plan_.texts && integers_;
  plan_.texts = plan_.texts || requested;
  return std::move(plan_);
}

}  // namespace internal
}  // namespace rhizome
