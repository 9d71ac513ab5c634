#include "index/topology/adjacency.h"

#include <cstring>
#include <random>
#include <set>

#include "index/generation/graph_builder.h"
#include "index/topology/adjacency_format.h"
#include "testing/partition_parts.h"
#include "testing/section_edit.h"
#include "testing/testing.h"

// Tests of partition files. Random graphs are divided, written, parsed and compared with a model;
// then every section is damaged and must be rejected.

namespace rhizome {
namespace {

using testing::Divide;
using testing::DivideOptions;
using testing::GraphModel;
using testing::ModelEdge;
using testing::PartitionParts;
using testing::RandomGraph;
using testing::RandomGraphOptions;
using testing::SectionEdit;

GraphInput DrawGraph(std::mt19937_64& rng) {
  RandomGraphOptions options;
  options.vertices = rng() % 60;
  options.edges = rng() % 200;
  options.vertex_types = 1 + static_cast<std::uint32_t>(rng() % 3);
  options.edge_types = rng() % 2 == 0 ? 1 : 2 + static_cast<std::uint32_t>(rng() % 300);
  options.weighted = rng() % 2 == 0;
  options.undirected = rng() % 2 == 0;
  return RandomGraph(rng, options);
}

DivideOptions DrawDivision(std::mt19937_64& rng) {
  const Direction directions[] = {Direction::kOut, Direction::kIn, Direction::kBoth};
  return {.partitions = 1 + static_cast<std::uint32_t>(rng() % 10),
          .grouped = rng() % 2 == 0,
          .directions = directions[rng() % 3],
          .codec = rng() % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano,
          .attributed = rng() % 2 == 0};
}

std::vector<Direction> ListsOf(const Adjacency& adjacency) {
  std::vector<Direction> lists;
  for (const Direction direction : {Direction::kOut, Direction::kIn}) {
    if (adjacency.has(direction)) lists.push_back(direction);
  }
  return lists;
}

// Returns the entries of one list as directed edges by vertex id. Checks the order of the list, and
// its types one by one and by range.
std::vector<ModelEdge> EdgesOfList(const Adjacency& adjacency, const VertexOrder& order,
                                   std::uint32_t edge_types, LocalId local, Direction direction) {
  const VertexId vertex = order.VertexAt(adjacency.RowOf(local));
  const auto range = adjacency.Entries(local, direction);
  std::vector<LocalId> scratch;
  const auto list = adjacency.ReadList(local, direction, scratch);
  EXPECT_EQ(list.size(), range.count);
  std::vector<ModelEdge> edges;
  std::vector<std::uint64_t> of_type(edge_types, 0);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const TypeId type = adjacency.TypeOfEntry(local, direction, i);
    ++of_type.at(type);
    if (i > 0) {
      EXPECT_LE(std::pair(adjacency.TypeOfEntry(local, direction, i - 1), list[i - 1]),
                std::pair(type, list[i]));
    }
    if (adjacency.codec() == TopologyCodec::kEliasFano) {
      const auto bytes = adjacency.CompressedBytes(local, direction);
      EXPECT_EQ(adjacency.DecodeEntry(local, direction, bytes, i), list[i]);
    } else {
      EXPECT_EQ(adjacency.Neighbors(local, direction).neighbors[i], list[i]);
    }
    const VertexId neighbor = order.VertexAt(adjacency.RowOf(list[i]));
    const float weight = adjacency.Weight(direction, range.first + i);
    edges.push_back(direction == Direction::kOut ? ModelEdge{vertex, neighbor, type, weight}
                                                 : ModelEdge{neighbor, vertex, type, weight});
  }
  std::uint64_t first = range.first;
  for (std::uint32_t type = 0; type < edge_types; ++type) {
    const auto part = adjacency.EntriesOfType(local, direction, static_cast<TypeId>(type));
    EXPECT_EQ(part.count, of_type[type]);
    EXPECT_TRUE(part.count == 0 || part.first == first);
    first += part.count;
  }
  EXPECT_EQ(adjacency.EntriesOfType(local, direction, static_cast<TypeId>(edge_types)).count, 0U);
  return edges;
}

void ExpectVertexAgrees(const PartitionParts& parts, const Adjacency& adjacency, std::uint32_t p,
                        LocalId local, const GraphModel& model) {
  const Row row = adjacency.RowOf(local);
  const VertexId vertex = parts.order->VertexAt(row);
  const std::uint64_t set = parts.sets[static_cast<std::size_t>(row)];
  EXPECT_EQ(adjacency.Find(row), local);
  EXPECT_EQ(adjacency.interior(local), std::popcount(set) <= 1);
  std::uint64_t stored = 0;
  const auto bytes = adjacency.PartitionSet(local);
  for (std::size_t i = 0; i < bytes.size(); ++i) stored |= std::uint64_t{bytes[i]} << (8 * i);
  EXPECT_EQ(stored, std::popcount(set) <= 1 ? 0 : set);
  EXPECT_EQ(parts.order->OwnerOf(row) == p, local < adjacency.owned_count());
  for (const Direction direction : ListsOf(adjacency))
    EXPECT_EQ(adjacency.GlobalDegree(local, direction), model.Neighbors(vertex, direction).size());
}

void ExpectAgrees(const PartitionParts& parts, const GraphInput& input) {
  const GraphModel model(input);
  const std::vector<Adjacency> partitions = parts.ParseAll();
  ASSERT_EQ(partitions.size(), parts.partitions);
  std::vector<ModelEdge> expected = model.edges();
  std::sort(expected.begin(), expected.end());
  for (const Direction direction : ListsOf(partitions.front())) {
    std::vector<ModelEdge> found;
    for (std::uint32_t p = 0; p < parts.partitions; ++p) {
      const Adjacency& adjacency = partitions[p];
      for (LocalId local = 0; local < adjacency.vertex_count(); ++local) {
        const auto edges = EdgesOfList(adjacency, *parts.order, parts.edge_types, local, direction);
        found.insert(found.end(), edges.begin(), edges.end());
      }
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);  // each edge once, in all partitions together
  }
  for (std::uint32_t p = 0; p < parts.partitions; ++p) {
    std::set<Row> here;
    for (LocalId local = 0; local < partitions[p].vertex_count(); ++local) {
      ExpectVertexAgrees(parts, partitions[p], p, local, model);
      here.insert(partitions[p].RowOf(local));
    }
    for (Row row = 0; row < static_cast<Row>(input.vertex_count); ++row)
      EXPECT_EQ(partitions[p].Find(row).has_value(), here.contains(row));
  }
}

TEST(AdjacencyTest, PartitionsTogetherAgreeWithTheModel) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 80 && !HasFailure(); ++round) {
    const GraphInput input = DrawGraph(rng);
    ExpectAgrees(Divide(rng, input, DrawDivision(rng)), input);
  }
}

