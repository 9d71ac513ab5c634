#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// External ids in memory, all of them integers or all of them texts; the other list is empty.
/// Ownership: borrows both lists, and the texts.
struct IdSpan {
  std::span<const std::int64_t> integers = {};
  std::span<const std::string_view> texts = {};

  std::size_t size() const { return integers.size() + texts.size(); }
};

/// Edges in memory: edge i goes from src[i] to dst[i]. Both have the same size and kind of ids.
struct EdgeSpans {
  IdSpan src;
  IdSpan dst;

  std::size_t size() const { return src.size(); }
};

}  // namespace rhizome
