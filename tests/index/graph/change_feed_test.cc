#include "rhizome/change_feed.h"

#include <cstring>
#include <map>
#include <random>

#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::DrawBase;
using testing::OpenStore;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

/// A follower that keeps plain neighbour lists by external id and applies changes one by one.
class Replica {
 public:
  Replica(const UpdateModel& model, bool undirected)
      : undirected_(undirected), vertices_(model.vertices()), edges_(model.edges()) {}

  void Apply(const Change& change) {
    const std::string id = ToString(change.id);
    const std::string other = ToString(change.neighbor_id);
    switch (change.kind) {
      case Change::Kind::kVertexType:
      case Change::Kind::kEdgeType:
        break;
      case Change::Kind::kDeleteVertex:
        EXPECT_EQ(vertices_.erase(id), 1U) << id;
        std::erase_if(edges_, [&](const auto& edge) { return edge.src == id || edge.dst == id; });
        break;
      case Change::Kind::kPutVertex:
        EXPECT_TRUE(vertices_.try_emplace(id, UpdateModel::Vertex{change.name, Zeros()}).second);
        break;
      case Change::Kind::kDeleteEdges:
        Erase(id, other, change.name);
        if (undirected_) Erase(other, id, change.name);
        break;
      case Change::Kind::kPutEdge:
        EXPECT_TRUE(vertices_.contains(id) && vertices_.contains(other));
        edges_.push_back({id, other, change.name, change.weight});
        if (undirected_ && id != other) edges_.push_back({other, id, change.name, change.weight});
        break;
      case Change::Kind::kPutRow: {
        EXPECT_EQ(change.name, "feat");
        ASSERT_EQ(change.row.size(), UpdateModel::kDim * sizeof(float));
        ASSERT_TRUE(vertices_.contains(id));
        std::memcpy(vertices_[id].row.data(), change.row.data(), change.row.size());
        break;
      }
    }
  }

  void ExpectIs(const UpdateModel& model) {
    ASSERT_EQ(vertices_.size(), model.vertices().size());
    for (const auto& [id, vertex] : model.vertices()) {
      ASSERT_TRUE(vertices_.contains(id)) << id;
      EXPECT_EQ(vertices_[id].type, vertex.type) << id;
      EXPECT_EQ(vertices_[id].row, vertex.row) << id;
    }
    auto expected = model.edges();
    std::sort(expected.begin(), expected.end());
    std::sort(edges_.begin(), edges_.end());
    EXPECT_EQ(edges_, expected);
  }

 private:
  static std::vector<float> Zeros() { return std::vector<float>(UpdateModel::kDim, 0); }
  void Erase(const std::string& src, const std::string& dst, const std::string& type) {
    std::erase_if(edges_, [&](const auto& edge) {
      return edge.src == src && edge.dst == dst && edge.type == type;
    });
  }

  const bool undirected_;
  std::map<std::string, UpdateModel::Vertex> vertices_;
  std::vector<UpdateModel::Edge> edges_;
};

void Follow(const Graph& graph, const ChangeRange& range, Replica& replica) {
  const auto feed = ChangeFeed::Open(graph, range);
  ASSERT_OK(feed);
  Change change;
  std::uint64_t commit = range.after;
  while (true) {
    const auto more = (*feed)->Next(change);
    ASSERT_OK(more);
    if (!*more) break;
    EXPECT_GE(change.commit, commit);
    EXPECT_GT(change.commit, range.after);
    EXPECT_LE(change.commit, (*feed)->last());
    commit = change.commit;
    replica.Apply(change);
  }
  const auto again = (*feed)->Next(change);
  ASSERT_OK(again);
  EXPECT_FALSE(*again);
}

struct Stored {
  explicit Stored(std::mt19937_64& rng) : base(DrawBase(rng)), model(base.input) {
    undirected = base.input.undirected;
    string_ids = base.string_ids();
  }
  void Open() {
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    auto opened = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(opened);
    store = *std::move(opened);
    auto live = Graph::Open(*store);
    ASSERT_OK(live);
    graph = *std::move(live);
  }
  void Write(std::mt19937_64& rng) {
    const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
    model.Apply(batch);
    ASSERT_OK(graph->Write(batch, {.sync = false, .create_types = true}));
  }

