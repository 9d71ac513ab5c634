#include "index/topology/vertex_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>

#include "index/base/memory_sink.h"
#include "index/topology/vertex_order_format.h"
#include "testing/section_edit.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::uint32_t Kind(OrderSection section) { return static_cast<std::uint32_t>(section); }

struct Sample {
  std::vector<VertexId> vertex_of_row;
  std::vector<PartitionId> owner;
  std::vector<TypeId> type;
  std::uint32_t partitions = 1;
  std::uint32_t types = 1;

  std::vector<std::byte> Write() const {
    MemorySink sink;
    EXPECT_OK(VertexOrder::Write(sink, StoreId{}, {vertex_of_row, owner, type, partitions, types}));
    return sink.Take();
  }
  Result<VertexOrder> Parse(std::vector<std::byte> bytes) const {
    auto file = SectionFile::Parse(std::move(bytes), "order.ord", FileKind::kOrder, StoreId{});
    if (!file) return Fail(file.error());
    return VertexOrder::Parse(*std::move(file), vertex_of_row.size(), partitions, types);
  }
};

// Draws an order. With `even`, every (owner, type) has vertices.
Sample DrawOfVertexOrder(std::mt19937_64& rng, std::size_t n, std::uint32_t partitions,
                         std::uint32_t types, bool grouped, bool even = false) {
  Sample sample;
  sample.partitions = partitions;
  sample.types = types;
  for (std::size_t v = 0; v < n; ++v) {
    sample.owner.push_back(static_cast<PartitionId>((even ? v : rng()) % partitions));
    if (types > 1)
      sample.type.push_back(static_cast<TypeId>((even ? v / partitions : rng()) % types));
  }
  sample.vertex_of_row.resize(n);
  std::iota(sample.vertex_of_row.begin(), sample.vertex_of_row.end(), VertexId{0});
  std::shuffle(sample.vertex_of_row.begin(), sample.vertex_of_row.end(), rng);
  if (!grouped) return sample;
  std::stable_sort(sample.vertex_of_row.begin(), sample.vertex_of_row.end(),
                   [&](VertexId a, VertexId b) {
                     const auto key = [&](VertexId v) {
                       return std::tuple(sample.owner[v], types > 1 ? sample.type[v] : TypeId{0});
                     };
                     return key(a) < key(b);
                   });
  return sample;
}

void ExpectAgreesOfVertexOrder(const VertexOrder& order, const Sample& sample) {
  const auto n = static_cast<Row>(sample.vertex_of_row.size());
  std::vector<std::uint64_t> owned(sample.partitions, 0);
  std::vector<Row> typed_rows(sample.types, 0);
  for (Row row = 0; row < n; ++row) {
    const VertexId vertex = sample.vertex_of_row[row];
    EXPECT_EQ(order.VertexAt(row), vertex);
    EXPECT_EQ(order.RowOf(vertex), row);
    EXPECT_EQ(order.OwnerOf(row), sample.owner[vertex]);
    EXPECT_EQ(order.TypeOf(row), sample.types > 1 ? sample.type[vertex] : 0);
    for (const OrderSegment& segment : order.segments()) {
      if (segment.first_row == row) {
        EXPECT_EQ(segment.first_typed_row, typed_rows[order.TypeOf(row)]);
      }
    }
    ++owned[sample.owner[vertex]];
    ++typed_rows[order.TypeOf(row)];
  }
  for (std::uint32_t p = 0; p < sample.partitions; ++p) {
    EXPECT_EQ(order.owned_count(p), owned[p]);
    if (!order.grouped()) continue;
    for (Row row = order.owner_begin(p); row < order.owner_begin(p + 1); ++row)
      EXPECT_EQ(order.OwnerOf(row), p);
  }
}

TEST(VertexOrderTest, AgreesWithTheVectorsItWasWrittenFrom) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const bool grouped = round % 2 == 0;
    const Sample sample =
        DrawOfVertexOrder(rng, rng() % 100, 1 + static_cast<std::uint32_t>(rng() % 9),
                          round % 3 == 0 ? 1 : 1 + static_cast<std::uint32_t>(rng() % 5), grouped);
    const auto order = sample.Parse(sample.Write());
    ASSERT_OK(order);
    EXPECT_EQ(order->size(), sample.vertex_of_row.size());
    EXPECT_TRUE(order->grouped() || !grouped);
    ExpectAgreesOfVertexOrder(*order, sample);
  }
}

