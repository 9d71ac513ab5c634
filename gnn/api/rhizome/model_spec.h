#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Selects whether a model is computed on the CPU or on a CUDA device.
enum class ComputeOn : std::uint8_t { kCpu, kCuda };

/// A setting of a kind of network: its name, valid values and default, all as text.
struct ModelOption {
  enum class Type : std::uint8_t { kFlag, kInteger, kNumber, kChoice };

  std::string name;  ///< name of the flag without dashes, such as "attention-dropout"
  Type type = Type::kFlag;
  std::string fallback;  ///< default, if a ModelSpec does not name the option
  std::string help;

  double least = 0;                       ///< min, for integers and numbers
  double most = 0;                        ///< max, for integers and numbers
  std::vector<std::string> choices = {};  ///< valid values, for choices
};

/// A kind of network that this build supports (GnnEntry::Models).
struct ModelInfo {
  std::string name;                  ///< see ModelSpec::kind
  std::string title;                 ///< short description
  std::string source;                ///< the paper that defines it
  std::vector<ModelOption> options;  ///< options of this kind, then options of every network
};

/// The architecture of a network. It is stored as JSON in the metadata of the safetensors file.
struct ModelSpec {
  std::string kind = "sage";  ///< a ModelInfo::name
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;  ///< columns between layers; for attention, of all heads together
  double dropout = 0.5;       ///< dropout of a layer's inputs, except the first layer's

  /// Whether to divide each input row by the sum of its absolute values first (the Planetoid
  /// convention).
  bool normalize_features = false;

  /// Whether to ignore edges. The same layers then run on each vertex alone, as a baseline that
  /// shows the benefit of edges.
  bool no_edges = false;

  /// Values of ModelInfo::options by name. Options that are not named have their default.
  std::map<std::string, std::string> options = {};
};

}  // namespace rhizome
