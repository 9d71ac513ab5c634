#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/edge_spool.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/edge_splitter.h"
#include "index/ingest/held_out_file.h"
#include "rhizome/ingest.h"
#include "storage/store/generation_writer.h"

namespace rhizome {
inline namespace internal {

/// Checks IngestOptions::hold_out, whose columns are known.
/// Errors: kInvalidArgument, naming the option.
Status CheckHoldOut(const IngestOptions& options);

/// The edge types that HoldOutOptions selects.
class HeldOutTypes {
 public:
  explicit HeldOutTypes(const HoldOutOptions& options);

  bool Has(std::string_view type) const { return names_.empty() || names_.contains(type); }

  /// Checks that the input has all types that the options name.
  /// Errors: kInvalidArgument, naming the type.
  Status Check(std::span<const std::string> types) const;

 private:
  const HoldOutOptions& options_;
  std::set<std::string, std::less<>> names_;  // empty: all
};

/// Returns a random number for an unordered pair of ids. It does not depend on the other edges.
std::uint64_t DrawOfPair(std::uint64_t seed, std::string_view src, std::string_view dst);

/// The edges that an ingestion holds out: chooses them, collects their lines, removes them from the
/// ends of edges, and writes their files.
class HeldOutEdges final : public EdgeSplitter {
 public:
  /// Resources of an ingestion through spill files.
  struct Spilled {
    SpillSpace& space;
    Path scratch;  ///< for the lines, which outlive the files in `space`
  };

  /// Returns nullptr if nothing is held out. `store` is the store's absolute path.
  /// Errors: kAlreadyExists, a file exists; any error of spilling.
  static Result<std::unique_ptr<HeldOutEdges>> Create(FileSystem& fs, const IngestOptions& options,
                                                      const Path& store, const Spilled* spilled);
  ~HeldOutEdges() override;

  /// Sets the choices of HoldOutOptions::By::kTime (ChooseLatest).
  Status SetChoices(EdgeSpool choices);

  void Begin() override { ++begun_; }
  Result<EdgeSplit> SplitOf(const ExternalEdge& edge) override;
  Status HoldOut(EdgeSplit split, const ExternalEdge& edge,
                 std::span<const std::string> values) override;
  void Keep() override { ++edges_; }
  std::uint64_t memory_bytes() const override;

  /// Must be called after the last edge, with the names of all edge types.
  /// Errors: as HeldOutTypes::Check; any error of spilling.
  Status EndEdges(std::span<const std::string> types);

  /// Removes the held-out edges from the ends of all edges, in input order, and counts unseen ends.
  void Remove(std::uint64_t vertices, std::vector<VertexId>& src, std::vector<VertexId>& dst);
  Result<EdgeSpool> Remove(std::uint64_t vertices, const EdgeSpool& ends);

  /// Writes the files, then commits the store.
  /// Errors: as HeldOutFile::Write and GenerationWriter::Commit; RemoveFiles must then be called.
  Status Commit(GenerationWriter& writer, const GenerationInfo& info);

  /// Removes the files that Commit wrote, for an ingestion that failed.
  void RemoveFiles();

  std::vector<HeldOutSet> Report() const;

 private:
  /// A set of held-out edges. The index is EdgeSplit - 1.
  struct Set {
    HeldOutSet report;
    std::optional<HeldOutFile> file;  // absent: the share is 0
    std::map<std::string, std::uint64_t, std::less<>> by_type;
    bool written = false;
  };

  HeldOutEdges(FileSystem& fs, const IngestOptions& options);
  Set& SetOf(EdgeSplit split) { return sets_[static_cast<std::size_t>(split) - 1]; }
  Result<EdgeSplit> ChoiceOfTime();
  /// Counts held-out edges by their ends; `type` is the set.
  void CountUnseen(const EdgeList& ends, const std::vector<bool>& seen);

  FileSystem& fs_;
  const HoldOutOptions& options_;
  const bool typed_;  // the files have a column of types
  const std::uint64_t seed_;
  const HeldOutTypes types_;
  std::vector<std::string_view> line_;
  std::unique_ptr<SpillSpace> lines_space_;
  Set sets_[2];

  std::uint64_t begun_ = 0;  // lines and elements of edge files
  std::uint64_t edges_ = 0;  // accepted edges

  // Held-out edges: `src` is the number of the edge among the accepted ones, `dst` its set.
  EdgeList held_;
  SpillSpace* space_ = nullptr;  // of held-out numbers and ends
  std::optional<EdgeSpoolWriter> held_writer_;
  EdgeSpool held_spool_;

  // Choices by time: `src` is the number of the line or element, `dst` its set.
  std::optional<EdgeSpool> choices_;
  std::optional<EdgeSpoolReader> choices_reader_;
  EdgeList choice_block_;
  std::size_t next_choice_ = 0;
};

/// Returns the hooks of a build that commit `held_out`, which may be null and must outlive them.
BuildHooks HooksOf(HeldOutEdges* held_out);

}  // namespace internal
}  // namespace rhizome
