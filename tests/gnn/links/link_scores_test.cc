#include "rhizome/link_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "cache/blocks/pair_schedule.h"
#include "cache/job/safetensors.h"
#include "cache/policy/basic_policies.h"
#include "gnn/gnn_testing.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/ingest.h"
#include "rhizome/policy.h"
#include "rhizome/write_batch.h"
#include "testing/testing.h"

// Tests of link scores (dot product, DistMult, MLP) against libtorch in double precision, for every
// array layout and memory size, and of PairSchedule, the order in which pairs of chunks are read.

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1();

namespace rhizome {
namespace {

using testing::MakeArray;
using testing::TempDir;

constexpr std::uint64_t kLinkScoresVertices = 6000;
constexpr std::uint64_t kLinkScoresDim = 72;
constexpr std::uint64_t kMemory = std::uint64_t{8} << 20;

struct Opened {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

/// A store with the same rows in every array layout, more rows than the smallest memory caches, and
/// edges of three types.
class LinkScoresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < kLinkScoresVertices * kLinkScoresDim; ++i)
      rows_.push_back(normal(random_));
    GraphInput input;
    input.vertex_count = kLinkScoresVertices;
    for (std::uint64_t e = 0; e < 3 * kLinkScoresVertices; ++e) {
      input.edges.src.push_back(static_cast<VertexId>(random_() % kLinkScoresVertices));
      input.edges.dst.push_back(static_cast<VertexId>(random_() % kLinkScoresVertices));
      input.edges.type.push_back(static_cast<TypeId>(random_() % 3));
    }
    input.vertex_type_names = {"vertex"};
    input.edge_type_names = {"a", "b", "c"};
    for (const char* name : {"row", "chunk", "shard", "half"}) {
      input.arrays.push_back(MakeArray(name, kLinkScoresDim, DataType::kFloat32, rows_));
      if (std::string_view(name) == "half") {
        const std::vector<c10::Half> halves(rows_.begin(), rows_.end());
        input.arrays.back() = MakeArray(name, kLinkScoresDim, DataType::kFloat16, halves);
      }
      ArrayInput& array = input.arrays.back();
      array.chunk_rows = 256;
      if (array.name == "row") continue;
      array.layout = ArrayLayout::kChunk;
      array.codec = {.kind = CodecKind::kBloscLz4, .level = 5};
      if (array.name == "shard") {
        array.chunk_rows = 1024;
        array.inner_rows = 128;
      }
    }
    std::vector<std::int64_t> counts(kLinkScoresVertices);
    std::iota(counts.begin(), counts.end(), -1000);
    input.arrays.push_back(MakeArray("count", 1, DataType::kInt64, counts));
    input.arrays.push_back(MakeArray("when", 1, DataType::kInt64, std::move(counts)));
    input.arrays.back().attributes = {{"type", "timestamp"}};
    BuildOptions build;
    build.partition.partitions = 3;
    const JobControl control;
    ASSERT_OK(
        IngestGraph(FileSystem::Posix(), path(), std::move(input), build, StoreId(), control));
  }

  Path path() const { return folder_ / "s"; }

  Opened Open(Store::Mode mode = Store::Mode::kRead) const {
    Opened opened;
    auto store = Store::Open(FileSystem::Posix(), path(), mode);
    EXPECT_OK(store);
    opened.store = *std::move(store);
    auto graph = Graph::Open(*opened.store);
    EXPECT_OK(graph);
    opened.graph = *std::move(graph);
    return opened;
  }

  std::vector<VertexPair> Pairs(std::size_t count, std::uint64_t bound = kLinkScoresVertices) {
    std::vector<VertexPair> pairs(count);
    for (VertexPair& pair : pairs) {
      pair = {.src = static_cast<VertexId>(random_() % bound),
              .dst = static_cast<VertexId>(random_() % bound),
              .type = static_cast<TypeId>(random_() % 3)};
    }
    return pairs;
  }

  Path SaveDecoder(std::map<std::string, NamedTensor> tensors) const {
    const Path path = folder_ / "decoder.safetensors";
    TensorFile file;
    file.tensors = std::move(tensors);
    EXPECT_OK(SaveSafetensors(path, file));
    return path;
  }

  NamedTensor RandomTensor(std::vector<std::int64_t> shape) {
    std::normal_distribution<float> normal(0, 0.2F);
    NamedTensor tensor{.shape = std::move(shape), .values = {}};
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    for (std::int64_t i = 0; i < count; ++i) tensor.values.push_back(normal(random_));
    return tensor;
  }

