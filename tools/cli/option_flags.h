#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/status.h"
#include "storage/options/option.h"

namespace rhizome {

/// Adds the rows of a table (storage/options/option.h) to a verb as options: the visitor of the
/// table. The type of a field determines how its value is parsed, and its value the default that
/// help shows. Fields must outlive the verb. An invalid value throws CLI::ValidationError.
class OptionFlags {
 public:
  explicit OptionFlags(CLI::App& verb) : verb_(&verb) {}

  template <typename T>
  void operator()(const Option& row, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      Keep(row, row.yes.empty() ? AddFlag(row, field) : AddBool(row, field));
    } else if constexpr (std::is_enum_v<T>) {
      Keep(row, AddChoiceOf<T>(row, std::string(NameOfChoice(field)),
                               [&field](T value) { field = value; }));
    } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
      Keep(row, AddWords(row, {std::string(row.yes), std::string(row.no)}, std::string(row.absent),
                         [&field](std::size_t word) {
                           field.reset();
                           if (word < 2) field = word == 0;
                         }));
    } else if constexpr (IsOptionalEnum<T>::value) {
      using Value = typename T::value_type;
      Keep(row, AddChoiceOf<Value>(
                    row, std::string(row.absent), [&field](Value value) { field = value; },
                    [&field] { field.reset(); }));
    } else if constexpr (std::is_integral_v<T>) {
      Keep(row, AddInteger(row, static_cast<std::uint64_t>(field), std::numeric_limits<T>::max(),
                           [&field](std::uint64_t value) { field = static_cast<T>(value); }));
    } else {
      Keep(row, Add(row, field));
    }
  }

  /// Adds an option for either of two fields: the name of an array, or an array for each vertex
  /// type, such as paper=feat,venue=none.
  void AddInputs(const Option& row, std::string& array, std::vector<FeatureInput>& inputs);

  /// An option that was added, and the field that it sets.
  struct Added {
    std::string_view field;
    CLI::Option* option = nullptr;
  };
  const std::vector<Added>& added() const { return added_; }

  /// Rejects options that were given for fields below `group`, which the job does not use. `why`
  /// completes the message: "--steps is for minibatches".
  Status Refuse(std::string_view group, std::string_view why) const;

 private:
  template <typename T>
  struct IsOptionalEnum : std::false_type {};
  template <typename T>
  struct IsOptionalEnum<std::optional<T>> : std::is_enum<T> {};

  template <typename T>
  CLI::Option* AddChoiceOf(const Option& row, const std::string& usual, std::function<void(T)> set,
                           std::function<void()> clear = {}) {
    std::vector<std::string> words;
    std::vector<T> values;
    for (const auto& [name, value] : ChoiceNames<T>::Names()) {
      if (!IsOneOf(name, row.only)) continue;
      words.emplace_back(name);
      values.push_back(value);
    }
    return AddWords(row, words, usual,
                    [values, set = std::move(set), clear = std::move(clear)](std::size_t word) {
                      if (word < values.size()) return set(values[word]);
                      clear();
                    });
  }

  void Keep(const Option& row, CLI::Option* option) { added_.push_back({row.field, option}); }
  static bool IsOneOf(std::string_view word, std::string_view words);

  CLI::Option* AddFlag(const Option& row, bool& field);
  CLI::Option* AddBool(const Option& row, bool& field);

  /// Adds an option whose value is one of `words`, or the row's word for no value, which has the
  /// number words.size().
  CLI::Option* AddWords(const Option& row, std::vector<std::string> words, const std::string& usual,
                        std::function<void(std::size_t)> set);
  CLI::Option* AddInteger(const Option& row, std::uint64_t usual, std::uint64_t most,
                          std::function<void(std::uint64_t)> set);
  CLI::Option* Add(const Option& row, double& field);
  CLI::Option* Add(const Option& row, std::optional<std::uint64_t>& bytes);
  CLI::Option* Add(const Option& row, std::string& text);
  CLI::Option* Add(const Option& row, Path& path);
  CLI::Option* Add(const Option& row, std::vector<std::string>& words);
  CLI::Option* Add(const Option& row, std::vector<std::int64_t>& fanouts);
  CLI::Option* Add(const Option& row, std::vector<TypedFanouts>& fanouts);

  CLI::App* verb_;
  std::vector<Added> added_;
};

}  // namespace rhizome
