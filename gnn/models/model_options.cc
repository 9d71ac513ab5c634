#include "gnn/models/model_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace rhizome {
inline namespace internal {
namespace {

/// Parses the whole text as a number; nullopt if it is not a number.
template <typename Number>
std::optional<Number> Parse(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Describes the valid values of an option.
std::string Taken(const ModelOption& option) {
  switch (option.type) {
    case ModelOption::Type::kFlag:
      return "true or false";
    case ModelOption::Type::kInteger:
      return fmt::format("a whole number from {} to {}", option.least, option.most);
    case ModelOption::Type::kNumber:
      return fmt::format("a number from {} to {}", option.least, option.most);
    case ModelOption::Type::kChoice:
      return fmt::format("one of {}", fmt::join(option.choices, ", "));
  }
  return "";
}

bool Takes(const ModelOption& option, const std::string& value) {
  const auto within = [&](double number) {
    return number >= option.least && number <= option.most;
  };
  switch (option.type) {
    case ModelOption::Type::kFlag:
      return value == "true" || value == "false";
    case ModelOption::Type::kInteger: {
      const std::optional<std::int64_t> number = Parse<std::int64_t>(value);
      return number && within(static_cast<double>(*number));
    }
    case ModelOption::Type::kNumber: {
      const std::optional<double> number = Parse<double>(value);
      return number && within(*number);
    }
    case ModelOption::Type::kChoice:
      return std::find(option.choices.begin(), option.choices.end(), value) != option.choices.end();
  }
  return false;
}

std::vector<std::string> NamesOf(const std::vector<ModelOption>& options) {
  std::vector<std::string> names;
  for (const ModelOption& option : options) names.push_back(option.name);
  return names;
}

}  // namespace

Result<ModelOptions> ModelOptions::Resolve(std::string_view kind,
                                           const std::vector<ModelOption>& known,
                                           const std::map<std::string, std::string>& given) {
  ModelOptions options;
  for (const ModelOption& option : known) options.values_[option.name] = option.fallback;
  for (const auto& [name, value] : given) {
    const auto found =
        std::find_if(known.begin(), known.end(),
                     [&, &name = name](const ModelOption& option) { return option.name == name; });
    if (found == known.end()) {
      return Fail(Status::InvalidArgument(fmt::format("model {} has no option {}; it has {}", kind,
                                                      name, fmt::join(NamesOf(known), ", "))));
    }
    if (!Takes(*found, value)) {
      return Fail(Status::InvalidArgument(
          fmt::format("option {} of model {}: '{}' is not {}", name, kind, value, Taken(*found))));
    }
    options.values_[name] = value;
  }
  return options;
}

std::int64_t ModelOptions::Integer(const std::string& name) const {
  return Parse<std::int64_t>(values_.at(name)).value_or(0);
}

double ModelOptions::Number(const std::string& name) const {
  return Parse<double>(values_.at(name)).value_or(0);
}

ModelOption FlagOption(std::string name, std::string help) {
  return {.name = std::move(name),
          .type = ModelOption::Type::kFlag,
          .fallback = "false",
          .help = std::move(help)};
}

ModelOption IntegerOption(std::string name, std::int64_t fallback, std::int64_t least,
                          std::int64_t most, std::string help) {
  return {.name = std::move(name),
          .type = ModelOption::Type::kInteger,
          .fallback = fmt::format("{}", fallback),
          .help = std::move(help),
          .least = static_cast<double>(least),
          .most = static_cast<double>(most)};
}

ModelOption NumberOption(std::string name, std::string fallback, double least, double most,
                         std::string help) {
  return {.name = std::move(name),
          .type = ModelOption::Type::kNumber,
          .fallback = std::move(fallback),
          .help = std::move(help),
          .least = least,
          .most = most};
}

ModelOption ChoiceOption(std::string name, std::vector<std::string> choices, std::string help) {
  ModelOption option{.name = std::move(name),
                     .type = ModelOption::Type::kChoice,
                     .fallback = choices.front(),
                     .help = std::move(help)};
  option.choices = std::move(choices);
  return option;
}

}  // namespace internal
}  // namespace rhizome
