#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_types.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Fanouts along edges of one type.
struct TypedFanouts {
  std::string type;                   ///< name of an edge type, or kOtherTypes
  std::vector<std::int64_t> fanouts;  ///< [hops], from the seeds on; 0: none, kAllNeighbors: all
};

/// Name that represents all edge types that are not listed.
inline constexpr std::string_view kOtherTypes = "default";

/// How training and inference sample the neighbours of a layer: like SamplerOptions
/// (rhizome/sampler.h), with names instead of ids.
/// Threads: a value type.
struct NeighborSampling {
  /// Which lists are walked. kBoth walks both directions as one list; in an undirected store they
  /// are the same. Absent: kBoth for models that distinguish edge types (ModelInfo::typed), else
  /// kIn.
  std::optional<Direction> direction = {};
  Direction walked() const { return direction.value_or(Direction::kIn); }

  /// Draw in proportion to edge weights (SamplerOptions::weighted).
  bool weighted = false;

  /// Fanouts per edge type, instead of one fanout for all types. Types without an entry are not
  /// walked.
  std::vector<TypedFanouts> typed_fanouts = {};

  /// The edge type that each hop walks, starting at the seeds; empty: all types.
  std::vector<std::string> meta_path = {};

  /// Draw only edges that are not later than their seed. `time_attribute` is the edge attribute
  /// with the times of edges, `seed_times` an int64 or int32 array with one column that holds the
  /// times of vertices as seeds. Set both or neither.
  std::string time_attribute = {};
  std::string seed_times = {};
};

/// Returns the number of hops that `sampling` defines, or 0 if plain fanouts define it.
std::size_t HopsOf(const NeighborSampling& sampling);

/// Returns the edge type with this name. Errors: kNotFound, listing the types of the graph.
Result<TypeId> FindEdgeType(const GraphSnapshot& graph, std::string_view name);

/// Describes the options that differ from the default, such as "out-edges and in-edges; by weight";
/// empty if there are none. Options that draw the same edges have equal descriptions.
std::string DescribeSampling(const NeighborSampling& sampling);

/// The order of the rows that a worker reads and writes.
enum class RowRule : std::uint8_t {
  kStored,
  kNatural,
  kRandom,
  kPds,
  kBfs,
  kFirstUse,    ///< by first use, in the order of the targets
  kReferences,  ///< by the number of targets that read them, descending; ties by first use
  kBlockCount,  ///< by the number of blocks that read them, descending; ties by first use
  /// Lexicographically by the blocks that read them, with blocks of few rows first; rows read by
  /// one block come after all others. Not from a paper; it needs half as many requests as
  /// kReferences.
  kBlocks,
};

/// The part of a store that a model reads: its arrays, and the edges that it follows.
struct DataOptions {
  std::string features = "feat";  ///< array of input rows

  /// Instead of `features`: the array of each vertex type. In training, types that are not named
  /// have a default as in LoaderOptions::inputs; in inference, the array that the model was trained
  /// on.
  std::vector<FeatureInput> inputs = {};
  std::string labels = "label";  ///< array of classes or values
  std::string split = "split";   ///< array of sets, or NAME:K (ParseSplitReference)

  /// How neighbours are sampled. Fanouts by edge type (NeighborSampling::typed_fanouts) replace
  /// fanouts for all types.
  NeighborSampling sampling = {};

  /// Whether layers that sum or average use edge weights; default: if the store has weights.
  std::optional<bool> edge_weights = {};

  /// kDirect: adjacency lists remain on disk.
  TopologyPlace topology = TopologyPlace::kMemory;
};

}  // namespace rhizome
