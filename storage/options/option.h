#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"

namespace rhizome {
inline namespace internal {

/// The part of a training that depends on an option. Other jobs ignore it.
enum class Effect : std::uint8_t {
  kNone,      ///< time, memory and outputs of one process
  kRanks,     ///< all ranks of a training must have the same value
  kModel,     ///< the trained weights; part of the description of a checkpoint (DescribeJob)
  kResolved,  ///< as kModel, but what is described is what the option refers to
};

/// Values of Option::value.
inline constexpr std::string_view kSize = "SIZE";  ///< bytes, such as 512M
inline constexpr std::string_view kFanouts = "all|N,N,...";

/// A row of a table of options: the name of a field of an option struct, and everything that front
/// ends need to offer it. A table is a function template that calls a visitor with each row and the
/// field, such as EachLearningField(visit, options): the command line, the Python package, the
/// agreement of ranks and the description of checkpoints are visitors.
struct Option {
  std::string_view field;  ///< path from the options of the job, such as "learning.epochs"
  std::string_view flag;   ///< name for users: --eval-every, eval_every=

  /// A sentence without a period. It names fields as messages do (spell_fields.h).
  std::string_view help;
  Effect effect = Effect::kNone;

  double min = 0;  ///< range of a number, inclusive
  double max = std::numeric_limits<double>::infinity();
  bool open = false;            ///< `min` itself is out of range
  std::string_view value = {};  ///< kind of value that help shows; empty: derived from the type

  /// Word for a field that has no value (an empty optional, 0 in a number); empty: there is none.
  std::string_view absent = {};

  /// For an enumeration: the choices that the field accepts, separated by "|"; empty: all.
  std::string_view only = {};

  /// For a bool that is not a plain flag: words for false and true.
  std::string_view no = {}, yes = {};

  /// Returns whether a number is in the range. NaN is not.
  constexpr bool Accepts(double number) const {
    return (open ? number > min : number >= min) && number <= max;
  }

  // Return the row with one of the members above set.
  constexpr Option In(double least, double most) const {
    Option row = *this;
    row.min = least;
    row.max = most;
    return row;
  }
  constexpr Option Above(double bound) const {
    Option row = In(bound, max);
    row.open = true;
    return row;
  }
  constexpr Option As(std::string_view kind) const {
    Option row = *this;
    row.value = kind;
    return row;
  }
  constexpr Option Absent(std::string_view word) const {
    Option row = *this;
    row.absent = word;
    return row;
  }
  constexpr Option Only(std::string_view choices) const {
    Option row = *this;
    row.only = choices;
    return row;
  }
  constexpr Option Words(std::string_view if_false, std::string_view if_true) const {
    Option row = *this;
    row.no = if_false;
    row.yes = if_true;
    return row;
  }
};

/// Names and values of an enumeration.
template <typename T>
using Choices = std::vector<std::pair<std::string_view, T>>;

/// Specializations have a function `static Choices<T> Names()`, in the order of help.
template <typename T>
struct ChoiceNames;

/// Returns the name of a value; empty if it has none.
template <typename T>
std::string_view NameOfChoice(T value) {
  for (const auto& [name, named] : ChoiceNames<T>::Names())
    if (named == value) return name;
  return {};
}

/// Returns the last part of a path, such as "epochs" of "learning.epochs".
constexpr std::string_view LeafOf(std::string_view field) {
  return field.substr(field.rfind('.') + 1);  // npos + 1 is 0
}

}  // namespace internal
inline namespace RHIZOME_API internal {

/// Describes the range of a number: "above 0", "at least 1" or "in [1, 16]".
std::string RangeText(const Option& option);

}  // namespace internal
}  // namespace rhizome
