#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "rhizome/array_change.h"
#include "rhizome/graph.h"
#include "storage/store/generation_writer.h"
#include "testing/update_history.h"

// Tests of compaction through a graph that is open for reading, while other handles of the store
// write. Each handle has its own file descriptors, so handles exclude each other by their locks as
// processes do.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::DrawBase;
using testing::ExpectVerifies;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

bool Exists(const Path& store, const std::string& generation) {
  return std::filesystem::exists(store / "generations" / generation);
}

class CompactBesideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomBase base = DrawBase(rng_);
    model_.emplace(base.input);
    string_ids_ = base.string_ids();
    directions_ = base.options.directions;
    ASSERT_OK(BuildStore(path_, std::move(base.input), base.options));
    for (int i = 0; i < 5; ++i) WriteMore();
  }

  /// Opens the store for writing, as another process would, and writes a batch.
  void WriteMore() {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    const WriteBatch batch = model_->DrawBatch(rng_, string_ids_, 8);
    ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
    model_->Apply(batch);
  }

  /// Compacts through a reader; `during` runs at the first report of progress.
  Result<CompactResult> Compact(const std::function<void()>& during) {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, testing::OpenStore(path_, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
    bool began = false;
    const JobControl control([&](const JobControl::Progress&) {
      if (!std::exchange(began, true)) during();
    });
    auto result = graph->Compact({.keep_generations = 0, .threads = 2}, control);
    EXPECT_TRUE(began);
    if (result) model_->ExpectAgrees(*graph, directions_);
    return result;
  }

  void ExpectAgrees() {
    ExpectVerifies(path_);
    const auto opened = testing::OpenStoreGraph(path_);
    ASSERT_OK(opened);
    model_->ExpectAgrees(*opened->graph, directions_);
  }

  std::mt19937_64 rng_{testing::TestSeed()};
  TempDir dir_;
  const Path path_ = dir_ / "g.rz";
  std::optional<UpdateModel> model_;
  bool string_ids_ = false;
  Direction directions_ = Direction::kBoth;
};

TEST_F(CompactBesideTest, OtherHandlesWriteMeanwhile) {
  for (int round = 0; round < 4; ++round) {
    const auto result = Compact([&] {
      for (int i = 0; i < 4; ++i) WriteMore();
    });
    ASSERT_OK(result);
    EXPECT_TRUE(result->compacted);
    ExpectAgrees();
    WriteMore();
    ExpectAgrees();
  }
  EXPECT_FALSE(Exists(path_, "000001"));
  EXPECT_TRUE(Exists(path_, "000005"));
}

// The reader is opened beside a writer whose log has the commit of the current generation, as after
// a compaction that was killed.
TEST_F(CompactBesideTest, OneHandleCompactsAgainAndAgain) {
  std::unique_ptr<Store> opened;
  {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = Graph::Open(**store);
    ASSERT_OK(writer);
    ASSERT_OK((*writer)->Compact({.keep_generations = 0}, JobControl()));
    auto reader = testing::OpenStore(path_, Store::Mode::kRead);
    ASSERT_OK(reader);
    opened = *std::move(reader);
  }
  const auto graph = Graph::Open(*opened);
  ASSERT_OK(graph);
  for (std::uint64_t generation = 3; generation < 7; ++generation) {
    for (int i = 0; i < 3; ++i) WriteMore();
    const auto result = (*graph)->Compact({.keep_generations = 0}, JobControl());
    ASSERT_OK(result);
    EXPECT_EQ((*graph)->Snapshot()->store().manifest().generation, generation);
    model_->ExpectAgrees(**graph, directions_);
    ExpectAgrees();
  }
}

TEST_F(CompactBesideTest, OneCompactionAtATime) {
  ASSERT_OK(Compact([&] {
    const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
    ASSERT_OK(reader);
    const auto second = Graph::Open(**reader);
    ASSERT_OK(second);
    EXPECT_STATUS((*second)->Compact({}, JobControl()), kBusy);
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto writer = Graph::Open(**store);
    ASSERT_OK(writer);
    EXPECT_STATUS((*writer)->Compact({}, JobControl()), kBusy);
    EXPECT_TRUE(Exists(path_, "000002"));  // the writer cleaned up, but not these files
  }));
  ExpectAgrees();
}