  /// Returns scores in the order of the pairs.
  static Result<std::vector<float>> Score(const Graph& graph, const LinkScoreOptions& options,
                                          const std::vector<VertexPair>& pairs,
                                          LinkScoreReport* report = nullptr) {
    std::size_t given = 0;
    const PairSource source = [&](std::span<VertexPair> out) -> Result<std::size_t> {
      const std::size_t count = std::min(out.size(), pairs.size() - given);
      std::copy_n(pairs.begin() + static_cast<std::ptrdiff_t>(given), count, out.begin());
      given += count;
      return count;
    };
    std::vector<float> all;
    const ScoreSink sink = [&](std::span<const VertexPair> taken, std::span<const float> scores) {
      EXPECT_TRUE(std::equal(taken.begin(), taken.end(),
                             pairs.begin() + static_cast<std::ptrdiff_t>(all.size())));
      all.insert(all.end(), scores.begin(), scores.end());
      return Status::Ok();
    };
    const JobControl control;
    RHIZOME_ASSIGN_OR_RETURN(
        const LinkScoreReport made,
        rhizome_gnn_scores_v1()->Score(*graph.Snapshot(), options, source, sink, control));
    if (report != nullptr) *report = made;
    return all;
  }

  torch::Tensor RowsOf(const std::vector<VertexPair>& pairs, VertexId VertexPair::*end) const {
    torch::Tensor rows = torch::empty({static_cast<std::int64_t>(pairs.size()), kLinkScoresDim});
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      std::memcpy(rows.data_ptr<float>() + i * kLinkScoresDim,
                  rows_.data() + static_cast<std::size_t>(pairs[i].*end) * kLinkScoresDim,
                  kLinkScoresDim * sizeof(float));
    }
    return rows;
  }

  static void ExpectNear(const std::vector<float>& scores, const torch::Tensor& expected,
                         double error) {
    ASSERT_EQ(static_cast<std::int64_t>(scores.size()), expected.numel());
    const torch::Tensor dense = expected.to(torch::kFloat32).contiguous();
    for (std::size_t i = 0; i < scores.size(); ++i)
      ASSERT_NEAR(scores[i], dense.data_ptr<float>()[i], error) << "pair " << i;
  }

  const TempDir folder_;
  std::mt19937_64 random_{testing::TestSeed()};
  std::vector<float> rows_;  // [kLinkScoresVertices, kLinkScoresDim]
};

TEST_F(LinkScoresTest, DotIsTheDotProductWhateverTheLayoutMemoryAndThreads) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(30'000);
  const torch::Tensor expected =
      (RowsOf(pairs, &VertexPair::src).to(torch::kFloat64) * RowsOf(pairs, &VertexPair::dst))
          .sum(1);
  std::vector<float> first;
  for (const char* array : {"row", "chunk", "shard"}) {
    for (const std::uint64_t memory : {kMemory, 16 * kMemory}) {
      LinkScoreReport report;
      const auto scores =
          Score(*opened.graph,
                {.array = array, .memory_bytes = memory, .threads = memory == kMemory ? 2U : 1U},
                pairs, &report);
      ASSERT_OK(scores);
      ExpectNear(*scores, expected, 1e-4);
      if (first.empty()) first = *scores;
      EXPECT_EQ(first, *scores) << array;
      EXPECT_EQ(report.pairs, pairs.size());
      if (memory == kMemory) {
        EXPECT_GT(report.batches, 1U);
      }
    }
  }
}

TEST_F(LinkScoresTest, FewPairsReadFewRows) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(20);
  for (const char* array : {"row", "shard"}) {
    LinkScoreReport report;
    ASSERT_OK(Score(*opened.graph, {.array = array, .memory_bytes = kMemory}, pairs, &report));
    EXPECT_EQ(report.chunk_reads, 0U) << array;
    EXPECT_GT(report.rows_read, 0U);
    EXPECT_LE(report.rows_read, 40U);
  }
  LinkScoreReport report;
  ASSERT_OK(Score(*opened.graph, {.array = "chunk", .memory_bytes = kMemory}, pairs, &report));
  EXPECT_EQ(report.rows_read, 0U);
  EXPECT_LE(report.chunk_reads, (kLinkScoresVertices + 255) / 256);
}

