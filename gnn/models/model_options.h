#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/gnn/model_spec.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The options of a network with all values known and checked.
class ModelOptions {
 public:
  /// Completes `given` with the defaults of `known`. Errors: kInvalidArgument, an option that
  /// `kind` does not have or a value that it does not take, saying which there are.
  static Result<ModelOptions> Resolve(std::string_view kind, const std::vector<ModelOption>& known,
                                      const std::map<std::string, std::string>& given);

  /// The value of an option, which must be one of `known` and of that type.
  bool Flag(const std::string& name) const { return values_.at(name) == "true"; }
  std::int64_t Integer(const std::string& name) const;
  double Number(const std::string& name) const;
  const std::string& Choice(const std::string& name) const { return values_.at(name); }

  /// The values as text, by name.
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

/// Makes the description of an option of each type.
ModelOption FlagOption(std::string name, std::string help);
ModelOption IntegerOption(std::string name, std::int64_t fallback, std::int64_t least,
                          std::int64_t most, std::string help);
ModelOption NumberOption(std::string name, std::string fallback, double least, double most,
                         std::string help);
ModelOption ChoiceOption(std::string name, std::vector<std::string> choices, std::string help);

}  // namespace rhizome::inline internal
