#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rhizome/types.h"
#include "storage/base/bytes.h"
#include "storage/catalog/catalog.h"

namespace rhizome {
inline namespace internal {

/// The versions of a commit's record (storage/FORMAT.md, "Catalogue records"). Version 1 has no
/// state; a record that adds a type whose name is not plain (ArePlainTypes) has version 3, and one
/// that adds texts has version 4.
inline constexpr std::uint8_t kDeltaRecordVersion = 4;
inline constexpr std::uint8_t kTypesDeltaRecordVersion = 3;
inline constexpr std::uint8_t kPlainDeltaRecordVersion = 2;

/// The head of a commit's record, which this layer reads; the rest belongs to index/.
struct DeltaHead {
  std::uint64_t sequence = 0;
  std::uint64_t previous = 0;
  HistoryState state;  ///< after the commit
};

/// Write and read a state, in the encoding of commit records, delta records and backups.
void WriteHistoryState(ByteWriter& out, const HistoryState& state);
HistoryState ReadHistoryState(ByteReader& in);

/// Reads the head of a record. Returns nullopt if the bytes cannot be a record.
std::optional<DeltaHead> ReadDeltaHead(std::span<const std::byte> record);

/// Computes HistoryState::commits after a commit from the value before it, and writes it into the
/// record, which must not have version 1. The hash covers the whole record and the rows, in their
/// order.
Hash128 SealDeltaRecord(std::span<std::byte> record, const Hash128& before,
                        std::span<const DeltaRow> rows);

}  // namespace internal
}  // namespace rhizome
