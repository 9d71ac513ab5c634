#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "index/graph/edges_by_id.h"
#include "index/topology/vertex_order.h"
#include "rhizome/graph.h"
#include "rhizome/graph_scan.h"
#include "rhizome/ingest.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome::testing {

/// A mark for each partition of a store.
using PartitionMarks = std::vector<bool>;

inline bool Covers(const PartitionMarks& set, const PartitionMarks& needed) {
  for (std::size_t p = 0; p < set.size(); ++p)
    if (needed[p] && !set[p]) return false;
  return true;
}

/// Expects kInvalidArgument. The message names a partition that is needed but not in the set, and
/// lists the partitions that are in the set.
inline void ExpectNotLoaded(const Status& status, const PartitionMarks& set,
                            const PartitionMarks& needed) {
  ASSERT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  std::string loaded;
  bool named = false;
  for (std::size_t p = 0; p < set.size(); ++p) {
    const std::string number = std::to_string(p);
    if (set[p]) loaded += (loaded.empty() ? "" : ", ") + number;
    if (needed[p] && !set[p])
      named = named ||
              status.message().find("partition " + number + " is not loaded") != std::string::npos;
  }
  EXPECT_TRUE(named) << status.ToString();
  const std::string opened = "with partitions " + loaded + " of " + std::to_string(set.size());
  EXPECT_NE(status.message().find(opened), std::string::npos) << status.ToString();
}

/// A random graph in a store of 2 to 21 partitions, opened with all partitions, and a list of all
/// its edges. Each edge has its number in the input as the attribute "eid"; each vertex has a row
/// from UpdateModel::AddRows.
class PartitionSets : public ::testing::Test {
 protected:
  static constexpr int kRounds = 4;

  void Make(std::uint64_t vertices, std::uint64_t edges) {
    input_ = RandomGraph(rng_, {.vertices = vertices,
                                .edges = edges,
                                .edge_types = 1 + static_cast<std::uint32_t>(rng_() % 3),
                                .weighted = rng_() % 2 == 0,
                                .undirected = rng_() % 3 == 0});
    UpdateModel::AddRows(input_);
    input_.edges.attributes = {EdgeAttribute("eid")};
    for (std::size_t e = 0; e < input_.edges.size(); ++e)
      input_.edges.attributes[0].Add(static_cast<std::int64_t>(e));
    BuildOptions options;
    options.partition = {
        .kind = rng_() % 2 == 0 ? PartitionerKind::kRandom : PartitionerKind::kRefined,
        .partitions = 2 + static_cast<std::uint32_t>(rng_() % 20),
        .seed = rng_()};
    options.order = rng_() % 2 == 0 ? OrderKind::kPds : OrderKind::kNatural;
    constexpr Direction kDirections[] = {Direction::kBoth, Direction::kOut, Direction::kIn};
    options.directions = kDirections[rng_() % 3];
    options.topology_codec = rng_() % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano;
    whole_ = nullptr;
    store_ = nullptr;
    path_ = dir_ / (std::to_string(++stores_) + ".rz");
    ASSERT_OK(BuildStore(path_, GraphInput(input_), options));
    store_ = OpenStore(Store::Mode::kRead);
    ASSERT_NE(store_, nullptr);
    whole_ = OpenSet(*store_, All());
    ASSERT_NE(whole_, nullptr);
    FindHolders();
  }

  std::unique_ptr<Store> OpenStore(Store::Mode mode) const {
    auto store = Store::Open(FileSystem::Posix(), path_, mode);
    EXPECT_OK(store);
    return store ? *std::move(store) : nullptr;
  }

  PartitionMarks All() const { return PartitionMarks(store_->manifest().info.partitions, true); }

  /// Draws some of the partitions, but not all.
  PartitionMarks DrawSet() {
    PartitionMarks set(All().size(), false);
    const std::uint64_t of_eight = 1 + rng_() % 7;
    for (std::size_t p = 0; p < set.size(); ++p) set[p] = rng_() % 8 < of_eight;
    set[rng_() % set.size()] = true;
    if (std::count(set.begin(), set.end(), false) == 0) set[rng_() % set.size()] = false;
    return set;
  }

  /// Returns the partitions of a set in random order, some of them twice.
  std::vector<PartitionId> Named(const PartitionMarks& set) {
    std::vector<PartitionId> named;
    for (std::size_t p = 0; p < set.size(); ++p)
      for (std::uint64_t i = 0; set[p] && i < 1 + rng_() % 2; ++i)
        named.push_back(static_cast<PartitionId>(p));
    std::shuffle(named.begin(), named.end(), rng_);
    return named;
  }

  std::unique_ptr<GraphSnapshot> OpenSet(const Store& store, const PartitionMarks& set,
                                         TopologyPlace place = TopologyPlace::kMemory,
                                         std::uint64_t list_cache_bytes = 0) {
    auto graph = Graph::Open(
        store, {.topology = place, .list_cache_bytes = list_cache_bytes, .partitions = Named(set)});
    EXPECT_OK(graph);
    return graph ? *std::move(graph) : nullptr;
  }

  TopologyPlace DrawPlace() {
    return rng_() % 2 == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect;
  }

  /// Returns the partition that owns a vertex.
  std::size_t OwnerOf(VertexId vertex) const {
    return whole_->order().OwnerOf(*whole_->RowOf(vertex));
  }
  PartitionMarks OnlyOwnerOf(VertexId vertex) const {
    PartitionMarks owner(All().size(), false);
    owner[OwnerOf(vertex)] = true;
    return owner;
  }

  std::mt19937_64 rng_{TestSeed()};
  TempDir dir_;
  Path path_;
  int stores_ = 0;
  GraphInput input_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<GraphSnapshot> whole_;
  std::vector<PartitionMarks> holders_;  // by vertex: its owner, and the partitions with its edges

 private:
  void FindHolders() {
    holders_.clear();
    for (VertexId v = 0; v < static_cast<VertexId>(whole_->vertex_count()); ++v)
      holders_.push_back(OnlyOwnerOf(v));
    for (std::uint32_t p = 0; p < whole_->partition_count(); ++p) {
      ASSERT_OK(ScanEdgesById(*whole_, p, [&](VertexId src, VertexId dst, TypeId) {
        holders_[static_cast<std::size_t>(src)][p] = true;
        holders_[static_cast<std::size_t>(dst)][p] = true;
        return Status::Ok();
      }));
    }
  }
};

}  // namespace rhizome::testing