TEST(AdjacencyTest, TypeOfEdgeIsThatOfItsEntry) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const Direction directions : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
    const GraphInput input = RandomGraph(rng, {.vertices = 30, .edges = 150, .edge_types = 7});
    const auto parts = Divide(rng, input, {.partitions = 2, .directions = directions});
    const Direction lists = directions == Direction::kIn ? Direction::kIn : Direction::kOut;
    for (const Adjacency& adjacency : parts.ParseAll()) {
      for (LocalId local = 0; local < adjacency.vertex_count(); ++local) {
        const auto list = adjacency.Entries(local, lists);
        for (std::uint64_t i = 0; i < list.count; ++i)
          EXPECT_EQ(adjacency.TypeOfEdge(list.first + i), adjacency.TypeOfEntry(local, lists, i));
      }
    }
  }
}

// Expects that each in-entry refers to an edge between the same vertices and of the same type, and
// that no two refer to the same edge.
void ExpectEdgeIds(const Adjacency& adjacency) {
  std::vector<std::tuple<LocalId, LocalId, TypeId>> edges(adjacency.edge_count());
  std::vector<LocalId> scratch;
  const auto for_each = [&](Direction direction, auto visit) {
    for (LocalId local = 0; local < adjacency.vertex_count(); ++local) {
      const std::uint64_t first = adjacency.Entries(local, direction).first;
      const auto list = adjacency.ReadList(local, direction, scratch);
      for (std::size_t i = 0; i < list.size(); ++i)
        visit(local, list[i], adjacency.TypeOfEntry(local, direction, i),
              adjacency.EdgeAt(direction, first + i));
    }
  };
  for_each(Direction::kOut, [&](LocalId src, LocalId dst, TypeId type, LocalEdge edge) {
    edges.at(edge) = {src, dst, type};
  });
  std::set<LocalEdge> named;
  for_each(Direction::kIn, [&](LocalId dst, LocalId src, TypeId type, LocalEdge edge) {
    EXPECT_EQ(edges.at(edge), std::tuple(src, dst, type));
    EXPECT_TRUE(named.insert(edge).second) << edge;
  });
  EXPECT_EQ(named.size(), adjacency.edge_count());
}

