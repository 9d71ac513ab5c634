#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "rhizome/storage/result.h"

namespace rhizome {

/// Fills `out` from a file's bytes at `offset_bytes`. Errors: those of reading, an end before.
using ReadAtFunction = std::function<Status(std::uint64_t offset_bytes, std::span<std::byte> out)>;

/// Checks what RocksDB believes of a table (.sst) without a checksum when it opens one, as a
/// flipped bit there may end the process in one of its assertions: the footer, which has none, and
/// the block of properties, whose checksum it looks at only later. All other blocks it checks
/// itself. Source: RocksDB, table/format.h, format versions 1 to 5; newer ones have a checked
/// footer and pass. Errors: kCorruption; the reader's.
Status CheckTableTail(std::uint64_t file_bytes, const ReadAtFunction& read);

}  // namespace rhizome
