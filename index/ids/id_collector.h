#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "index/topology/id_limit.h"
#include "rhizome/graph_types.h"
#include "rhizome/ingest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Collects the external ids that the readers of an ingestion find, in memory (IdTable) or in spill
/// files (SpilledIds). Both number ids in the same way.
/// Threads: one at a time.
class IdCollector {
 public:
  virtual ~IdCollector() = default;

  /// Returns the reason why `text` cannot be an id, or nullopt if it can.
  std::optional<std::string> Refuse(std::string_view text) const {
    if (text.empty()) return "an id is empty";
    if (text.size() > kMaxIdBytes) return RefuseLong(text.size());
    if (type_ == IdType::kInteger && !ParseCanonicalInteger(text)) return RefuseInteger(text);
    return std::nullopt;
  }

  /// Adds a line of the nodes file; returns false if the id was added before. Refuse must have
  /// accepted `text`.
  virtual bool AddNode(std::string_view text) = 0;

  /// Adds the two ends of an edge, which Refuse must have accepted.
  virtual void AddEdge(std::string_view src, std::string_view dst) = 0;
  virtual void AddEdge(std::int64_t src, std::int64_t dst) = 0;

  /// Reserves memory for the ends of `edges` further edges.
  virtual void ReserveEdges(std::uint64_t /*edges*/) {}

  /// Returns whether ids are texts: the first id that is no integer made all of them texts.
  bool texts() const { return texts_; }

  virtual std::uint64_t node_count() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  /// Returns the first error of adding an edge; callers check it at intervals.
  virtual Status status() const { return Status::Ok(); }

 protected:
  /// Marks ids that cannot be dense. A dense graph has no more ids than were named or implied; for
  /// a larger bound the marks would take too much memory.
  static constexpr std::uint64_t kNotDense = ~std::uint64_t{0};

  explicit IdCollector(IdType type) : type_(type), texts_(type == IdType::kString) {}

  /// Returns the error for implied ids when the named ids are not dense. `why` names the input that
  /// implies them.
  static Status RefuseImplied(std::string_view why, bool strings);
  const IdType type_;
  bool texts_;

 private:
  static std::string RefuseInteger(std::string_view text);
  static std::string RefuseLong(std::size_t bytes);
};

}  // namespace internal
}  // namespace rhizome