TEST(AdjacencyTest, WeightsAndAttributesKeepTheIdsOfInEdges) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    GraphInput input = DrawGraph(rng);
    input.undirected = false;
    DivideOptions options = DrawDivision(rng);
    options.directions = Direction::kBoth;
    // There are more partitions than some graphs have edges. Partitions without an edge have no
    // ids.
    for (const Adjacency& adjacency : Divide(rng, input, options).ParseAll()) {
      const bool kept = !input.edges.weight.empty() || options.attributed;
      ASSERT_EQ(adjacency.has_edge_ids(Direction::kIn), kept);
      EXPECT_TRUE(adjacency.has_edge_ids(Direction::kOut));
      EXPECT_EQ(adjacency.attributed(), options.attributed);
      if (kept) ExpectEdgeIds(adjacency);
    }
  }
}

TEST(AdjacencyTest, DamagedIdsOfInEdgesAreRefused) {
  std::mt19937_64 rng(6);
  const GraphInput input = RandomGraph(rng, {.vertices = 30, .edges = 120});
  const auto parts = Divide(rng, input, {.attributed = true});
  const auto parse = [&](const SectionEdit& edit) {
    return testing::AsStatus(parts.Parse(0, edit.Seal()));
  };
  const SectionEdit sound(parts.files[0], FileKind::kPartition, StoreId{});
  ASSERT_OK(parse(sound));
  const std::uint32_t kind = Kind(PartitionSection::kInEdges);
  for (std::size_t i = 0; i < 120; ++i) {
    SectionEdit edit = sound;
    edit.Set(kind, i, edit.Get(kind, i) + 1);
    EXPECT_STATUS(parse(edit), kCorruption);
  }
  SectionEdit missing = sound;
  missing.Remove(kind);
  EXPECT_STATUS(parse(missing), kCorruption);
  // The flag for attributes justifies the section. Without the flag it is rejected.
  SectionEdit denied = sound;
  auto& header = denied.At(Kind(PartitionSection::kHeader)).bytes;
  header[offsetof(PartitionHeader, flags)] &= ~static_cast<std::byte>(kPartitionAttributed);
  EXPECT_STATUS(parse(denied), kCorruption);
}

