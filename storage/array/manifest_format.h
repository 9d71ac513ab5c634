#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rhizome/manifest.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {

/// Serialises a manifest (storage/FORMAT.md, "Manifest"). Files, arrays and series must be sorted.
std::vector<std::byte> EncodeManifest(const Manifest& manifest, const StoreId& store_id);

/// Parses a manifest and checks everything: magic, version, store id, seal, every size, name and
/// path. Accesses no file, so that fuzz/ can drive it. Errors: kCorruption, naming offset and
/// field; kUnsupported.
Result<Manifest> DecodeManifest(std::span<const std::byte> bytes, const StoreId& store_id);

}  // namespace rhizome
