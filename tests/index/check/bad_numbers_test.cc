#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/partition/partition_input.h"
#include "index/partition/partitioner.h"
#include "rhizome/change_feed.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "storage/array/array_files.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/codec.h"
#include "storage/array/row_reader.h"
#include "storage/array/row_sums.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome {
namespace {

using testing::AsStatus;
using testing::BuildStore;
using testing::RandomGraph;
using testing::TempDir;
using testing::UpdateModel;

/// Returns invalid numbers that a caller may pass as an id, a row, an edge, a chunk or a count:
/// `count`, and larger numbers. Some are negative when converted to the parameter's type.
std::vector<std::uint64_t> NumbersBeyond(std::uint64_t count) {
  constexpr std::uint64_t kOne = 1;
  std::vector<std::uint64_t> numbers = {count,
                                        count + 1,
                                        kOne << 31,
                                        (kOne << 32) + 1,
                                        kOne << 53,
                                        (kOne << 63) - 1,
                                        kOne << 63,
                                        std::numeric_limits<std::uint64_t>::max() - 1,
                                        std::numeric_limits<std::uint64_t>::max()};  // -1
  return numbers;
}

struct Asked {
  std::string what;
  std::uint64_t count;  ///< smaller numbers are valid
  std::function<Status(std::uint64_t number)> ask;
};

void ExpectRefused(const std::vector<Asked>& all) {
  for (const Asked& asked : all) {
    SCOPED_TRACE(asked.what);
    ASSERT_GT(asked.count, 0U);
    EXPECT_OK(asked.ask(0));
    EXPECT_OK(asked.ask(asked.count - 1));
    for (const std::uint64_t number : NumbersBeyond(asked.count)) {
      SCOPED_TRACE(number);
      const Status refused = asked.ask(number);
      EXPECT_STATUS(refused, kInvalidArgument);
      EXPECT_FALSE(refused.message().empty());
    }
  }
}

/// A graph with rows, and with vertices and rows that were written after its generation was built.
class BadNumbersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 random(testing::TestSeed());
    GraphInput input = RandomGraph(
        random, {.edge_types = 3, .weighted = true, .id_kind = ExternalIdKind::kInteger});
    UpdateModel::AddRows(input);
    BuildOptions options;
    options.partition.partitions = 2;
    ASSERT_OK(BuildStore(folder_ / "g.rz", std::move(input), options));
    auto store = Store::Open(FileSystem::Posix(), folder_ / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
    WriteBatch batch;
    batch.PutVertex(std::int64_t{1} << 40, graph_->vertex_types().front());
    ASSERT_OK(graph_->Write(batch));
    fixed_ = graph_->Snapshot();
    for (const ArrayEntry& array : store_->manifest().arrays)
      if (array.layout == ArrayLayout::kRow && !array.name.ends_with(".crc32c"))
        array_ = array.name;
    ASSERT_FALSE(array_.empty());
  }

  std::vector<Asked> OfVertices(const Graph& graph) const {
    const std::uint64_t vertices = graph.vertex_count();
    const auto id = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
    return {
        {"ExternalIdOf", vertices, [&, id](auto n) { return AsStatus(graph.ExternalIdOf(id(n))); }},
        {"IsDeleted", vertices,
         [&, id](auto n) {
           return graph.IsDeleted(id(n)) ? Status::InvalidArgument("none") : Status::Ok();
         }},
        {"RowOf", vertices, [&, id](auto n) { return AsStatus(graph.RowOf(id(n))); }},
        {"VertexAt", vertices, [&, id](auto n) { return AsStatus(graph.VertexAt(id(n))); }},
        {"TypeOf", vertices, [&, id](auto n) { return AsStatus(graph.TypeOf(id(n))); }},
        {"Degree", vertices,
         [&, id](auto n) { return AsStatus(graph.Degree(id(n), Direction::kBoth)); }},
        {"Neighbors", vertices,
         [&, id](auto n) { return AsStatus(graph.Neighbors(id(n), Direction::kOut)); }},
        {"NeighborsOfType", vertices,
         [&, id](auto n) { return AsStatus(graph.NeighborsOfType(id(n), Direction::kIn, 1)); }},
        {"LookUpNeighbors", vertices,
         [&, id](auto n) {
           const std::vector<VertexId> some = {0, id(n)};
           NeighborLists lists;
           return LookUpNeighbors(graph, some, Direction::kBoth, lists);
         }},
        {"ReadRows", vertices,
         [&, id](auto n) {
           const std::vector<VertexId> some = {0, id(n)};
           std::vector<std::byte> out(2 * store_->manifest().FindArray(array_)->row_bytes());
           return graph.ReadRows(array_, some, out);
         }},
    };
  }