TEST(VertexOrderTest, SinglePartitionAndTypeIsGroupedInAnyOrder) {
  std::mt19937_64 rng(7);
  const Sample sample = DrawOfVertexOrder(rng, 50, 1, 1, false);
  const auto order = sample.Parse(sample.Write());
  ASSERT_OK(order);
  EXPECT_TRUE(order->grouped());
  ExpectAgreesOfVertexOrder(*order, sample);
}

// The files are sealed again with correct checksums. An order whose segments merely end elsewhere
// is another valid order, so the test changes only elements of segments that depend on others.
TEST(VertexOrderTest, AnyChangedElementIsRefused) {
  std::mt19937_64 rng(testing::TestSeed());
  for (const bool grouped : {true, false}) {
    const Sample sample = DrawOfVertexOrder(rng, 24, 3, 2, grouped, true);
    const std::vector<std::byte> bytes = sample.Write();
    for (const OrderSection section :
         {OrderSection::kHeader, OrderSection::kRowOfVertex, OrderSection::kVertexOfRow}) {
      testing::SectionEdit probe(bytes, FileKind::kOrder, StoreId{});
      for (std::size_t i = 0; i < probe.Count(Kind(section)); ++i) {
        testing::SectionEdit edit(bytes, FileKind::kOrder, StoreId{});
        edit.Set(Kind(section), i, edit.Get(Kind(section), i) + 1);
        EXPECT_STATUS(sample.Parse(edit.Seal()), kCorruption);
      }
    }
  }
}

TEST(VertexOrderTest, SegmentsThatDoNotCoverTheRowsAreRefused) {
  std::mt19937_64 rng(3);
  const Sample sample = DrawOfVertexOrder(rng, 24, 3, 2, true, true);  // six segments of four rows
  const auto refused = [&](std::size_t segment, std::size_t offset, std::uint64_t value) {
    testing::SectionEdit edit(sample.Write(), FileKind::kOrder, StoreId{});
    edit.Set(Kind(OrderSection::kSegments), segment * sizeof(OrderSegmentRecord) + offset, value);
    EXPECT_STATUS(sample.Parse(edit.Seal()), kCorruption);
  };
  refused(0, 0, 1);   // does not begin at row 0
  refused(2, 0, 4);   // empty segment before
  refused(5, 0, 24);  // empty last segment
  refused(1, 7, 1);   // first row of 2^56 and more
  refused(2, 8, 3);   // typed rows do not add up
  refused(3, 16, 0);  // owners decrease
  refused(5, 16, 3);  // owner beyond the partitions
  refused(5, 18, 2);  // type beyond the types
  refused(0, 18, 1);  // the same segment twice
  refused(4, 20, 1);  // reserved
}

TEST(VertexOrderTest, OwnersAndTypesBeyondTheirRangeAreRefused) {
  std::mt19937_64 rng(1);
  const Sample sample = DrawOfVertexOrder(rng, 40, 3, 2, false);
  for (const auto& [section, limit] :
       {std::pair(OrderSection::kOwnerOfRow, 3), std::pair(OrderSection::kTypeOfRow, 2)}) {
    testing::SectionEdit edit(sample.Write(), FileKind::kOrder, StoreId{});
    edit.Set(Kind(section), 5, static_cast<std::uint64_t>(limit));
    EXPECT_STATUS(sample.Parse(edit.Seal()), kCorruption);
  }
}

TEST(VertexOrderTest, MissingSectionsAndOtherCountsAreRefused) {
  std::mt19937_64 rng(2);
  for (const bool grouped : {true, false}) {
    const Sample sample = DrawOfVertexOrder(rng, 30, 4, 3, grouped);
    testing::SectionEdit all(sample.Write(), FileKind::kOrder, StoreId{});
    for (const auto& section : all.sections()) {
      testing::SectionEdit edit(sample.Write(), FileKind::kOrder, StoreId{});
      edit.Remove(section.kind);
      EXPECT_STATUS(sample.Parse(edit.Seal()), kCorruption);
    }
    auto file = SectionFile::Parse(sample.Write(), "order.ord", FileKind::kOrder, StoreId{});
    ASSERT_OK(file);
    EXPECT_STATUS(VertexOrder::Parse(*std::move(file), 31, 4, 3), kCorruption);
  }
}

}  // namespace
}  // namespace rhizome
