#include <algorithm>
#include <deque>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/chunk_reader.h"
#include "cache/blocks/inference_log.h"
#include "cache/feed/feed_pipeline.h"
#include "cache/feed/minibatch_sampler.h"
#include "cache/feed/row_degrees.h"
#include "cache/feed/superbatch.h"
#include "cache/job/bounded_queue.h"
#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"
#include "testing/planted_graph.h"

// Tests of the parts of the pipelines: minibatches on scratch files, bounded queues, division of a
// layer into blocks, neighbour lists of blocks, reading chunks through a cache policy, the feed
// pipeline, and the log of an inference.

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
  m.offsets.assign(m.seed_count + 1, 0);
  m.neighbors.resize(random() % 100, 7);
  m.degrees.resize(random() % 2 == 0 ? 0 : m.rows.size(), 3);
  return m;
}

void ExpectEqual(const Minibatch& a, const Minibatch& b) {
  EXPECT_EQ(a.tag, b.tag);
  EXPECT_EQ(a.seed_count, b.seed_count);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.hop_offsets, b.hop_offsets);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.neighbors, b.neighbors);
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

// A thread may still read the next superbatch after another thread has cancelled.
TEST(BoundedQueueTest, WhatWasPeekedOutlivesACancel) {
  const auto item = std::make_shared<int>(7);
  BoundedQueue<std::shared_ptr<int>> queue(1);
  EXPECT_EQ(queue.Peek(), nullptr);
  ASSERT_TRUE(queue.Push(item));
  EXPECT_FALSE(queue.TryPush(item));
  const std::shared_ptr<int>* const peeked = queue.Peek();
  ASSERT_NE(peeked, nullptr);
  queue.Cancel();
  EXPECT_EQ(item.use_count(), 2);
  EXPECT_EQ(**peeked, 7);
  EXPECT_EQ(queue.Peek(), nullptr);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.TryPush(item));
  EXPECT_STATUS(queue.Pop(), kInterrupted);
}

TEST(BoundedQueueTest, CancellingWakesAWaitingProducer) {
  BoundedQueue<int> queue(1);
  std::thread producer([&] {
    EXPECT_TRUE(queue.Push(1));
    EXPECT_FALSE(queue.Push(2));
  });
  ASSERT_TRUE(testing::Eventually([&] { return !queue.empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the producer most likely waits now
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
      EXPECT_LE(block.rows(), RoundUpToTiles(block_rows));
      for (Row row = block.begin; row < block.end; ++row) ++covered[static_cast<std::size_t>(row)];
    }
    for (std::size_t row = 0; row < covered.size(); ++row) {
      EXPECT_EQ(covered[row], row / 256 == 1 ? 0 : 1) << row;
    }
  }
}

/// A small open store.
class PipelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    planted_.vertices = 500;
    graph_data_ = testing::MakePlanted(planted_);
    ASSERT_OK(testing::WriteStore(folder_ / "s", planted_, graph_data_));
    auto store = Store::Open(FileSystem::Posix(), folder_ / "s", Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(std::as_const(*store_));
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  const TempDir folder_;
  testing::PlantedOptions planted_;
  testing::PlantedGraph graph_data_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<GraphSnapshot> graph_;
};

TEST(BlockPlanTest, BlocksEndWhereTheyHaveManyEdges) {
  const std::vector<std::uint64_t> edges = {5, 1, 1, 1, 9, 1, 1, 3, 1, 1};
  const auto blocks =
      MakeBlocks(10, 8, 128, {false, false},
                 {.most = 6, .of = [&](std::uint64_t place) { return edges[place]; }});
  std::vector<std::pair<Row, Row>> ends;
  for (const Block& block : blocks) ends.emplace_back(block.begin, block.end);
  EXPECT_EQ(ends, (std::vector<std::pair<Row, Row>>{{0, 2}, {2, 4}, {4, 5}, {5, 9}, {9, 10}}));
}

TEST(BlockPlanTest, BlocksAreFewAndOfTheSameSizeAndSpanChunks) {
  const std::vector<Block> blocks = MakeBlocks(2560, 256, 2048, std::vector<bool>(10, false));
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].rows(), 1280u);
  EXPECT_EQ(blocks[1].rows(), 1280u);
}