TEST_F(LinkScoresTest, HalvesAreWidened) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(500);
  const auto scores = Score(*opened.graph, {.array = "half", .memory_bytes = kMemory}, pairs);
  ASSERT_OK(scores);
  const auto half = [&](VertexId VertexPair::*end) {
    return RowsOf(pairs, end).to(torch::kFloat16).to(torch::kFloat64);
  };
  ExpectNear(*scores, (half(&VertexPair::src) * half(&VertexPair::dst)).sum(1), 1e-4);
}

TEST_F(LinkScoresTest, DistMultTakesTheRelationOfThePairsType) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(4000);
  const NamedTensor relations = RandomTensor({3, kLinkScoresDim});
  const torch::Tensor table = torch::tensor(relations.values).reshape({3, kLinkScoresDim});
  torch::Tensor type = torch::empty({static_cast<std::int64_t>(pairs.size())}, torch::kInt64);
  for (std::size_t i = 0; i < pairs.size(); ++i) type.data_ptr<std::int64_t>()[i] = pairs[i].type;
  LinkScoreOptions options{.array = "chunk",
                           .scorer = "distmult",
                           .decoder = SaveDecoder({{"relations", relations}}),
                           .memory_bytes = kMemory};
  auto scores = Score(*opened.graph, options, pairs);
  ASSERT_OK(scores);
  const torch::Tensor src = RowsOf(pairs, &VertexPair::src).to(torch::kFloat64);
  const torch::Tensor dst = RowsOf(pairs, &VertexPair::dst);
  ExpectNear(*scores, (src * table.index_select(0, type) * dst).sum(1), 1e-4);

  // A single relation vector applies to all pairs.
  NamedTensor one{.shape = {1, kLinkScoresDim},
                  .values = {relations.values.begin(), relations.values.begin() + kLinkScoresDim}};
  options.decoder = SaveDecoder({{"relations", one}});
  scores = Score(*opened.graph, options, pairs);
  ASSERT_OK(scores);
  ExpectNear(*scores, (src * table[0] * dst).sum(1), 1e-4);

  NamedTensor two{
      .shape = {2, kLinkScoresDim},
      .values = {relations.values.begin(), relations.values.begin() + 2 * kLinkScoresDim}};
  options.decoder = SaveDecoder({{"relations", two}});
  EXPECT_STATUS(Score(*opened.graph, options, {{.src = 0, .dst = 1, .type = 2}}), kInvalidArgument);
}

TEST_F(LinkScoresTest, AnMlpTakesTheProductOrBothRows) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(4000);
  const torch::Tensor src = RowsOf(pairs, &VertexPair::src);
  const torch::Tensor dst = RowsOf(pairs, &VertexPair::dst);
  for (const bool joined : {false, true}) {
    std::map<std::string, NamedTensor> file;
    const std::int64_t inputs = joined ? 2 * kLinkScoresDim : kLinkScoresDim;
    file["layers.0.weight"] = RandomTensor({24, inputs});
    file["layers.0.bias"] = RandomTensor({24});
    file["layers.1.weight"] = RandomTensor({1, 24});
    file["layers.1.bias"] = RandomTensor({1});
    const auto tensor = [&](const std::string& name) {
      const NamedTensor& named = file[name];
      return torch::tensor(named.values).reshape(named.shape).to(torch::kFloat64);
    };
    torch::Tensor hidden = (joined ? torch::cat({src, dst}, 1) : src * dst).to(torch::kFloat64);
    hidden =
        torch::relu(torch::matmul(hidden, tensor("layers.0.weight").t()) + tensor("layers.0.bias"));
    const torch::Tensor expected =
        torch::matmul(hidden, tensor("layers.1.weight").t()) + tensor("layers.1.bias");
    std::vector<float> first;
    for (const std::uint32_t threads : {1U, 2U}) {
      const auto scores = Score(*opened.graph,
                                {.array = "row",
                                 .scorer = "mlp",
                                 .decoder = SaveDecoder(file),
                                 .memory_bytes = kMemory * (threads == 1 ? 16 : 1),
                                 .threads = threads},
                                pairs);
      ASSERT_OK(scores);
      ExpectNear(*scores, expected.squeeze(1), 1e-3);
      if (first.empty()) first = *scores;
      EXPECT_EQ(first, *scores);
    }
  }
}

