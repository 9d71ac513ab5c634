// A graph can be opened at any point that is still held, after any writes and compactions.

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "rhizome/graph.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::OpenStore;
using testing::RandomBase;
using testing::UpdateModel;

/// A read handle at a point, and its graph.
struct GraphAtPoint {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

Result<GraphAtPoint> OpenAt(const Path& path, const StorePoint& at) {
  GraphAtPoint opened;
  RHIZOME_ASSIGN_OR_RETURN(opened.store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead, {.at = at}));
  RHIZOME_ASSIGN_OR_RETURN(opened.graph, Graph::Open(*opened.store));
  return opened;
}

class GraphPointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomBase base = testing::DrawBase(random_);
    model_ = std::make_unique<UpdateModel>(base.input);
    string_ids_ = base.string_ids();
    directions_ = base.options.directions;
    ASSERT_OK(testing::BuildStore(path_, std::move(base.input), base.options));
    Reopen();
  }
  void Reopen() {
    graph_ = nullptr;
    store_ = nullptr;
    auto store = OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }
  void Write() {
    const WriteBatch batch = model_->DrawBatch(random_, string_ids_, 1 + random_() % 9);
    model_->Apply(batch);
    ASSERT_OK(graph_->Write(batch, {.sync = false, .create_types = true}));
  }
  void Compact() { ASSERT_OK(graph_->Compact({}, JobControl())); }

  std::mt19937_64 random_{testing::TestSeed()};
  testing::TempDir folder_;
  const Path path_ = folder_ / "g.rz";
  std::unique_ptr<UpdateModel> model_;
  bool string_ids_ = false;
  Direction directions_ = Direction::kBoth;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(GraphPointTest, IsTheStateThatWasNamedWhateverCameSince) {
  struct Held {
    std::shared_ptr<const GraphSnapshot> snapshot;  // null if `opened` holds the point
    GraphAtPoint opened;
    StorePoint point;
    UpdateModel model;
  };
  std::deque<Held> held;
  for (int step = 0; step < 14; ++step) {
    SCOPED_TRACE(step);
    if (random_() % 5 == 0) {
      ASSERT_NO_FATAL_FAILURE(Compact());
    }
    if (random_() % 6 == 0) {  // commits another manifest version
      const auto keep = static_cast<std::uint32_t>(random_() % 3);
      ASSERT_OK(store_->Keep({.generations = keep}));
    }
    ASSERT_NO_FATAL_FAILURE(Write());
    const auto snapshot = graph_->Snapshot();
    held.push_back({snapshot, {}, snapshot->point(), *model_});
    if (held.size() > 4) held.pop_front();
    Held& one = held[random_() % held.size()];
    auto opened = OpenAt(path_, one.point);
    ASSERT_OK(opened);
    EXPECT_EQ(opened->graph->sequence(), one.point.sequence);
    EXPECT_EQ(opened->graph->Snapshot()->point(), one.point);
    one.model.ExpectAgrees(*opened->graph, directions_);
    EXPECT_OK(opened->graph->Refresh());
    EXPECT_EQ(opened->graph->sequence(), one.point.sequence);
    EXPECT_STATUS(opened->graph->Write(WriteBatch(), {}), kInvalidArgument);
    if (random_() % 2 == 0) {  // now this handle holds the point
      one.opened = *std::move(opened);
      one.snapshot = nullptr;
    }
    if (HasFailure()) return;
  }
}

TEST_F(GraphPointTest, IsGoneWhenNobodyHoldsIt) {
  for (const bool written : {false, true}) {
    for (const std::uint32_t kept : {0U, 1U}) {
      SCOPED_TRACE(std::to_string(written) + " " + std::to_string(kept));
      ASSERT_NO_FATAL_FAILURE(Write());
      ASSERT_NO_FATAL_FAILURE(Compact());
      if (written) {
        ASSERT_NO_FATAL_FAILURE(Write());
      }
      ASSERT_OK(store_->Keep({.generations = kept}));
      const StorePoint point = graph_->Snapshot()->point();
      EXPECT_EQ(point.first_commit != 0, written);
      ASSERT_NO_FATAL_FAILURE(Write());
      ASSERT_NO_FATAL_FAILURE(Compact());
      ASSERT_NO_FATAL_FAILURE(Reopen());  // removes what is not held
      const auto opened = OpenAt(path_, point);
      if (kept == 1 && !written) {  // a kept generation has no later commits
        ASSERT_OK(opened);
        EXPECT_EQ(opened->graph->sequence(), point.sequence);
        continue;
      }
      EXPECT_STATUS(opened, kNotFound);
      if (!opened) {
        EXPECT_NE(opened.error().message().find("no longer exists"), std::string::npos);
      }
    }
  }
}

TEST_F(GraphPointTest, OnlyPointsOfThisStoreAreOpened) {
  ASSERT_NO_FATAL_FAILURE(Write());
  const StorePoint point = graph_->Snapshot()->point();
  StorePoint other = point;
  other.store = StoreId::Random();
  EXPECT_STATUS(OpenAt(path_, other), kInvalidArgument);
  const auto wrong = [&](auto change) {
    StorePoint never = point;
    change(never);
    EXPECT_STATUS(OpenAt(path_, never), kNotFound);
  };
  wrong([](StorePoint& at) { ++at.generation; });
  wrong([](StorePoint& at) { ++at.manifest_version; });
  wrong([](StorePoint& at) { ++at.sequence; });
  wrong([](StorePoint& at) { ++at.first_commit; });
  EXPECT_STATUS(Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite, {.at = point}),
                kInvalidArgument);
  EXPECT_OK(OpenAt(path_, point));
}

}  // namespace
}  // namespace rhizome
