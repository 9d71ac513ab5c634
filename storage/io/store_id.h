#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// 128 random bits that every file of a store carries, so that a file of another store is noticed.
struct StoreId {
  std::array<std::byte, 16> bytes{};

  friend bool operator==(const StoreId&, const StoreId&) = default;

  /// Makes an id from the kernel's generator, hashed with time, pid and a counter, so that a broken
  /// generator does not repeat ids.
  static StoreId Random();

  /// Parses 32 hex digits. Errors: kInvalidArgument.
  static Result<StoreId> Parse(std::string_view hex);
  std::string ToString() const;
};

}  // namespace rhizome
