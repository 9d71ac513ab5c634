#include <fstream>
#include <random>
#include <vector>

#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"
#include "index/topology/vertex_order.h"
#include "storage/base/exceptions.h"
#include "storage/section/paged_sections.h"
#include "testing/partition_parts.h"
#include "testing/section_edit.h"
#include "testing/testing.h"

// Partition files that are read when they are used, with correct checksums but wrong contents: each
// access returns an error or some value in range.

namespace rhizome {
namespace {

using testing::Divide;
using testing::DivideOptions;
using testing::PartitionParts;
using testing::RandomGraph;
using testing::SectionEdit;
using testing::TempDir;

// Reads all lists of a partition as a graph does. Throws, or returns, the errors of bad contents.
Status ReadAll(const Adjacency& adjacency, const VertexOrder& order, std::uint32_t partitions,
               std::uint32_t edge_types) {
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < adjacency.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      if (!adjacency.has(direction)) continue;
      RHIZOME_ASSIGN_OR_RETURN(const auto list, adjacency.FetchList(local, direction, scratch));
      const auto all = adjacency.Entries(local, direction);
      EXPECT_EQ(list.size(), all.count);
      for (std::uint64_t i = 0; i < all.count;) {
        const TypeId type = adjacency.TypeOfEntry(local, direction, i);
        EXPECT_LT(type, edge_types);
        const auto range = adjacency.EntriesOfType(local, direction, type);
        EXPECT_GT(range.count, 0U);
        EXPECT_LE(range.first + range.count, all.first + all.count);
        if (range.count == 0) break;
        for (std::uint64_t at = range.first; at < range.first + range.count; ++at) {
          static_cast<void>(adjacency.Weight(direction, at));
          if (adjacency.has_edge_ids(direction)) {
            EXPECT_LT(adjacency.EdgeAt(direction, at), adjacency.edge_count());
          }
        }
        i += range.count;
      }
      for (const LocalId neighbor : list) {
        const Row row = adjacency.RowOf(neighbor);
        EXPECT_LT(static_cast<std::uint64_t>(row), order.size());
        static_cast<void>(adjacency.Find(row));
      }
      static_cast<void>(adjacency.GlobalDegree(local, direction));
    }
    const auto set = adjacency.PartitionSet(local);
    for (std::uint32_t p = partitions; p < set.size() * 8; ++p)
      EXPECT_EQ(set[p / 8] >> (p % 8) & 1, 0) << "partition " << p;
  }
  return Status::Ok();
}

TEST(PagedAdjacencyTest, WrongContentsAreErrorsOrInRange) {
  std::mt19937_64 rng(testing::TestSeed());
  TempDir dir;
  int refused = 0, read = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const std::uint32_t edge_types = 1 + static_cast<std::uint32_t>(rng() % 4);
    const auto input = RandomGraph(rng, {.vertices = 30 + rng() % 60,
                                         .edges = 100 + rng() % 300,
                                         .edge_types = edge_types,
                                         .weighted = rng() % 2 == 0,
                                         .undirected = rng() % 3 == 0});
    const DivideOptions division{
        .partitions = 1 + static_cast<std::uint32_t>(rng() % 10),
        .grouped = rng() % 2 == 0,
        .directions = Direction::kBoth,
        .codec = rng() % 2 == 0 ? TopologyCodec::kNone : TopologyCodec::kEliasFano,
        .attributed = rng() % 2 == 0};
    const PartitionParts parts = Divide(rng, input, division);
    for (int change = 0; change < 12; ++change) {
      const auto p = static_cast<std::uint32_t>(rng() % division.partitions);
      SectionEdit edit(parts.files[p], FileKind::kPartition, StoreId{});
      if (change > 0) {  // the first is read unchanged
        auto& section = edit.sections()[rng() % edit.sections().size()];
        if (section.bytes.empty()) continue;
        edit.Set(section.kind, rng() % edit.Count(section.kind),
                 rng() % 3 == 0 ? rng() : rng() % 9);
      }
      const auto bytes = edit.Seal();
      const Path path = dir / "p.adj";
      std::ofstream(path, std::ios::binary | std::ios::trunc)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      auto file = SectionFile::Load(FileSystem::Posix(), path, FileKind::kPartition, StoreId{},
                                    {.paged = true, .direct = false});
      ASSERT_OK(file);
      const Status status = Guarded([&]() -> Status {
        RHIZOME_ASSIGN_OR_RETURN(
            const Adjacency adjacency,
            Adjacency::Parse(*std::move(file), *parts.order, p, division.partitions, edge_types));
        return ReadAll(adjacency, *parts.order, division.partitions, edge_types);
      });
      if (change == 0) {
        EXPECT_OK(status);
      }
      if (!status.ok()) {
        EXPECT_EQ(status.code(), StatusCode::kCorruption) << status.ToString();
      }
      ++(status.ok() ? read : refused);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(read, 40);
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace rhizome