  TempDir folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::shared_ptr<const GraphSnapshot> fixed_;
  std::string array_;
};

TEST_F(BadNumbersTest, OfVerticesAndRowsAreRefused) {
  ExpectRefused(OfVertices(*graph_));
  ExpectRefused(OfVertices(*fixed_));
  const auto refused = fixed_->ExternalIdOf(17000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "there is no vertex 17000: the graph has 21 vertices");
  EXPECT_EQ(fixed_->VertexAt(-1).error().message(),
            "there is no row -1: the graph has 21 vertices");
}

TEST_F(BadNumbersTest, OfEdgesAreRefused) {
  for (std::uint32_t p = 0; p < fixed_->partition_count(); ++p) {
    std::uint64_t edges = 0;
    while (fixed_->TypeOfEdge({static_cast<PartitionId>(p), edges})) ++edges;
    if (edges == 0) continue;
    ExpectRefused({{"TypeOfEdge", edges, [&](auto n) {
                      return AsStatus(fixed_->TypeOfEdge({static_cast<PartitionId>(p), n}));
                    }}});
  }
  EXPECT_STATUS(fixed_->TypeOfEdge({2, 0}), kInvalidArgument);
  EXPECT_STATUS(fixed_->TypeOfEdge({65535, 0}), kInvalidArgument);
  EXPECT_STATUS(fixed_->NeighborsOfType(0, Direction::kOut, 3), kInvalidArgument);
  EXPECT_STATUS(fixed_->NeighborsOfType(0, Direction::kOut, 65535), kInvalidArgument);
}

TEST_F(BadNumbersTest, OfSeedsAndLookUpsAreRefused) {
  const auto sampler = Sampler::Create(*graph_, {.fanouts = {2, kAllNeighbors}});
  ASSERT_OK(sampler);
  const auto lookup = RowLookup::Open(*graph_, array_);
  ASSERT_OK(lookup);
  std::vector<std::byte> row((*lookup)->row_bytes());
  ExpectRefused({
      {"Sample", graph_->vertex_count(),
       [&](auto n) {
         const auto seed = static_cast<VertexId>(n);
         return AsStatus((*sampler)->Sample(std::span(&seed, 1), n));
       }},
      {"RowLookup::Read", graph_->vertex_count(),
       [&](auto n) {
         const auto vertex = static_cast<VertexId>(n);
         return (*lookup)->Read(std::span(&vertex, 1), row);
       }},
      {"ChangeFeed after", graph_->sequence() + 1,
       [&](auto n) {
         if (n < graph_->sequence()) n = graph_->sequence();  // earlier commits were ingested
         return AsStatus(ChangeFeed::Open(*graph_, {.after = n}));
       }},
  });
  for (const std::int64_t fanout : {-2L, kMaxFanout + 1, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max()}) {
    const SamplerOptions options{.fanouts = {fanout}};
    EXPECT_STATUS(Sampler::Create(*graph_, options), kInvalidArgument);
  }
  const SamplerOptions path{.fanouts = {1}, .meta_path = {3}};
  EXPECT_STATUS(Sampler::Create(*graph_, path), kInvalidArgument);
}