TEST(BlockPlanTest, PartsLieInOneChunkEach) {
  std::vector<std::pair<Row, Row>> parts;
  for (const Block& part : SplitAtChunks(5, 25, 10)) parts.emplace_back(part.begin, part.end);
  EXPECT_EQ(parts, (std::vector<std::pair<Row, Row>>{{5, 10}, {10, 20}, {20, 25}}));
  EXPECT_TRUE(SplitAtChunks(7, 7, 10).empty());
}

/// Returns a random order of rows.
RowOrder RandomOrder(std::uint64_t rows, std::mt19937_64& random) {
  std::vector<std::uint32_t> row_at(rows);
  std::iota(row_at.begin(), row_at.end(), 0U);
  std::shuffle(row_at.begin(), row_at.end(), random);
  return {row_at, rows};
}

/// Expects that the visits of each window name exactly the rows that it stages, each once, at their
/// positions in the source. `window_rows` lists the rows of each window by slot.
void ExpectStaged(const BlockLists& lists, const std::vector<std::vector<Row>>& window_rows,
                  const RowOrder& source, std::uint64_t chunk_rows) {
  ASSERT_EQ(lists.windows(), window_rows.size());
  for (std::size_t window = 0; window < lists.windows(); ++window) {
    std::set<std::uint32_t> staged;
    std::int64_t last_chunk = -1;
    for (const BlockLists::Visit& visit : lists.VisitsOf(window)) {
      EXPECT_LT(last_chunk, static_cast<std::int64_t>(visit.chunk));
      last_chunk = static_cast<std::int64_t>(visit.chunk);
      for (std::uint32_t i = visit.first; i < visit.last; ++i) {
        const BlockLists::StagedRow& row = lists.staged[i];
        ASSERT_LT(row.slot, window_rows[window].size());
        EXPECT_TRUE(staged.insert(row.slot).second);
        EXPECT_EQ(source.PlaceOf(window_rows[window][row.slot]),
                  visit.chunk * chunk_rows + row.in_chunk);
      }
    }
    EXPECT_EQ(staged.size(), window_rows[window].size());
  }
}

template <typename T>
void AppendWindows(const std::vector<T>& rows, std::uint64_t stage_rows,
                   std::vector<std::vector<Row>>& windows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % stage_rows == 0) windows.emplace_back();
    windows.back().push_back(static_cast<Row>(rows[i]));
  }
}