TEST_F(LinkScoresTest, RowsThatWerePutAndNewVerticesCount) {
  {
    Opened opened = Open(Store::Mode::kWrite);
    WriteBatch batch;
    batch.PutVertex(ExternalId(static_cast<std::int64_t>(kLinkScoresVertices)));
    for (const VertexId vertex : {VertexId{7}, static_cast<VertexId>(kLinkScoresVertices)}) {
      const std::vector<float> row(kLinkScoresDim, static_cast<float>(vertex));
      for (const char* array : {"row", "chunk", "shard"})
        batch.PutRow(ExternalId(vertex), array, std::as_bytes(std::span(row)));
    }
    ASSERT_OK(opened.graph->Write(batch));
  }
  const Opened opened = Open();
  rows_.resize((kLinkScoresVertices + 1) * kLinkScoresDim);
  for (const std::uint64_t vertex : {std::uint64_t{7}, kLinkScoresVertices})
    std::fill_n(rows_.begin() + static_cast<std::ptrdiff_t>(vertex * kLinkScoresDim),
                kLinkScoresDim, static_cast<float>(vertex));
  std::vector<VertexPair> pairs = Pairs(5000, kLinkScoresVertices + 1);
  pairs.push_back({.src = 7, .dst = static_cast<VertexId>(kLinkScoresVertices)});
  for (const std::size_t count : {pairs.size(), std::size_t{3}}) {
    const std::vector<VertexPair> last(pairs.end() - static_cast<std::ptrdiff_t>(count),
                                       pairs.end());
    const torch::Tensor expected =
        (RowsOf(last, &VertexPair::src).to(torch::kFloat64) * RowsOf(last, &VertexPair::dst))
            .sum(1);
    for (const char* array : {"row", "chunk", "shard"}) {
      const auto scores = Score(*opened.graph, {.array = array, .memory_bytes = kMemory}, last);
      ASSERT_OK(scores);
      ExpectNear(*scores, expected, 0.5);  // sums of up to three million
    }
  }
}

TEST_F(LinkScoresTest, IntegersAreScoredAsFloats) {
  const Opened opened = Open();
  const std::vector<VertexPair> pairs = Pairs(2000);
  const auto scores = Score(*opened.graph, {.array = "count", .memory_bytes = kMemory}, pairs);
  ASSERT_OK(scores);
  std::vector<float> expected;  // the products have at most 24 bits or are rounded once
  for (const VertexPair& pair : pairs)
    expected.push_back(static_cast<float>((pair.src - 1000) * (pair.dst - 1000)));
  EXPECT_EQ(*scores, expected);
}

TEST_F(LinkScoresTest, WhatDoesNotFitIsRefused) {
  const Opened opened = Open();
  const Graph& graph = *opened.graph;
  const std::vector<VertexPair> pairs = Pairs(10);
  EXPECT_STATUS(Score(graph, {.array = "none"}, pairs), kNotFound);
  EXPECT_STATUS(Score(graph, {.array = "when"}, pairs), kInvalidArgument);
  EXPECT_STATUS(Score(graph, {.array = "row", .memory_bytes = 1000}, pairs), kOutOfMemory);
  EXPECT_STATUS(Score(graph, {.array = "row"}, {{.src = -1, .dst = 0}}), kInvalidArgument);
  EXPECT_STATUS(Score(graph, {.array = "row"}, {{.src = 0, .dst = kLinkScoresVertices}}),
                kInvalidArgument);
  LinkScoreOptions options{.array = "row", .scorer = "mlp", .decoder = "none"};
  EXPECT_STATUS(Score(graph, options, pairs), kNotFound);
  options.decoder = path() / "FORMAT";
  EXPECT_STATUS(Score(graph, options, pairs), kInvalidArgument);
  const auto refused = [&](const char* kind, std::map<std::string, NamedTensor> tensors) {
    options.scorer = kind;
    options.decoder = SaveDecoder(std::move(tensors));
    EXPECT_STATUS(Score(graph, options, pairs), kInvalidArgument);
  };
  refused("distmult", {});
  refused("distmult", {{"relations", RandomTensor({3, kLinkScoresDim - 1})}});
  refused("distmult",
          {{"relations", RandomTensor({3, kLinkScoresDim})}, {"more", RandomTensor({1})}});
  refused("mlp", {});
  refused("mlp", {{"layers.0.weight", RandomTensor({1, kLinkScoresDim})}});
  refused("mlp", {{"layers.0.weight", RandomTensor({2, kLinkScoresDim})},
                  {"layers.0.bias", RandomTensor({2})}});
  refused("mlp", {{"layers.0.weight", RandomTensor({1, kLinkScoresDim})},
                  {"layers.0.bias", RandomTensor({2})}});
}

