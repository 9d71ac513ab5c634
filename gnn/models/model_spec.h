#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// A setting of a kind of network: its name, the values that it takes and its default, all as text.
struct ModelOption {
  enum class Type : std::uint8_t { kFlag, kInteger, kNumber, kChoice };

  std::string name;  ///< as a flag without its dashes, such as "attention-dropout"
  Type type = Type::kFlag;
  std::string fallback;  ///< used where a ModelSpec does not name the option
  std::string help;

  double least = 0;                       ///< of integers and numbers
  double most = 0;                        ///< of integers and numbers
  std::vector<std::string> choices = {};  ///< of a choice
};

/// A kind of network that this build knows (GnnEntry::Models).
struct ModelInfo {
  std::string name;                  ///< as ModelSpec::kind
  std::string title;                 ///< in a few words
  std::string source;                ///< the paper that defines it
  std::vector<ModelOption> options;  ///< its own, then those of every network
};

/// The architecture of a network; stored as JSON in the metadata of its safetensors file.
struct ModelSpec {
  std::string kind = "sage";  ///< a ModelInfo::name
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;  ///< columns between layers; of attention: of all heads together
  double dropout = 0.5;       ///< share of a layer's inputs that are dropped, but the first layer's

  /// Whether each input row is first divided by the sum of its absolute values (the Planetoid
  /// convention).
  bool normalize_features = false;

  /// Whether edges are ignored: the same layers on each vertex alone, as a baseline that shows what
  /// edges are worth.
  bool no_edges = false;

  /// Values of ModelInfo::options by name; those that are not named have their default.
  std::map<std::string, std::string> options = {};
};

}  // namespace rhizome
