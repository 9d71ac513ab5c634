#include <algorithm>
#include <fstream>
#include <thread>

#include "gnn/gnn_testing.h"
#include "rhizome/gnn/block_plan.h"
#include "rhizome/gnn/bounded_queue.h"
#include "rhizome/gnn/chunk_reader.h"
#include "rhizome/gnn/inference_log.h"
#include "rhizome/gnn/loader.h"
#include "rhizome/gnn/superbatch.h"

namespace rhizome {
namespace {

using testing::TempDir;

Minibatch RandomMinibatch(std::mt19937_64& random) {
  Minibatch m;
  m.tag = random();
  m.rows.resize(random() % 50);
  for (Row& row : m.rows) row = static_cast<Row>(random() % 1000);
  m.seed_count = m.rows.empty() ? 0 : random() % m.rows.size();
  m.hop_offsets = {0, m.seed_count, m.rows.size()};
  m.csr.offsets.assign(m.seed_count + 1, 0);
  m.csr.neighbors.resize(random() % 100, 7);
  m.degrees.resize(random() % 2 == 0 ? 0 : m.rows.size(), 3);
  return m;
}

void ExpectEqual(const Minibatch& a, const Minibatch& b) {
  EXPECT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.seed_count, b.seed_count);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.hop_offsets, b.hop_offsets);
  EXPECT_EQ(a.csr.offsets, b.csr.offsets);
  EXPECT_EQ(a.csr.neighbors, b.csr.neighbors);
  EXPECT_EQ(a.degrees, b.degrees);
}

TEST(SuperbatchTest, MinibatchesComeBackAsTheyWere) {
  const TempDir folder;
  std::mt19937_64 random(testing::TestSeed());
  std::vector<Minibatch> minibatches;
  Result<SuperbatchWriter> writer = SuperbatchWriter::Create(FileSystem::Posix(), folder / "s");
  ASSERT_OK(writer);
  for (int i = 0; i < 20; ++i) {
    minibatches.push_back(RandomMinibatch(random));
    ASSERT_OK(writer->Append(minibatches.back()));
  }
  const auto entries = writer->Finish();
  ASSERT_OK(entries);
  const auto file = FileSystem::Posix().OpenRead(folder / "s");
  ASSERT_OK(file);
  for (std::size_t i = 0; i < minibatches.size(); ++i) {
    const Result<Minibatch> read = ReadMinibatch(**file, (*entries)[i]);
    ASSERT_OK(read);
    ExpectEqual(*read, minibatches[i]);
  }
}

TEST(SuperbatchTest, DamagedBytesAreRefused) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::byte> bytes = EncodeMinibatch(RandomMinibatch(random));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_STATUS(DecodeMinibatch(std::span(bytes).subspan(0, size)), kCorruption);
  }
  const TempDir folder;
  std::vector<std::byte> damaged = bytes;
  damaged[random() % damaged.size()] ^= std::byte{4};
  ASSERT_OK(WriteWholeFile(FileSystem::Posix(), folder / "s", damaged));
  const auto file = FileSystem::Posix().OpenRead(folder / "s");
  ASSERT_OK(file);
  EXPECT_STATUS(
      ReadMinibatch(**file,
                    {.offset_bytes = 0, .size_bytes = bytes.size(), .crc32c = Crc32c(bytes)}),
      kCorruption);
}

TEST(BoundedQueueTest, DeliversInOrderThenTheStatus) {
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.Push(i));
    queue.Finish(Status::IoError("the end"));
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.Pop()->value(), i);
  EXPECT_STATUS(queue.Pop(), kIoError);
  producer.join();
}

