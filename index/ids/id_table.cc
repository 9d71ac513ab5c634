#include "index/ids/id_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/partition/dense_marks.h"
#include "rhizome/graph_types.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Integer ids are numbered with a table of 4 bytes for each number up to the largest id, if at
/// least 1 / kTableShare of these numbers are ids: it then is smaller than a dictionary of them.
constexpr std::uint64_t kTableShare = 4;
constexpr std::uint64_t kMostOfTable = std::uint64_t{1} << 32;

/// Number of edges by which the prefetch of the table runs ahead.
constexpr std::size_t kEdgesAhead = 16;

}  // namespace

std::string IdCollector::RefuseInteger(std::string_view text) {
  return fmt::format(
      "'{}' is not an integer id (a decimal number without leading zeros that fits 64 bits)", text);
}

std::string IdCollector::RefuseLong(std::size_t bytes) {
  return fmt::format("an id has {} bytes, but at most {} are allowed", bytes, kMaxIdBytes);
}

Status IdCollector::RefuseImplied(std::string_view why, bool strings) {
  return Status::InvalidArgument(
      fmt::format("{} requires that ids are exactly the integers 0..n-1, but {}; list every vertex "
                  "in a nodes file instead",
                  why, strings ? "some are strings" : "they are not"));
}

bool IdTable::AddNode(std::string_view text) {
  if (!texts_) {
    if (const auto value = ParseCanonicalInteger(text)) {
      const bool added = integers_.Add(*value).second;
      if (added) ++nodes_;
      return added;
    }
    SwitchToStrings();
  }
  const bool added = strings_.Add(text).second;
  if (added) ++nodes_;
  return added;
}

void IdTable::AddEdge(std::string_view src, std::string_view dst) {
  if (!texts_) {
    const auto src_value = ParseCanonicalInteger(src);
    const auto dst_value = ParseCanonicalInteger(dst);
    if (src_value && dst_value) return AddEdge(*src_value, *dst_value);
    SwitchToStrings();
  }
  src_.push_back(strings_.Add(src).first);
  dst_.push_back(strings_.Add(dst).first);
}

void IdTable::AddEdge(std::int64_t src, std::int64_t dst) {
  if (texts_) {
    src_.push_back(strings_.Add(fmt::format_int(src).str()).first);
    dst_.push_back(strings_.Add(fmt::format_int(dst).str()).first);
    return;
  }
  src_.push_back(src);
  dst_.push_back(dst);
}

void IdTable::ReserveEdges(std::uint64_t edges) {
  src_.reserve(src_.size() + edges);
  dst_.reserve(dst_.size() + edges);
}

std::uint64_t IdTable::memory_bytes() const {
  return (src_.capacity() + dst_.capacity()) * 8 + integers_.memory_bytes() +
         strings_.memory_bytes();
}

void IdTable::SwitchToStrings() {
  texts_ = true;
  for (std::uint64_t i = 0; i < integers_.size(); ++i)
    strings_.Add(fmt::format_int(integers_.keys().At(i)).str());
  integers_ = {};
  for (std::size_t i = 0; i < src_.size(); ++i) {
    src_[i] = strings_.Add(fmt::format_int(src_[i]).str()).first;
    dst_[i] = strings_.Add(fmt::format_int(dst_[i]).str()).first;
  }
}

std::uint64_t IdTable::DenseBound(std::uint64_t implied) const {
  std::uint64_t bound = implied;
  const auto widen = [&bound](std::int64_t id) {
    bound = id < 0 ? kNotDense : std::max(bound, static_cast<std::uint64_t>(id) + 1);
    return id >= 0;
  };
  for (std::uint64_t i = 0; i < nodes_; ++i)
    if (!widen(integers_.keys().At(i))) return kNotDense;
  for (std::size_t i = 0; i < src_.size(); ++i)
    if (!widen(src_[i]) || !widen(dst_[i])) return kNotDense;
  return bound > implied + nodes_ + 2 * src_.size() ? kNotDense : bound;
}

