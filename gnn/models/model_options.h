#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/status.h"
#include "rhizome/train_options.h"

namespace rhizome {
inline namespace internal {

/// The options of a network with all values known and checked.
class ModelOptions {
 public:
  /// Completes `given` with the defaults of `known`. Errors: kInvalidArgument, an option that
  /// `kind` does not have, or an invalid value; the message lists the valid ones.
  static Result<ModelOptions> Resolve(std::string_view kind, const std::vector<ModelOption>& known,
                                      const std::map<std::string, std::string>& given);

  /// Returns the value of an option, which must be one of `known` and have that type.
  bool Flag(const std::string& name) const { return values_.at(name) == "true"; }
  std::int64_t Integer(const std::string& name) const;
  double Number(const std::string& name) const;
  const std::string& Choice(const std::string& name) const { return values_.at(name); }

  /// Returns all values as text, by name.
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

/// Functions that create the description of an option, one for each type.
ModelOption FlagOption(std::string name, std::string help);
ModelOption IntegerOption(std::string name, std::int64_t fallback, std::int64_t least,
                          std::int64_t most, std::string help);
ModelOption NumberOption(std::string name, std::string fallback, double least, double most,
                         std::string help);
ModelOption ChoiceOption(std::string name, std::vector<std::string> choices, std::string help);

}  // namespace internal
}  // namespace rhizome