TEST_F(LinkScoresTest, ErrorsOfSourceAndSinkEndTheRun) {
  const Opened opened = Open();
  const LinkScoreOptions options{.array = "row", .memory_bytes = kMemory};
  const auto* door = rhizome_gnn_scores_v1();
  const PairSource one = [](std::span<VertexPair> out) -> Result<std::size_t> {
    out.front() = {.src = 1, .dst = 2};
    return 1;
  };
  const ScoreSink full = [](auto, auto) { return Status::OutOfSpace("full"); };
  const JobControl control;
  EXPECT_STATUS(door->Score(*opened.graph->Snapshot(), options, one, full, control), kOutOfSpace);
  const PairSource bad = [](auto) -> Result<std::size_t> {
    return Fail(Status::InvalidArgument("line 3"));
  };
  EXPECT_STATUS(door->Score(*opened.graph->Snapshot(), options, bad, full, control),
                kInvalidArgument);
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(door->Score(*opened.graph->Snapshot(), options, one, full, cancelled),
                kInterrupted);
}

TEST(PairScheduleTest, EveryPairIsInTheCellOfItsChunks) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t rows = 1 + random() % 3000;
    const std::uint64_t chunk_rows = 1 + random() % 200;
    const std::uint64_t group = 1 + random() % 6;
    std::vector<PlacedPair> pairs(random() % 2000);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      pairs[i] = {.src = static_cast<Row>(random() % rows),
                  .dst = static_cast<Row>(random() % rows),
                  .place = static_cast<std::uint32_t>(i)};
    }
    const std::vector<PlacedPair> before = pairs;
    const PairSchedule schedule(pairs, chunk_rows, group);
    std::set<std::uint32_t> places;
    std::set<std::uint64_t> chunks;
    std::size_t next = 0;
    for (const PairCell& cell : schedule.cells()) {
      EXPECT_EQ(cell.begin, next);
      EXPECT_LT(cell.begin, cell.end);
      for (next = cell.begin; next < cell.end; ++next) {
        EXPECT_EQ(static_cast<std::uint64_t>(pairs[next].src) / chunk_rows, cell.src_chunk);
        EXPECT_EQ(static_cast<std::uint64_t>(pairs[next].dst) / chunk_rows, cell.dst_chunk);
        EXPECT_EQ(pairs[next].src, before[pairs[next].place].src);
        EXPECT_EQ(pairs[next].dst, before[pairs[next].place].dst);
        places.insert(pairs[next].place);
      }
      chunks.insert({cell.src_chunk, cell.dst_chunk});
    }
    EXPECT_EQ(places.size(), pairs.size());
    EXPECT_EQ(chunks.size(), schedule.distinct_chunks());
    EXPECT_GE(schedule.Chunks().size(), schedule.distinct_chunks());
  }
}

// Source chunks are taken in groups of g, and each target chunk is used once for each group. A
// cache of g + 1 chunks then reads exactly kChunks / g * kChunks chunks.
TEST(PairScheduleTest, AGroupReadsEachChunkOnce) {
  constexpr std::uint64_t kChunks = 12;
  constexpr std::uint64_t kGroup = 4;
  std::vector<PlacedPair> pairs;
  for (std::uint64_t src = 0; src < kChunks; ++src)
    for (std::uint64_t dst = 0; dst < kChunks; ++dst)
      pairs.push_back({.src = static_cast<Row>(10 * src),
                       .dst = static_cast<Row>(10 * dst),
                       .place = static_cast<std::uint32_t>(pairs.size())});
  const PairSchedule schedule(pairs, 10, kGroup);
  Trace trace;
  for (const std::uint64_t chunk : schedule.Chunks()) {
    const auto key = static_cast<CacheKey>(chunk);
    trace.AddStep(std::span(&key, 1));
  }
  const auto policy = *MakePolicy(
      {.kind = PolicyKind::kBelady, .frame_count = kGroup + 1, .key_count = kChunks, .cost = {}},
      trace);
  EXPECT_LE(Replay(*policy, trace)->reads(), kChunks / kGroup * kChunks);
}

}  // namespace
}  // namespace rhizome
