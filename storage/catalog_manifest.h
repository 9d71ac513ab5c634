#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "rhizome/storage/result.h"

namespace rhizome {

/// A catalogue's options let RocksDB begin a new MANIFEST at half of this, and at each opening by a
/// writer.
inline constexpr std::uint64_t kMaxCatalogManifestBytes = std::uint64_t{64} << 20;

/// The name of the MANIFEST that CURRENT's bytes name.
std::string ManifestNameIn(std::span<const std::byte> current);

/// The tables (.sst) that RocksDB's MANIFEST names at the end of its whole records, number and
/// length: those that a catalogue consists of, besides its logs. Source: RocksDB,
/// db/version_edit.cc. Errors: kCorruption, damage (a torn last record is none), or what no RocksDB
/// writes that a catalogue can be of. Touches no file; takes memory as the bytes do.
Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest);

}  // namespace rhizome
