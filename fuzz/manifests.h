#pragma once

#include "rhizome/manifest.h"

namespace rhizome::fuzzing {

/// Builds a manifest with files and arrays of every kind.
inline Manifest SampleManifest() {
  Manifest manifest;
  manifest.generation = 1;
  manifest.version = 2;
  manifest.info.partitions = 2;
  manifest.info.partitioner = "adadne";
  manifest.info.order = "pds";
  manifest.info.vertex_types = {"paper", "author"};
  manifest.info.edge_types = {"cites"};
  manifest.files = {{"arrays/a/c.0.0", 640, {}, 1}, {"topology/part-0000.adj", 9, {}, 2}};
  ArrayEntry array{.name = "a", .rows = 100, .dim = 2, .chunk_rows = 128, .attributes = {}};
  array.codec.level = 0;
  manifest.arrays.push_back(array);
  array.name = "b";
  array.layout = ArrayLayout::kChunk;
  array.codec = {.kind = CodecKind::kZstd, .level = 3, .element_bytes = 4};
  array.attributes = {{"model", "abc"}, {"seed", "1"}};
  manifest.arrays.push_back(array);
  array.name = "b.v2";
  manifest.arrays.push_back(array);
  array.name = "c";
  array.inner_rows = 16;
  manifest.arrays.push_back(array);
  manifest.series = {{"b", 3, {{"live", {2, 2}}}}};
  return manifest;
}

}  // namespace rhizome::fuzzing
