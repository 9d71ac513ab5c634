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

/// As above, with the ends of the edge types, and an array that is bound to a vertex type:
/// version 6.
inline Manifest SampleManifestWithEnds() {
  Manifest manifest = SampleManifest();
  manifest.info.vertices = 100;
  manifest.info.edge_types = {"cites", "writes"};
  manifest.info.edge_ends = {{0, 0}, {1, kSeveralTypes}};
  ArrayEntry array = manifest.arrays.front();
  array.name = "d";
  array.chunk_rows = 10;
  array.attributes = {{"vertex_type", "author"}};
  manifest.files.insert(manifest.files.begin() + 1, {"arrays/d/c.3.0", 80, {}, 3});
  manifest.arrays.push_back(array);
  return manifest;
}

}  // namespace rhizome::fuzzing
