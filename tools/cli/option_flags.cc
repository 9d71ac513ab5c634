#include "tools/cli/option_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "tools/cli/cli.h"
#include "tools/cli/flag_names.h"

namespace rhizome {
namespace {

std::string NameOf(const Option& row) { return fmt::format("--{}", row.flag); }

std::string HelpOf(const Option& row) { return SpellFlags(row.help, /*verb=*/nullptr); }

[[noreturn]] void Refused(const Option& row, const std::string& given, std::string_view why) {
  throw CLI::ValidationError(NameOf(row), fmt::format("'{}' is {}", given, why));
}

std::string RangeOf(const Option& row) { return "not a number that is " + RangeText(row); }

/// Parses fanouts by edge type, such as "cites:10,5;default:5,all". Returns nullopt if malformed.
std::optional<std::vector<TypedFanouts>> ParseTypedFanouts(std::string_view text) {
  std::vector<TypedFanouts> types;
  for (;;) {
    const std::size_t end = text.find(';');
    const std::string_view one = text.substr(0, end);
    const std::size_t colon = one.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    const auto fanouts = ParseFanouts(one.substr(colon + 1));
    if (!fanouts) return std::nullopt;
    types.push_back({.type = std::string(one.substr(0, colon)), .fanouts = *fanouts});
    if (end == std::string_view::npos) return types;
    text.remove_prefix(end + 1);
  }
}

/// Parses arrays by vertex type, such as "paper=feat,venue=none". Returns nullopt if malformed.
std::optional<std::vector<FeatureInput>> ParseInputs(std::string_view text) {
  std::vector<FeatureInput> inputs;
  for (const std::string& one : SplitList(text, ',')) {
    const std::size_t equals = one.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == one.size()) return std::nullopt;
    std::string array = one.substr(equals + 1);
    if (array == "none") array.clear();
    inputs.push_back({.vertex_type = one.substr(0, equals), .array = std::move(array)});
  }
  return inputs;
}

std::string KindOf(const Option& row, std::string_view usual) {
  return std::string(row.value.empty() ? usual : row.value);
}

}  // namespace

void OptionFlags::AddInputs(const Option& row, std::string& array,
                            std::vector<FeatureInput>& inputs) {
  Keep(row, verb_
                ->add_option_function<std::string>(
                    NameOf(row),
                    [row, &array, &inputs](const std::string& given) {
                      inputs.clear();
                      if (given.find('=') == given.npos) {
                        array = given;
                        return;
                      }
                      auto parsed = ParseInputs(given);
                      if (!parsed)
                        Refused(row, given,
                                "neither the name of an array nor a list such as "
                                "'paper=feat,author=author_feat,venue=none'");
                      inputs = *std::move(parsed);
                    },
                    HelpOf(row))
                ->type_name(KindOf(row, "NAME"))
                ->default_str(array));
}

Status OptionFlags::Refuse(std::string_view group, std::string_view why) const {
  for (const Added& one : added_) {
    const bool below = one.field.starts_with(group) && one.field.substr(group.size(), 1) == ".";
    if (below && one.option->count() > 0)
      return Status::InvalidArgument(fmt::format("{} {}", one.option->get_name(), why));
  }
  return Status::Ok();
}

bool OptionFlags::IsOneOf(std::string_view word, std::string_view words) {
  if (words.empty()) return true;
  for (const std::string& one : SplitList(words, '|'))
    if (one == word) return true;
  return false;
}

// A bool that is named after its opposite, such as `test` by --no-test, is cleared by the flag.
CLI::Option* OptionFlags::AddFlag(const Option& row, bool& field) {
  const bool opposite = row.flag.starts_with("no-") && !LeafOf(row.field).starts_with("no_");
  return verb_->add_flag((opposite ? "!" : "") + NameOf(row), field, HelpOf(row));
}

CLI::Option* OptionFlags::AddBool(const Option& row, bool& field) {
  return AddWords(row, {std::string(row.no), std::string(row.yes)},
                  std::string(field ? row.yes : row.no),
                  [&field](std::size_t word) { field = word == 1; });
}

CLI::Option* OptionFlags::AddWords(const Option& row, std::vector<std::string> words,
                                   const std::string& usual, std::function<void(std::size_t)> set) {
  std::vector<std::string> all = words;
  if (!row.absent.empty()) all.emplace_back(row.absent);
  const std::string kind = KindOf(row, fmt::format("{}", fmt::join(all, "|")));
  CLI::Option* const option =
      verb_
          ->add_option_function<std::string>(
              NameOf(row),
              [row, all, kind, set = std::move(set)](const std::string& given) {
                for (std::size_t word = 0; word < all.size(); ++word)
                  if (all[word] == given) return set(word);
                Refused(row, given, "not one of " + kind);
              },
              HelpOf(row))
          ->type_name(kind);
  if (!usual.empty()) option->default_str(usual);
  return option;
}