TEST(AdjacencyTest, OnlyWhatIsNeededIsStored) {
  std::mt19937_64 rng(3);
  const GraphInput plain = RandomGraph(rng, {.vertices = 30, .edges = 100});
  const auto sections = [&](const GraphInput& input, const DivideOptions& options) {
    return SectionEdit(Divide(rng, input, options).files[0], FileKind::kPartition, StoreId{});
  };
  const SectionEdit both = sections(plain, {});
  for (const auto absent :
       {PartitionSection::kOutTypeLists, PartitionSection::kInTypeLists, PartitionSection::kTypes,
        PartitionSection::kInEdges, PartitionSection::kWeights, PartitionSection::kOwnedRows,
        PartitionSection::kOutLists, PartitionSection::kInListSteps})
    EXPECT_FALSE(both.Has(Kind(absent)));
  EXPECT_FALSE(
      sections(plain, {.directions = Direction::kOut}).Has(Kind(PartitionSection::kInNeighbors)));
  EXPECT_FALSE(
      sections(plain, {.directions = Direction::kIn}).Has(Kind(PartitionSection::kOutNeighbors)));
  GraphInput undirected = RandomGraph(rng, {.vertices = 30, .edges = 100, .weighted = true});
  undirected.undirected = true;
  const SectionEdit symmetric = sections(undirected, {});
  EXPECT_TRUE(symmetric.Has(Kind(PartitionSection::kWeights)));
  EXPECT_FALSE(symmetric.Has(Kind(PartitionSection::kInNeighbors)));
  EXPECT_FALSE(symmetric.Has(Kind(PartitionSection::kInEdges)));
  // With edge attributes the file has the ids of in-edges, if it has both directions, and no other
  // additional section.
  const SectionEdit attributed = sections(plain, {.attributed = true});
  EXPECT_TRUE(attributed.Has(Kind(PartitionSection::kInEdges)));
  EXPECT_FALSE(attributed.Has(Kind(PartitionSection::kWeights)));
  EXPECT_FALSE(sections(plain, {.directions = Direction::kIn, .attributed = true})
                   .Has(Kind(PartitionSection::kInEdges)));
  EXPECT_FALSE(sections(undirected, {.attributed = true}).Has(Kind(PartitionSection::kInEdges)));
  const SectionEdit compressed = sections(plain, {.codec = TopologyCodec::kEliasFano});
  EXPECT_TRUE(compressed.Has(Kind(PartitionSection::kOutLists)));
  EXPECT_FALSE(compressed.Has(Kind(PartitionSection::kOutNeighbors)));
  EXPECT_FALSE(compressed.Has(Kind(PartitionSection::kInNeighbors)));
}

TEST(AdjacencyTest, OffsetsAreAsNarrowAsTheEdgesAllow) {
  std::mt19937_64 rng(4);
  for (const auto& [edges, width] :
       {std::pair(200, 1U), std::pair(300, 2U), std::pair(70000, 4U)}) {
    const GraphInput input =
        RandomGraph(rng, {.vertices = 20, .edges = static_cast<std::uint64_t>(edges)});
    SectionEdit file(Divide(rng, input, {}).files[0], FileKind::kPartition, StoreId{});
    EXPECT_EQ(file.At(Kind(PartitionSection::kOutOffsetSteps)).element_bytes, width);
  }
}

TEST(AdjacencyTest, TheOrderOfTheInputDoesNotShow) {
  std::mt19937_64 rng(testing::TestSeed());
  GraphInput input =
      RandomGraph(rng, {.vertices = 12, .edges = 90, .edge_types = 3, .weighted = true});
  const std::uint64_t seed = rng();
  std::mt19937_64 first(seed);
  const auto before = Divide(first, input, {});
  for (auto* column : {&input.edges.src, &input.edges.dst})
    std::reverse(column->begin(), column->end());
  std::reverse(input.edges.type.begin(), input.edges.type.end());
  std::reverse(input.edges.weight.begin(), input.edges.weight.end());
  std::mt19937_64 second(seed);
  EXPECT_EQ(Divide(second, input, {}).files, before.files);
}

TEST(AdjacencyTest, AnotherPartitionCountOrTypeCountIsRefused) {
  std::mt19937_64 rng(5);
  const GraphInput input = RandomGraph(rng, {});
  const auto parts = Divide(rng, input, {.partitions = 2});
  const auto parse = [&](std::uint32_t p, std::uint32_t partitions, std::uint32_t types) {
    auto file =
        SectionFile::Parse(parts.files[0], "part-0000.adj", FileKind::kPartition, StoreId{});
    return Adjacency::Parse(*std::move(file), *parts.order, p, partitions, types);
  };
  EXPECT_OK(parse(0, 2, 1));
  EXPECT_STATUS(parse(1, 2, 1), kCorruption);
  EXPECT_STATUS(parse(0, 3, 1), kCorruption);
  EXPECT_STATUS(parse(0, 2, 2), kCorruption);
}