  TempDir dir;
  RandomBase base;
  UpdateModel model;
  bool undirected = false;
  bool string_ids = false;
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

// A follower can advance from any commit to any later one, and commit by commit.
TEST(ChangeFeedTest, AFollowerBecomesTheGraph) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    Stored stored(rng);
    stored.Open();
    std::vector<UpdateModel> models = {stored.model};
    std::vector<std::uint64_t> commits = {stored.graph->sequence()};
    Replica step_by_step(stored.model, stored.undirected);
    for (int step = 0; step < 10; ++step) {
      stored.Write(rng);
      Follow(*stored.graph, {.after = commits.back()}, step_by_step);
      step_by_step.ExpectIs(stored.model);
      models.push_back(stored.model);
      commits.push_back(stored.graph->sequence());
    }
    for (int draw = 0; draw < 6; ++draw) {
      const std::size_t from = rng() % models.size();
      const std::size_t to = from + rng() % (models.size() - from);
      if (commits[to] == 0) continue;  // 0 would mean "all"
      Replica replica(models[from], stored.undirected);
      Follow(*stored.graph, {.after = commits[from], .last = commits[to]}, replica);
      replica.ExpectIs(models[to]);
    }
    if (HasFailure()) return;
  }
}

TEST(ChangeFeedTest, RefusesCommitsThatAreNotThereOneByOne) {
  std::mt19937_64 rng(testing::TestSeed());
  Stored stored(rng);
  stored.Open();
  const std::uint64_t first = stored.graph->sequence();
  stored.Write(rng);
  const std::uint64_t second = stored.graph->sequence();
  EXPECT_STATUS(ChangeFeed::Open(*stored.graph, {.after = second + 1}), kInvalidArgument);
  EXPECT_STATUS(ChangeFeed::Open(*stored.graph, {.after = first, .last = second + 1}),
                kInvalidArgument);
  const UpdateModel before = stored.model;
  stored.Write(rng);
  const auto open = ChangeFeed::Open(*stored.graph, {.after = second});
  ASSERT_OK(open);
  const JobControl control;
  ASSERT_OK(stored.graph->Compact({}, control));
  const auto late = ChangeFeed::Open(*stored.graph, {.after = second});
  EXPECT_STATUS(late, kNotFound);
  EXPECT_NE(late.error().message().find("snapshot"), std::string::npos);
  // A feed that is already open continues on the generation that it holds.
  Replica replica(before, stored.undirected);
  Change change;
  while (true) {
    const auto more = (*open)->Next(change);
    ASSERT_OK(more);
    if (!*more) break;
    replica.Apply(change);
  }
  replica.ExpectIs(stored.model);
  const std::uint64_t now = stored.graph->sequence();
  const UpdateModel compacted = stored.model;
  stored.Write(rng);
  Replica after(compacted, stored.undirected);
  Follow(*stored.graph, {.after = now}, after);
  after.ExpectIs(stored.model);
}

// Changes that the same batch undoes are not reported.
TEST(ChangeFeedTest, ACommitIsItsNetEffect) {
  std::mt19937_64 rng(1);
  Stored stored(rng);
  stored.Open();
  const auto id = [&](std::int64_t n) {
    return stored.string_ids ? ExternalId("new" + std::to_string(n)) : ExternalId(n + 5000);
  };
  WriteBatch batch;
  batch.PutEdge(id(1), id(2));
  batch.PutEdge(id(3), id(2));
  batch.DeleteVertex(id(1));
  batch.PutVertex(id(1));
  batch.DeleteEdge(id(3), id(2));
  batch.PutEdge(id(3), id(2));
  const std::uint64_t before = stored.graph->sequence();
  ASSERT_OK(stored.graph->Write(batch));
  const auto feed = ChangeFeed::Open(*stored.graph, {.after = before});
  ASSERT_OK(feed);
  std::vector<std::pair<Change::Kind, ExternalId>> seen;
  Change change;
  while (*(*feed)->Next(change)) seen.emplace_back(change.kind, change.id);
  const std::vector<std::pair<Change::Kind, ExternalId>> expected = {
      {Change::Kind::kPutVertex, id(2)},
      {Change::Kind::kPutVertex, id(3)},
      {Change::Kind::kPutVertex, id(1)},
      {Change::Kind::kPutEdge, stored.undirected ? id(2) : id(3)}};
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace rhizome
