#pragma once

#include <cstddef>

namespace rhizome {
inline namespace internal {

/// The longest external id, in bytes, that ingestion and updates accept. Older versions could
/// ingest longer ids from memory; stores with such ids remain readable.
inline constexpr std::size_t kMaxIdBytes = std::size_t{1} << 20;

}  // namespace internal
}  // namespace rhizome