// A fixed graph of two partitions with every section. Any damage to it must be rejected.
class AdjacencyDamageTest : public ::testing::TestWithParam<std::tuple<bool, TopologyCodec>> {
 protected:
  AdjacencyDamageTest() {
    const auto [grouped, codec] = GetParam();
    std::mt19937_64 rng(grouped ? 11 : 12);
    const GraphInput input = RandomGraph(
        rng, {.vertices = 30, .edges = 120, .vertex_types = 2, .edge_types = 4, .weighted = true});
    parts_ = Divide(rng, input, {.partitions = 3, .grouped = grouped, .codec = codec});
  }
  SectionEdit Edit() const { return {parts_.files[0], FileKind::kPartition, StoreId{}}; }
  Status ParseEdited(const SectionEdit& edit) const {
    return testing::AsStatus(parts_.Parse(0, edit.Seal()));
  }
  PartitionParts parts_;
};

// Weights may be any numbers, and a global degree may be any number not below the local one. Every
// other element depends on another, so raising it by one is noticed.
TEST_P(AdjacencyDamageTest, AnyRaisedElementIsRefused) {
  for (std::uint32_t kind = 1; kind <= Kind(PartitionSection::kPartitionSets); ++kind) {
    const bool degrees = kind >= Kind(PartitionSection::kOutDegrees) &&
                         kind <= Kind(PartitionSection::kInDegreePatches);
    // Both sides of an edge share a type list, so another type in it yields another valid graph.
    if (!Edit().Has(kind) || kind == Kind(PartitionSection::kWeights) ||
        kind == Kind(PartitionSection::kTypes) || degrees)
      continue;
    for (std::size_t i = 0; i < Edit().Count(kind); ++i) {
      SectionEdit edit = Edit();
      edit.Set(kind, i, edit.Get(kind, i) + 1);
      const Status status = ParseEdited(edit);
      // A list may remain sorted when a neighbour, a mirror or a boundary vertex is raised.
      // VerifyGraph notices that (see verify_graph_test). Here the edge ids of the weights detect a
      // changed neighbour.
      if (kind == Kind(PartitionSection::kMirrors) ||
          kind == Kind(PartitionSection::kBoundaryOwned))
        continue;
      EXPECT_EQ(status.code(), StatusCode::kCorruption)
          << "section " << kind << " element " << i << ": " << status.ToString();
    }
  }
}

TEST_P(AdjacencyDamageTest, MissingOrShortenedSectionsAreRefused) {
  SectionEdit all = Edit();
  for (const auto& section : all.sections()) {
    SectionEdit missing = Edit();
    missing.Remove(section.kind);
    EXPECT_STATUS(ParseEdited(missing), kCorruption);
    if (section.bytes.empty()) continue;
    SectionEdit shorter = Edit();
    auto& bytes = shorter.At(section.kind).bytes;
    bytes.erase(bytes.end() - section.element_bytes, bytes.end());
    EXPECT_STATUS(ParseEdited(shorter), kCorruption);
  }
}