CLI::Option* OptionFlags::AddInteger(const Option& row, std::uint64_t usual, std::uint64_t most,
                                     std::function<void(std::uint64_t)> set) {
  if (row.value == kSize) {
    return verb_
        ->add_option_function<std::string>(
            NameOf(row),
            [row, set = std::move(set)](const std::string& given) {
              const std::optional<std::uint64_t> bytes = ParseSize(given);
              if (!bytes) Refused(row, given, "not a size such as 512M or 4G");
              set(*bytes);
            },
            HelpOf(row))
        ->type_name(std::string(kSize));
  }
  const std::string kind = KindOf(row, row.absent.empty() ? "N" : fmt::format("N|{}", row.absent));
  const auto parse = [row, most, set = std::move(set)](const std::string& given) {
    if (!row.absent.empty() && given == row.absent) return set(0);
    std::uint64_t number = 0;
    const char* const end = given.data() + given.size();
    const auto [rest, error] = std::from_chars(given.data(), end, number);
    if (error != std::errc() || rest != end || number > most ||
        !row.Accepts(static_cast<double>(number)))
      Refused(
          row, given,
          row.absent.empty() ? RangeOf(row) : fmt::format("{}, nor {}", RangeOf(row), row.absent));
    set(number);
  };
  CLI::Option* const option =
      verb_->add_option_function<std::string>(NameOf(row), parse, HelpOf(row))->type_name(kind);
  if (!row.absent.empty() && usual == 0) {
    option->default_str(std::string(row.absent));
  } else if (row.Accepts(static_cast<double>(usual))) {
    option->default_str(std::to_string(usual));
  }
  return option;
}

CLI::Option* OptionFlags::Add(const Option& row, double& field) {
  return verb_
      ->add_option_function<std::string>(
          NameOf(row),
          [row, &field](const std::string& given) {
            double number = 0;
            if (!CLI::detail::lexical_cast(given, number) || !row.Accepts(number))
              Refused(row, given, RangeOf(row));
            field = number;
          },
          HelpOf(row))
      ->type_name(KindOf(row, "X"))
      ->default_str(fmt::format("{}", field));
}

CLI::Option* OptionFlags::Add(const Option& row, std::optional<std::uint64_t>& bytes) {
  return AddInteger(row, 0, std::numeric_limits<std::uint64_t>::max(),
                    [&bytes](std::uint64_t value) { bytes = value; });
}

CLI::Option* OptionFlags::Add(const Option& row, std::string& text) {
  return verb_->add_option(NameOf(row), text, HelpOf(row))
      ->type_name(KindOf(row, "NAME"))
      ->capture_default_str();
}

CLI::Option* OptionFlags::Add(const Option& row, Path& path) {
  return verb_
      ->add_option_function<std::string>(
          NameOf(row), [&path](const std::string& given) { path = given; }, HelpOf(row))
      ->type_name(KindOf(row, "F"));
}

CLI::Option* OptionFlags::Add(const Option& row, std::vector<std::string>& words) {
  return verb_->add_option(NameOf(row), words, HelpOf(row))
      ->delimiter(',')
      ->type_name(KindOf(row, "NAME,NAME,..."));
}

CLI::Option* OptionFlags::Add(const Option& row, std::vector<std::int64_t>& fanouts) {
  return verb_
      ->add_option_function<std::string>(
          NameOf(row),
          [row, &fanouts](const std::string& given) {
            const auto parsed = ParseFanouts(given);
            if (!parsed) Refused(row, given, "not all or a list such as 10,10");
            fanouts = *parsed;
          },
          HelpOf(row))
      ->type_name(KindOf(row, kFanouts));
}

CLI::Option* OptionFlags::Add(const Option& row, std::vector<TypedFanouts>& fanouts) {
  return verb_
      ->add_option_function<std::string>(
          NameOf(row),
          [row, &fanouts](const std::string& given) {
            const auto parsed = ParseTypedFanouts(given);
            if (!parsed) Refused(row, given, "not a list such as 'cites:10,5;default:5,5'");
            fanouts = *parsed;
          },
          HelpOf(row))
      ->type_name(KindOf(row, ""));
}

}  // namespace rhizome