std::uint64_t IdTable::CountMissing(std::uint64_t bound, std::uint64_t implied) const {
  DenseMarks marks(bound, implied);
  for (std::uint64_t i = 0; i < nodes_; ++i) marks.Mark(integers_.keys().At(i));
  for (const std::int64_t id : src_) marks.Mark(id);
  for (const std::int64_t id : dst_) marks.Mark(id);
  return marks.missing();
}

Result<IdTable::Vertices> IdTable::Resolve(std::uint64_t implied, std::string_view why_implied) && {
  const std::uint64_t bound = texts_ ? kNotDense : DenseBound(implied);
  const std::uint64_t missing = bound == kNotDense ? 0 : CountMissing(bound, implied);
  const bool dense = bound != kNotDense && missing == 0;
  if (!dense && implied > 0) return Fail(RefuseImplied(why_implied, texts_));
  Vertices vertices;
  vertices.nodes.resize(nodes_);
  for (std::uint64_t i = 0; i < nodes_; ++i)
    vertices.nodes[i] = dense ? integers_.keys().At(i) : static_cast<VertexId>(i);
  if (dense)
    vertices.count = bound;
  else if (texts_)
    TakeStrings(vertices);
  else if (bound < kMostOfTable && bound - missing >= bound / kTableShare)
    NumberByTable(bound, bound - missing, vertices);
  else
    NumberIntegers(vertices);
  vertices.src = std::move(src_);
  vertices.dst = std::move(dst_);
  return vertices;
}

void IdTable::TakeStrings(Vertices& vertices) {
  vertices.kind = ExternalIdKind::kString;
  vertices.count = strings_.size();
  vertices.string_ids.reserve(vertices.count);
  for (std::uint64_t i = 0; i < vertices.count; ++i)
    vertices.string_ids.emplace_back(strings_.keys().At(i));
  strings_ = {};
}

void IdTable::NumberIntegers(Vertices& vertices) {
  vertices.kind = ExternalIdKind::kInteger;
  for (std::size_t i = 0; i < src_.size(); ++i) {
    src_[i] = integers_.Add(src_[i]).first;
    dst_[i] = integers_.Add(dst_[i]).first;
  }
  vertices.count = integers_.size();
  vertices.integer_ids = std::move(integers_).TakeKeys().values();
}

void IdTable::NumberByTable(std::uint64_t bound, std::uint64_t used, Vertices& vertices) {
  vertices.kind = ExternalIdKind::kInteger;
  std::vector<std::int64_t> ids = std::move(std::move(integers_).TakeKeys().values());
  integers_ = {};
  ids.reserve(used);
  std::vector<std::uint32_t> after_number(bound, 0);  // number + 1; 0: the id has none yet
  for (std::size_t i = 0; i < ids.size(); ++i)
    after_number[static_cast<std::size_t>(ids[i])] = static_cast<std::uint32_t>(i + 1);
  const auto number_of = [&](std::int64_t id) {
    std::uint32_t& after = after_number[static_cast<std::size_t>(id)];
    if (after == 0) {
      ids.push_back(id);
      after = static_cast<std::uint32_t>(ids.size());
    }
    return std::int64_t{after} - 1;
  };
  for (std::size_t i = 0; i < src_.size(); ++i) {
    if (i + kEdgesAhead < src_.size()) {
      __builtin_prefetch(&after_number[static_cast<std::size_t>(src_[i + kEdgesAhead])], 1);
      __builtin_prefetch(&after_number[static_cast<std::size_t>(dst_[i + kEdgesAhead])], 1);
    }
    src_[i] = number_of(src_[i]);
    dst_[i] = number_of(dst_[i]);
  }
  vertices.count = ids.size();
  vertices.integer_ids = std::move(ids);
}

}  // namespace internal
}  // namespace rhizome