TEST_F(BadNumbersTest, OfRowsAndChunksOfAnArrayAreRefused) {
  const auto array = store_->OpenArray(array_);
  ASSERT_OK(array);
  const auto sidecar = store_->OpenArray(SidecarName(array_));
  ASSERT_OK(sidecar);
  const auto reader = RowReader::Open(**array, **sidecar, {});
  ASSERT_OK(reader);
  const auto sums = RowSums::Load((*array)->entry(), **sidecar);
  ASSERT_OK(sums);
  ArrayFiles files(**array, false);
  const ArrayEntry& entry = (*array)->entry();
  std::vector<std::byte> row(entry.row_bytes());
  std::vector<std::byte> chunk;
  const std::uint64_t chunks = entry.chunk_count();
  ExpectRefused({
      {"RowReader::Read", entry.rows,
       [&](auto n) {
         RowTarget target{static_cast<std::int64_t>(n), row.data()};
         return (*reader)->Read(std::span(&target, 1));
       }},
      {"RowSums::Need", entry.rows, [&](auto n) { return (*sums)->Need(n); }},
      {"ReadRows from", entry.rows, [&](auto n) { return (*array)->ReadRows(n, 1, row); }},
      {"ReadChunk", chunks,
       [&](auto n) {
         chunk.resize((*array)->RowsInChunk(n) * entry.row_bytes());
         return AsStatus((*array)->ReadChunk(n, chunk));
       }},
      {"ChunkFile", chunks, [&](auto n) { return AsStatus((*array)->ChunkFile(n)); }},
      {"ArrayFiles::Open", chunks, [&](auto n) { return AsStatus(files.Open(n, true)); }},
  });
  for (const std::uint64_t number : NumbersBeyond(chunks))
    EXPECT_EQ((*array)->RowsInChunk(number), 0U) << number;
  for (const std::uint64_t number : NumbersBeyond(entry.rows + 1))
    EXPECT_STATUS((*array)->ReadRows(0, number, row), kInvalidArgument);
}

TEST_F(BadNumbersTest, OfSizesOfReadsAreRefused) {
  const auto array = store_->OpenArray(array_);
  ASSERT_OK(array);
  const auto sidecar = store_->OpenArray(SidecarName(array_));
  ASSERT_OK(sidecar);
  const auto open = [&](std::uint64_t longest, std::size_t staging) {
    RowReaderOptions options;
    options.max_read_bytes = longest;
    options.staging_bytes = staging;
    return RowReader::Open(**array, **sidecar, options);
  };
  const std::size_t staging = RowReaderOptions().staging_bytes;
  for (const std::uint64_t number : NumbersBeyond(std::uint64_t{1} << 30)) {
    SCOPED_TRACE(number);
    EXPECT_STATUS(open(number, staging), kInvalidArgument);
  }
  EXPECT_STATUS(open(0, staging), kInvalidArgument);
  EXPECT_STATUS(open(4096, 0), kInvalidArgument);
  const std::vector<std::byte> raw(64);
  std::vector<std::byte> out(8);
  for (const CodecKind kind : {CodecKind::kRaw, CodecKind::kZstd, CodecKind::kBloscLz4})
    EXPECT_STATUS(EncodeChunkInto({.kind = kind}, raw, out), kInvalidArgument);
}

TEST(BadPartitionsTest, AreRefused) {
  const std::vector<VertexId> src = {0, 1, 2};
  const std::vector<VertexId> dst = {1, 2, 0};
  const PartitionInput input(3, src, dst);
  const std::vector<PartitionId> sound = {0, 1, 0};
  const std::vector<PartitionId> beyond = {0, 2, 0};
  const std::vector<PartitionId> far = {0, 65535, 0};
  EXPECT_OK(MeasurePartition(input, sound, 2));
  EXPECT_OK(ChooseOwners(input, sound, 2));
  for (const auto& column : {beyond, far, std::vector<PartitionId>{0, 1}}) {
    EXPECT_STATUS(MeasurePartition(input, column, 2), kInvalidArgument);
    EXPECT_STATUS(ChooseOwners(input, column, 2), kInvalidArgument);
  }
  for (const std::uint32_t partitions : {0U, 1025U, 1U << 31, ~0U}) {
    EXPECT_STATUS(MeasurePartition(input, sound, partitions), kInvalidArgument);
    EXPECT_STATUS(ChooseOwners(input, sound, partitions), kInvalidArgument);
  }
}

}  // namespace
}  // namespace rhizome
