#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rhizome/index/external_id.h"
#include "rhizome/index/ingest_options.h"
#include "rhizome/storage/status.h"

namespace rhizome::inline internal {

/// Where the readers of an ingestion put the external ids that they meet: into memory (IdTable), or
/// into spill files (SpilledIds). Both number ids alike. Threads: one at a time.
class IdCollector {
 public:
  virtual ~IdCollector() = default;

  /// Can `text` be an id? Returns the reason if not.
  std::optional<std::string> Refuse(std::string_view text) const {
    if (text.empty()) return "an id is empty";
    if (type_ == IdType::kInteger && !ParseCanonicalInteger(text)) return RefuseInteger(text);
    return std::nullopt;
  }

  /// Adds a line of the nodes file; false if the id was there before. `text` was not refused.
  virtual bool AddNode(std::string_view text) = 0;

  /// Adds the two ends of an edge that were not refused.
  virtual void AddEdge(std::string_view src, std::string_view dst) = 0;
  virtual void AddEdge(std::int64_t src, std::int64_t dst) = 0;

  virtual std::uint64_t node_count() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  /// What went wrong with an edge that was added: asked for now and then.
  virtual Status status() const { return Status::Ok(); }

 protected:
  /// A bound on ids that are not dense: no dense graph has more ids than were named or implied, and
  /// marks for them would take too much memory.
  static constexpr std::uint64_t kNotDense = ~std::uint64_t{0};

  explicit IdCollector(IdType type) : type_(type) {}

  /// Ids are implied (`why` says by what), but those that were named are not dense.
  static Status RefuseImplied(std::string_view why, bool strings);
  const IdType type_;

 private:
  static std::string RefuseInteger(std::string_view text);
};

}  // namespace rhizome::inline internal