TEST_F(CompactBesideTest, AWriterKeepsItFromBeginning) {
  const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto graph = Graph::Open(**reader);
  ASSERT_OK(graph);
  EXPECT_STATUS((*graph)->Compact({}, JobControl()), kBusy);
  EXPECT_FALSE(Exists(path_, "000002"));
}

// The next generation would have the arrays of the beginning, so it is not committed.
TEST_F(CompactBesideTest, ChangedArraysUndoIt) {
  const auto result = Compact([&] {
    ASSERT_OK(ArrayChange::Run(FileSystem::Posix(), path_, {},
                               [](ArrayChange& change) { return change.Rename("feat", "feat2"); }));
  });
  EXPECT_STATUS(result, kBusy);
  EXPECT_FALSE(Exists(path_, "000002"));
  ASSERT_OK(ArrayChange::Run(FileSystem::Posix(), path_, {},
                             [](ArrayChange& change) { return change.Rename("feat2", "feat"); }));
  ExpectAgrees();
}

TEST_F(CompactBesideTest, CancelledItLeavesNothing) {
  const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto graph = Graph::Open(**reader);
  ASSERT_OK(graph);
  bool compacted = false;
  for (int stop = 0; !compacted; ++stop) {
    ASSERT_LT(stop, 200);
    int reports = 0;
    JobControl* running = nullptr;
    JobControl control([&](const JobControl::Progress&) {
      if (reports++ == stop) running->Cancel();
    });
    running = &control;
    const auto result = (*graph)->Compact({}, control);
    compacted = result.has_value();
    if (!compacted) EXPECT_STATUS(result, kInterrupted);
    EXPECT_EQ(Exists(path_, "000002"), compacted);
  }
  ExpectAgrees();
}

// The files of a killed compaction are removed by the next writer, or by the next compaction.
TEST_F(CompactBesideTest, AKilledOneIsCleanedUp) {
  for (const bool writes : {true, false}) {
    const pid_t child = fork();
    if (child == 0) {
      static_cast<void>(Compact([] { _exit(7); }));
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 7);
    EXPECT_TRUE(Exists(path_, "000002"));
    if (writes) {
      WriteMore();
      EXPECT_FALSE(Exists(path_, "000002"));
    }
  }
  ASSERT_OK(Compact([] {}));
  ExpectAgrees();
}

// A handle that has not seen a compaction must not take the current generation for a leftover.
TEST_F(CompactBesideTest, AnOutdatedHandleDoesNotBegin) {
  const auto outdated = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(outdated);
  ASSERT_OK(Compact([] {}));
  EXPECT_STATUS(GenerationWriter::Create(**outdated), kBusy);
  ExpectAgrees();
}

TEST_F(CompactBesideTest, FixedStatesAreRefused) {
  const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto graph = Graph::Open(**reader);
  ASSERT_OK(graph);
  const auto point = (*graph)->Snapshot()->store().Snapshot();
  EXPECT_STATUS(GenerationWriter::Create(const_cast<Store&>(*point)), kInvalidArgument);
}

// The rule on earlier generations can be changed without anything to compact.
TEST_F(CompactBesideTest, TheRuleChangesAlone) {
  ASSERT_OK(Compact([] {}));
  const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto graph = Graph::Open(**reader);
  ASSERT_OK(graph);
  const auto result = (*graph)->Compact({.keep_generations = 7}, JobControl());
  ASSERT_OK(result);
  EXPECT_FALSE(result->compacted);
  const auto now = testing::OpenStore(path_, Store::Mode::kRead);
  ASSERT_OK(now);
  EXPECT_EQ((*now)->manifest().keep.generations, 7U);
}

}  // namespace
}  // namespace rhizome