TEST(BoundedQueueTest, CancellingWakesAWaitingProducer) {
  BoundedQueue<int> queue(1);
  std::thread producer([&] {
    EXPECT_TRUE(queue.Push(1));
    EXPECT_FALSE(queue.Push(2));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  queue.Cancel();
  producer.join();
  EXPECT_STATUS(queue.Pop(), kInterrupted);
}

TEST(BlockPlanTest, BlocksCoverTheUnfinishedChunks) {
  const std::vector<bool> done = {false, true, false};
  for (const std::uint64_t block_rows : {1, 128, 130, 1000}) {
    std::vector<int> covered(700, 0);
    for (const Block& block : MakeBlocks(700, 256, block_rows, done)) {
      EXPECT_EQ(block.begin % static_cast<Row>(kTileRows), 0);
      EXPECT_EQ(static_cast<std::uint64_t>(block.begin) / 256, block.output_chunk);
      EXPECT_EQ(static_cast<std::uint64_t>(block.end - 1) / 256, block.output_chunk);
      for (Row row = block.begin; row < block.end; ++row) ++covered[static_cast<std::size_t>(row)];
    }
    for (std::size_t row = 0; row < covered.size(); ++row) {
      EXPECT_EQ(covered[row], row / 256 == 1 ? 0 : 1) << row;
    }
  }
}

/// A small store, open.
class PipelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    planted_.vertices = 500;
    graph_data_ = testing::MakePlanted(planted_);
    ASSERT_OK(testing::WriteStore(folder_ / "s", planted_, graph_data_));
    auto store = Store::Open(FileSystem::Posix(), folder_ / "s", Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  const TempDir folder_;
  testing::PlantedOptions planted_;
  testing::PlantedGraph graph_data_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(PipelineTest, BlockListsAreTheGraphsInNeighboursAscending) {
  const auto planner = BlockPlanner::Create(*graph_, {.source_chunk_rows = 128});
  ASSERT_OK(planner);
  const Block block{.begin = 128, .end = 384, .output_chunk = 0};
  const Result<BlockLists> lists = planner->Plan(block);
  ASSERT_OK(lists);
  std::vector<bool> chunks(4, false);
  for (Row row = block.begin; row < block.end; ++row) {
    std::vector<Row> expected;
    const auto neighbors = graph_->Neighbors(graph_->VertexAt(row), Direction::kIn);
    ASSERT_OK(neighbors);
    for (const Neighbor& neighbor : *neighbors) expected.push_back(graph_->RowOf(neighbor.vertex));
    std::sort(expected.begin(), expected.end());
    const auto t = static_cast<std::size_t>(row - block.begin);
    const std::vector<Row> got(lists->neighbors.begin() + lists->offsets[t],
                               lists->neighbors.begin() + lists->offsets[t + 1]);
    EXPECT_EQ(got, expected) << "row " << row;
    for (const Row neighbor : expected) chunks[static_cast<std::size_t>(neighbor) / 128] = true;
    chunks[static_cast<std::size_t>(row) / 128] = true;
  }
  std::vector<std::uint64_t> expected_chunks;
  for (std::uint64_t c = 0; c < 4; ++c) {
    if (chunks[c]) expected_chunks.push_back(c);
  }
  EXPECT_EQ(lists->source_chunks, expected_chunks);
}

TEST_F(PipelineTest, ChunksComeInOrderWithTheirRowsUnderEveryPolicy) {
  const auto array = store_->OpenArray("feat");
  ASSERT_OK(array);
  const auto decoder = FeatureDecoder::Create((*array)->entry(), /*normalize=*/false);
  ASSERT_OK(decoder);
  std::mt19937_64 random(testing::TestSeed());
  std::vector<std::uint64_t> sequence(60);
  for (std::uint64_t& chunk : sequence) chunk = random() % 4;
  const JobControl control;
  for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kFifo,
                                  PolicyKind::kStatic, PolicyKind::kNone}) {
    ChunkReader reader(
        **array, *decoder, sequence,
        {.policy = policy, .cache_bytes = 2 * ChunkReader::DecodedBytes((*array)->entry())},
        control);
    for (const std::uint64_t wanted : sequence) {
      const Result<DecodedChunk> chunk = reader.Next();
      ASSERT_OK(chunk);
      ASSERT_EQ(chunk->chunk, wanted);
      for (std::uint64_t i = 0; i < chunk->rows; ++i) {
        const auto vertex =
            static_cast<std::size_t>(graph_->VertexAt(chunk->first_row + static_cast<Row>(i)));
        ASSERT_EQ(chunk->values[i * 16], graph_data_.features[vertex * 16]);
      }
    }
    EXPECT_EQ(reader.stats().requests, sequence.size());
    EXPECT_GE(reader.stats().hits + reader.stats().reads, sequence.size());
    EXPECT_EQ(policy == PolicyKind::kNone, reader.stats().hits == 0);
  }
}

TEST_F(PipelineTest, TheLoaderDeliversTheRowsItSampledAndStopsWhenLeft) {
  std::filesystem::create_directory(folder_ / "scratch");
  LoaderOptions options;
  options.sampler.fanouts = {4, 4};
  options.features = "feat";
  options.superbatch = 3;
  options.cache_bytes = 64 * 50;
  options.scratch = folder_ / "scratch";
  const JobControl control;
  auto seeds = [next = std::uint64_t{0}]() mutable {
    const auto v = static_cast<VertexId>(next % 400);
    return std::optional<SeedBatch>({.tag = next, .key = next++, .vertices = {v, v + 1, v + 2}});
  };
  const auto loader = Loader::Open(*graph_, options, seeds, control);
  ASSERT_OK(loader);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto minibatch = (*loader)->Next();
    ASSERT_OK(minibatch);
    ASSERT_TRUE(minibatch->has_value());
    const Minibatch& m = **minibatch;
    EXPECT_EQ(m.tag, i);
    EXPECT_EQ(m.seed_count, 3u);
    for (std::size_t r = 0; r < m.rows.size(); ++r) {
      const auto vertex = static_cast<std::size_t>(graph_->VertexAt(m.rows[r]));
      const auto* const row = reinterpret_cast<const float*>(m.features.row(r).data());
      for (std::size_t d = 0; d < 16; ++d) {
        ASSERT_EQ(row[d], graph_data_.features[vertex * 16 + d]);
      }
    }
  }
  // The sequence never ends: destroying the loader must stop both threads all the same.
}