TEST_F(PipelineTest, BlockListsAreTheGraphsInNeighboursAscendingInEveryOrderAndWindow) {
  std::mt19937_64 random(testing::TestSeed());
  const auto degrees = DegreesOfRows(*graph_, Direction::kIn);
  ASSERT_OK(degrees);
  for (const std::uint64_t stage_rows : {1000, 64, 1}) {
    for (const bool shuffled : {false, true}) {
      const RowOrder targets = shuffled ? RandomOrder(500, random) : RowOrder();
      const RowOrder source = shuffled ? RandomOrder(500, random) : RowOrder();
      auto planner = BlockPlanner::Create(*graph_, {.source_chunk_rows = 128,
                                                    .stage_rows = stage_rows,
                                                    .source_order = &source,
                                                    .target_order = &targets,
                                                    .degrees = *degrees});
      ASSERT_OK(planner);
      const Block block{.begin = 128, .end = 384};
      const Result<BlockLists> lists = planner->Plan(block);
      ASSERT_OK(lists);
      ASSERT_EQ(lists->targets.size(), 256u);
      std::set<Row> read;  // for the sums
      std::set<Row> own;
      for (std::size_t t = 0; t < 256; ++t) {
        const Row row = lists->targets[t];
        EXPECT_EQ(row, targets.RowAt(128 + t));
        own.insert(row);
        std::vector<Row> expected;
        const auto neighbors = graph_->Neighbors(*graph_->VertexAt(row), Direction::kIn);
        ASSERT_OK(neighbors);
        for (const Neighbor& neighbor : *neighbors)
          expected.push_back(*graph_->RowOf(neighbor.vertex));
        std::sort(expected.begin(), expected.end());
        read.insert(expected.begin(), expected.end());
        std::vector<Row> listed;
        for (std::uint32_t e = lists->offsets[t]; e < lists->offsets[t + 1]; ++e)
          listed.push_back(lists->rows[lists->neighbors[e]]);
        EXPECT_EQ(listed, expected) << "row " << row;
      }
      std::set<Row> all = read;
      all.insert(own.begin(), own.end());
      const bool one_window = all.size() <= stage_rows;
      EXPECT_EQ(one_window, stage_rows == 1000);
      const std::set<Row>& numbered = one_window ? all : read;
      EXPECT_TRUE(std::equal(lists->rows.begin(), lists->rows.end(), numbered.begin(),
                             numbered.end(),
                             [](std::uint32_t a, Row b) { return static_cast<Row>(a) == b; }));
      std::vector<std::vector<Row>> windows;
      AppendWindows(lists->rows, stage_rows, windows);
      EXPECT_EQ(lists->sum_windows(), windows.size());
      if (one_window) {
        ASSERT_EQ(lists->numbers.size(), 256u);
        for (std::size_t t = 0; t < 256; ++t)
          EXPECT_EQ(lists->rows[lists->numbers[t]], lists->targets[t]);
      } else {
        EXPECT_TRUE(lists->numbers.empty());
        AppendWindows(lists->targets, stage_rows, windows);
      }
      ExpectStaged(*lists, windows, source, 128);
      const JobControl control;
      const auto planned = PlanReads(*graph_,
                                     {.source_chunk_rows = 128,
                                      .stage_rows = stage_rows,
                                      .source_order = &source,
                                      .target_order = &targets,
                                      .degrees = *degrees},
                                     std::span(&block, 1), control);
      ASSERT_OK(planned);
      std::set<std::int64_t> distinct(lists->rows.begin(), lists->rows.end());
      distinct.insert(lists->targets.begin(), lists->targets.end());
      EXPECT_EQ(planned->rows, distinct.size());
      EXPECT_EQ(planned->blocks, 1U);
      const Trace& trace = planned->trace;
      ASSERT_EQ(trace.steps(), lists->windows());
      ASSERT_EQ(trace.keys.size(), lists->visits.size());
      for (std::size_t i = 0; i < trace.keys.size(); ++i)
        EXPECT_EQ(static_cast<std::uint64_t>(trace.keys[i]), lists->visits[i].chunk);
    }
  }
}