TEST_P(AdjacencyDamageTest, WrongFieldsAreNamed) {
  const auto expect = [&](PartitionSection section, std::size_t i, std::uint64_t value,
                          const std::string& field) {
    SectionEdit edit = Edit();
    edit.Set(Kind(section), i, value);
    const Status status = ParseEdited(edit);
    EXPECT_STATUS(status, kCorruption);
    EXPECT_NE(status.message().find("part-0000.adj"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(field), std::string::npos) << status.message();
  };
  const std::uint64_t nan = 0x7FC00000;
  expect(PartitionSection::kWeights, 3, nan, "weights, entry 3");
  expect(PartitionSection::kOutOffsetSteps, 0, 1, "out offsets");
  expect(PartitionSection::kInOffsetBases, 0, 2, "in offsets");
  if (std::get<1>(GetParam()) == TopologyCodec::kNone) {
    expect(PartitionSection::kOutNeighbors, 7, 0xFFFFFFFF, "out neighbours, entry 7");
    expect(PartitionSection::kInNeighbors, 7, 0xFFFFFFFF, "in neighbours, entry 7");
  } else {
    expect(PartitionSection::kOutListSteps, 0, 1, "out list offsets");
    expect(PartitionSection::kOutLists, 0, 57, "out lists");
    expect(PartitionSection::kInLists, 0, 57, "in lists");
  }
  expect(PartitionSection::kOutTypeLists, 0, 1, "out type lists, entry 0");
  expect(PartitionSection::kTypes, 2, 4, "types, entry 2");
  expect(PartitionSection::kTypeEnds, 2, 0, "type ends, entry 2");
  expect(PartitionSection::kMirrors, 0, 31, "mirrors, entry 0");
  expect(PartitionSection::kPartitionSets, 0, 0, "partition set");
  expect(PartitionSection::kPartitionSets, 0, 0xFF, "partition set");
  expect(PartitionSection::kBoundaryOwned, 0, std::uint64_t{1} << 63, "boundary vertices, word 0");
}

TEST_P(AdjacencyDamageTest, FlagsThatDenyASectionAreRefused) {
  for (const std::uint32_t flag : {kPartitionOut, kPartitionIn, kPartitionWeighted}) {
    SectionEdit edit = Edit();
    PartitionHeader header{};
    auto& bytes = edit.At(Kind(PartitionSection::kHeader)).bytes;
    ASSERT_EQ(bytes.size(), sizeof(header));
    std::memcpy(&header, bytes.data(), sizeof(header));
    header.flags &= ~flag;
    std::memcpy(bytes.data(), &header, sizeof(header));
    EXPECT_STATUS(ParseEdited(edit), kCorruption);
  }
}

TEST_P(AdjacencyDamageTest, DegreesWithoutTheirPatchAreRefused) {
  for (const auto section : {PartitionSection::kOutDegrees, PartitionSection::kInDegrees}) {
    SectionEdit edit = Edit();
    edit.Set(Kind(section), 0, 0xFF);
    EXPECT_STATUS(ParseEdited(edit), kCorruption);
  }
}

// A sealed file with random numbers is rejected, or every query stays in bounds (asan, ubsan).
TEST_P(AdjacencyDamageTest, RandomDamageNeverCrashes) {
  std::mt19937_64 rng(testing::TestSeed());
  int accepted = 0;
  for (int round = 0; round < 600; ++round) {
    SectionEdit edit = Edit();
    for (std::uint64_t changes = 1 + rng() % 2; changes > 0; --changes) {
      auto& section = edit.sections()[rng() % edit.sections().size()];
      if (section.bytes.empty()) continue;
      section.bytes[rng() % section.bytes.size()] ^= static_cast<std::byte>(1U << (rng() % 8));
    }
    const auto adjacency = parts_.Parse(0, edit.Seal());
    if (!adjacency) {
      EXPECT_STATUS(adjacency, kCorruption);
      continue;
    }
    ++accepted;
    for (LocalId local = 0; local < adjacency->vertex_count(); ++local) {
      for (const Direction direction : {Direction::kOut, Direction::kIn}) {
        EdgesOfList(*adjacency, *parts_.order, 4, local, direction);
        EXPECT_GE(adjacency->GlobalDegree(local, direction),
                  adjacency->Entries(local, direction).count);
      }
    }
  }
  EXPECT_LT(accepted, 300);  // weights and degrees, mostly
}

INSTANTIATE_TEST_SUITE_P(GroupedOrNotByCodec, AdjacencyDamageTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(TopologyCodec::kNone,
                                                              TopologyCodec::kEliasFano)));

}  // namespace
}  // namespace rhizome
