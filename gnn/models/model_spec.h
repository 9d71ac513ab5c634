#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

enum class ModelKind : std::uint8_t { kSage, kGcn };

/// What a network looks like; stored as JSON in the metadata of its safetensors file.
struct ModelSpec {
  ModelKind kind = ModelKind::kSage;
  std::uint32_t layers = 2;
  std::int64_t hidden = 128;
  double dropout = 0.5;

  /// Divide each input row by the sum of its absolute values first (the Planetoid convention).
  bool normalize_features = false;

  /// Ignore the edges: the same layers on each vertex alone. The baseline that shows what edges are
  /// worth.
  bool no_edges = false;
};

}  // namespace rhizome