TEST_F(PipelineTest, ChunksComeOnceEachWithTheirRowsUnderEveryPolicy) {
  const auto array = store_->OpenArray("feat");
  ASSERT_OK(array);
  const auto decoder = FeatureDecoder::Create((*array)->entry(), /*normalize=*/false);
  ASSERT_OK(decoder);
  std::mt19937_64 random(testing::TestSeed());
  Trace trace;
  for (int step = 0; step < 40; ++step) {
    std::vector<CacheKey> keys;
    for (CacheKey chunk = 0; chunk < 4; ++chunk) {
      if (random() % 2 == 0) keys.push_back(chunk);
    }
    trace.AddStep(keys);
  }
  const JobControl control;
  for (const PolicyKind policy : {PolicyKind::kBelady, PolicyKind::kLru, PolicyKind::kFifo,
                                  PolicyKind::kStatic, PolicyKind::kNone}) {
    for (const bool cached_first : {false, true}) {
      const ChunkReaderOptions options{
          .policy = policy,
          .cached_first = cached_first,
          .cache_bytes = 2 * ChunkReader::DecodedBytes((*array)->entry()),
          .threads = cached_first ? 3U : 1U};
      ChunkReader reader(**array, *decoder, trace, options, control);
      for (std::size_t step = 0; step < trace.steps(); ++step) {
        std::set<std::uint64_t> seen;
        for (std::size_t i = 0; i < trace.step(step).size(); ++i) {
          const Result<DecodedChunk> chunk = reader.Next();
          ASSERT_OK(chunk);
          EXPECT_TRUE(seen.insert(chunk->request).second);
          ASSERT_GE(chunk->request, trace.offsets[step]);
          ASSERT_LT(chunk->request, trace.offsets[step + 1]);
          if (!cached_first) {
            EXPECT_EQ(chunk->request, trace.offsets[step] + i);
          }
          ASSERT_EQ(chunk->chunk, static_cast<std::uint64_t>(trace.keys[chunk->request]));
          for (std::uint64_t row = 0; row < chunk->rows; ++row) {
            const auto vertex = static_cast<std::size_t>(
                *graph_->VertexAt(chunk->first_row + static_cast<Row>(row)));
            ASSERT_EQ(chunk->values[row * 16], graph_data_.features[vertex * 16]);
          }
        }
      }
      const ChunkReaderStats stats = reader.Finish();
      EXPECT_EQ(stats.requests, trace.keys.size());
      EXPECT_GE(stats.hits + stats.reads, trace.keys.size());
      EXPECT_EQ(policy == PolicyKind::kNone, stats.hits == 0);
      const auto replayed =
          *MakePolicy({.kind = policy, .frame_count = 2, .key_count = 4, .cost = {}},
                      ChunkReader::PolicySteps(trace, options));
      EXPECT_EQ(stats.reads, Replay(*replayed, ChunkReader::PolicySteps(trace, options))->reads());
    }
  }
}

TEST_F(PipelineTest, WithoutACacheChunksComeAsTheyAreAppended) {
  const auto array = store_->OpenArray("feat");
  ASSERT_OK(array);
  const auto decoder = FeatureDecoder::Create((*array)->entry(), /*normalize=*/false);
  ASSERT_OK(decoder);
  std::mt19937_64 random(testing::TestSeed());
  const JobControl control;
  for (const bool direct : {false, true}) {
    ChunkReader reader(**array, *decoder, {.threads = 3, .direct = direct, .ahead = 5}, control);
    std::deque<std::uint64_t> wanted;
    std::uint64_t delivered = 0;
    while (delivered < 200) {
      for (std::uint64_t i = random() % 8; i > 0; --i) {
        wanted.push_back(random() % 4);
        reader.Append(wanted.back());
      }
      if (wanted.empty()) continue;
      const Result<DecodedChunk> chunk = reader.Next();
      ASSERT_OK(chunk);
      EXPECT_EQ(chunk->request, delivered++);
      ASSERT_EQ(chunk->chunk, wanted.front());
      wanted.pop_front();
      for (std::uint64_t row = 0; row < chunk->rows; ++row) {
        const auto vertex =
            static_cast<std::size_t>(*graph_->VertexAt(chunk->first_row + static_cast<Row>(row)));
        ASSERT_EQ(chunk->values[row * 16], graph_data_.features[vertex * 16]);
      }
    }
    for (; !wanted.empty(); wanted.pop_front()) ASSERT_OK(reader.Next());
    const ChunkReaderStats stats = reader.Finish();
    EXPECT_EQ(stats.hits, 0U);
    EXPECT_EQ(stats.reads, stats.requests);
  }
}

