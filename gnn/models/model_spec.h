#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

enum class ModelKind : std::uint8_t { kSage, kGcn };

/// The architecture of a network; stored as JSON in the metadata of its safetensors file.
struct ModelSpec {
  ModelKind kind = ModelKind::kSage;
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;
  double dropout = 0.5;

  /// Whether each input row is first divided by the sum of its absolute values (the Planetoid
  /// convention).
  bool normalize_features = false;

  /// Whether edges are ignored: the same layers on each vertex alone, as a baseline that shows what
  /// edges are worth.
  bool no_edges = false;
};

}  // namespace rhizome
