#include <random>

#include "index/generation/graph_builder.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "sections.h"
#include "seeds.h"
#include "testing/partition_parts.h"

namespace {

using namespace rhizome;

/// Runs every query on a parsed partition; the sanitizers check that it stays in bounds.
void Walk(const Adjacency& partition, Direction direction) {
  std::uint64_t edges = 0;
  std::vector<LocalId> scratch;
  for (LocalId v = 0; v < partition.vertex_count(); ++v) {
    const auto range = partition.Entries(v, direction);
    const auto list = partition.ReadList(v, direction, scratch);
    RHIZOME_CHECK(list.size() == range.count);
    for (std::size_t i = 0; i < list.size(); ++i) {
      RHIZOME_CHECK(partition.Find(partition.RowOf(list[i])) == list[i]);
      if (partition.codec() == TopologyCodec::kEliasFano) {
        const auto bytes = partition.CompressedBytes(v, direction);
        RHIZOME_CHECK(partition.DecodeEntry(v, direction, bytes, i) == list[i]);
      }
      const TypeId type = partition.TypeOfEntry(v, direction, i);
      RHIZOME_CHECK(partition.EntriesOfType(v, direction, type).count > 0);
      static_cast<void>(partition.Weight(direction, range.first + i));
    }
    edges += list.size();
    static_cast<void>(partition.GlobalDegree(v, direction));
    static_cast<void>(partition.PartitionSet(v));
  }
  RHIZOME_CHECK(edges == partition.edge_count());
}

/// Number of kinds of small graphs. They differ in types, weights, grouped rows, directions,
/// compressed lists and edge attributes; some have every edge in both directions.
constexpr std::size_t kShapes = 14;
constexpr std::size_t kHubs = 12;  // the first shape with hubs, in plain or compressed lists

rhizome::testing::PartitionParts MakeParts(std::size_t shape) {
  std::mt19937_64 rng(shape);
  if (shape >= kHubs) {
    GraphInput input = rhizome::testing::RandomGraph(rng, {.vertices = 80, .edges = 900});
    for (int i = 0; i < 2000; ++i) {  // exceeds the range of a byte and the steps of a block
      input.edges.src.push_back(0);
      input.edges.dst.push_back(static_cast<VertexId>(rng() % 80));
    }
    return rhizome::testing::Divide(
        rng, input,
        {.partitions = 2,
         .codec = shape == kHubs ? TopologyCodec::kNone : TopologyCodec::kEliasFano});
  }
  constexpr Direction kDirections[] = {Direction::kBoth, Direction::kOut, Direction::kIn};
  const GraphInput input =
      rhizome::testing::RandomGraph(rng, {.vertices = 9,
                                          .edges = 24,
                                          .vertex_types = shape % 2 == 0 ? 1U : 2U,
                                          .edge_types = shape % 3 == 0 ? 3U : 1U,
                                          .weighted = shape % 4 < 2,
                                          .undirected = shape == 5 || shape == 10});
  return rhizome::testing::Divide(
      rng, input,
      {.partitions = shape == 11 ? 9U : 2U,
       .grouped = shape % 4 != 1,
       .directions = kDirections[shape < 6 ? 0 : shape % 3],
       .codec = shape % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano,
       .attributed = shape % 5 == 2});
}

const rhizome::testing::PartitionParts& PartsOf(std::size_t shape) {
  static const auto* const parts = [] {
    auto* const made = new std::vector<rhizome::testing::PartitionParts>();
    for (std::size_t i = 0; i < kShapes; ++i) made->push_back(MakeParts(i));
    return made;
  }();
  return (*parts)[shape % kShapes];
}

}  // namespace

// Opens a sealed partition file of a small graph with arbitrary content. It must be rejected, or
// every query on it must stay in bounds.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const rhizome::testing::PartitionParts& parts = PartsOf(data[0]);
  auto bytes = fuzzing::SealSections({data + 1, size - 1}, FileKind::kPartition);
  auto file =
      SectionFile::Parse(std::move(bytes), "fuzz", FileKind::kPartition, fuzzing::FuzzStoreId());
  if (!file) return 0;
  const auto partition =
      Adjacency::Parse(*std::move(file), *parts.order, 0, parts.partitions, parts.edge_types);
  if (!partition) {
    RHIZOME_CHECK(partition.error().code() == StatusCode::kCorruption);
    return 0;
  }
  for (const Direction direction : {Direction::kOut, Direction::kIn})
    if (partition->has(direction)) Walk(*partition, direction);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (std::size_t shape = 0; shape < kShapes; ++shape) {
    const auto sections = SectionsOf(PartsOf(shape).files[0], FileKind::kPartition, StoreId{});
    const Seed seed = Joined({static_cast<std::uint8_t>(shape)}, sections);
    // In large files most changes are in the last bytes, which describe the boundary vertices.
    const bool large = shape >= kHubs;
    AddChanged(seeds, seed, large ? seed.size() - 1500 : 0, large ? 800 : 2500);
    if (large) AddChanged(seeds, seed, 0, 100);
  }
  return seeds;
}