TEST_F(PipelineTest, TheLoaderDeliversTheRowsItSampledAndStopsWhenLeft) {
  std::filesystem::create_directory(folder_ / "scratch");
  FeedPipelineOptions options;
  options.sampler.sampler.fanouts = {4, 4};
  options.features = "feat";
  options.superbatch = 3;
  options.cache_bytes = 64 * 50;
  options.scratch = folder_ / "scratch";
  const JobControl control;
  auto seeds = [next = std::uint64_t{0}]() mutable {
    const auto v = static_cast<VertexId>(next % 400);
    return std::optional<SeedBatch>({.tag = next, .key = next++, .vertices = {v, v + 1, v + 2}});
  };
  const auto loader = FeedPipeline::Open(*graph_, options, seeds, control);
  ASSERT_OK(loader);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto minibatch = (*loader)->Next();
    ASSERT_OK(minibatch);
    ASSERT_TRUE(minibatch->has_value());
    const Minibatch& m = **minibatch;
    EXPECT_EQ(m.tag, i);
    EXPECT_EQ(m.seed_count, 3u);
    for (std::size_t r = 0; r < m.rows.size(); ++r) {
      const auto vertex = static_cast<std::size_t>(*graph_->VertexAt(m.rows[r]));
      const auto* const row = reinterpret_cast<const float*>(m.features.row(r).data());
      for (std::size_t d = 0; d < 16; ++d) {
        ASSERT_EQ(row[d], graph_data_.features[vertex * 16 + d]);
      }
    }
  }
  // The sequence never ends. Destroying the loader must still stop both threads.
}

TEST_F(PipelineTest, SchedulesMadeOnAThreadOfTheirOwnReadTheSameRows) {
  std::mt19937_64 random(testing::TestSeed());
  std::filesystem::create_directory(folder_ / "scratch");
  std::vector<std::vector<VertexId>> drawn;
  for (std::size_t i = 0; i < 60; ++i)
    drawn.push_back(
        {static_cast<VertexId>(random() % 200), static_cast<VertexId>(200 + random() % 200)});
  // For each minibatch, the number of its rows and of pool hits. The number of rows read also
  // depends on timing, because rows that earlier minibatches still hold are not read again.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> counts[2];
  for (const bool apart : {false, true}) {
    FeedPipelineOptions options;
    options.sampler.sampler.fanouts = {4, 4};
    options.sampler.sampler.threads = apart ? 4 : 1;
    options.features = "feat";
    options.cache_bytes = 50 * 16 * sizeof(float);
    options.superbatch = 7;
    options.scratch = folder_ / "scratch";
    ASSERT_EQ(SchedulesApart(options), apart);
    const JobControl control;
    auto seeds = [&drawn, next = std::size_t{0}]() mutable -> std::optional<SeedBatch> {
      if (next == drawn.size()) return std::nullopt;
      const std::size_t i = next++;
      return SeedBatch{.tag = i, .key = i, .vertices = drawn[i]};
    };
    const auto loader = FeedPipeline::Open(*graph_, options, seeds, control);
    ASSERT_OK(loader);
    std::uint64_t rows = 0;
    std::uint64_t hits = 0;
    for (auto minibatch = (*loader)->Next();; minibatch = (*loader)->Next()) {
      ASSERT_OK(minibatch);
      if (!*minibatch) break;
      rows += (*minibatch)->costs.rows_read;
      hits += (*minibatch)->costs.pool_hits;
      counts[apart].emplace_back((*minibatch)->rows.size(), (*minibatch)->costs.pool_hits);
    }
    EXPECT_GT(hits, 0U);
    EXPECT_GT(rows, 400U) << "rows are read again";
  }
  EXPECT_EQ(counts[0].size(), drawn.size());
  EXPECT_EQ(counts[0], counts[1]);
}

class PipelineErrorTest : public PipelineTest,
                          public ::testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Threads, PipelineErrorTest, ::testing::Values(1U, 4U));

TEST_P(PipelineErrorTest, AnErrorWhileSamplingReachesTheConsumer) {
  std::filesystem::create_directory(folder_ / "scratch");
  FeedPipelineOptions options;
  options.sampler.sampler.fanouts = {4};
  options.sampler.sampler.threads = GetParam();
  options.features = "feat";
  options.superbatch = 2;
  options.scratch = folder_ / "scratch";
  const JobControl control;
  auto seeds = [next = std::uint64_t{0}]() mutable {
    const VertexId vertex = next < 4 ? 1 : 1 << 20;  // out of range from the fifth on
    return std::optional<SeedBatch>({.tag = next, .key = next++, .vertices = {vertex}});
  };
  const auto loader = FeedPipeline::Open(*graph_, options, seeds, control);
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