TEST_F(PipelineTest, AnErrorWhileSamplingReachesTheConsumer) {
  std::filesystem::create_directory(folder_ / "scratch");
  LoaderOptions options;
  options.sampler.fanouts = {4};
  options.features = "feat";
  options.superbatch = 2;
  options.scratch = folder_ / "scratch";
  const JobControl control;
  auto seeds = [next = std::uint64_t{0}]() mutable {
    const VertexId vertex = next < 4 ? 1 : 1 << 20;  // out of range from the fifth on
    return std::optional<SeedBatch>({.tag = next, .key = next++, .vertices = {vertex}});
  };
  const auto loader = Loader::Open(*graph_, options, seeds, control);
  ASSERT_OK(loader);
  for (int i = 0; i < 4; ++i) ASSERT_OK((*loader)->Next());
  EXPECT_STATUS((*loader)->Next(), kInvalidArgument);
}

TEST(InferenceLogTest, RemembersChunksAndRefusesAnotherJob) {
  const TempDir folder;
  FileSystem& fs = FileSystem::Posix();
  FinishedChunk finished;
  finished.file = {.path = "arrays/x/c.5.0", .size_bytes = 17, .xxh3 = {}, .crc32c = 99};
  finished.file.xxh3[3] = std::byte{0xa7};
  finished.accuracy.Add(Split::kTest, true);
  {
    const auto log = InferenceLog::Open(fs, folder / "LOG", "job a");
    ASSERT_OK(log);
    ASSERT_OK((*log)->Append(1, 5, finished));
  }
  const auto log = InferenceLog::Open(fs, folder / "LOG", "job a");
  ASSERT_OK(log);
  EXPECT_TRUE((*log)->Finished(0).empty());
  ASSERT_EQ((*log)->Finished(1).count(5), 1u);
  EXPECT_EQ((*log)->Finished(1).at(5).file, finished.file);
  EXPECT_EQ((*log)->Finished(1).at(5).accuracy.correct, finished.accuracy.correct);
  EXPECT_STATUS(InferenceLog::Open(fs, folder / "LOG", "job b"), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
