// The vertex types of the ends of edges: EndsOfEdges, and Graph::edge_ends after ingestion, writes
// and compaction. The histories of update_history.h compare them with a model.

#include <gmock/gmock.h>

#include "index/base/edge_ends.h"
#include "rhizome/graph.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TempDir;

constexpr EdgeEnds kNone = {kSeveralTypes, kSeveralTypes};

TEST(EdgeEndsTest, EndsAreWidenedAndNeverNarrowed) {
  EndsOfEdges ends(3);
  EXPECT_THAT(ends.ByType(), ElementsAre(kNone, kNone, kNone));
  ends.Add(1, 4, 0);
  ends.Add(2, 5, 6);
  ends.Add(2, 5, 7);
  EXPECT_THAT(ends.ByType(), ElementsAre(kNone, EdgeEnds{4, 0}, EdgeEnds{5, kSeveralTypes}));
  ends.Add(2, 5, 6);
  EndsOfEdges others(3);
  others.Add(0, 1, 1);
  others.Add(1, 3, 0);
  ends.AddAll(others);
  EXPECT_THAT(ends.ByType(),
              ElementsAre(EdgeEnds{1, 1}, EdgeEnds{kSeveralTypes, 0}, EdgeEnds{5, kSeveralTypes}));
  EndsOfEdges more(ends.ByType(), 4);
  more.Add(0, 1, 2);
  more.Add(1, 3, 0);
  more.Add(3, 9, 9);
  EXPECT_THAT(more.ByType(), ElementsAre(EdgeEnds{1, kSeveralTypes}, EdgeEnds{kSeveralTypes, 0},
                                         EdgeEnds{5, kSeveralTypes}, EdgeEnds{9, 9}));
}

/// A graph that begins without vertices and has the types paper and author, and cites and writes.
class EdgeEndsOfGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto graph = Graph::Create(
        dir_ / "g.rz",
        {.text_ids = true, .vertex_types = {"paper", "author"}, .edge_types = {"cites", "writes"}});
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }
  void PutVertex(std::string_view id, std::string_view type) {
    batch_.PutVertex(std::string(id), type);
  }
  void PutEdge(std::string_view src, std::string_view dst, std::string_view type) {
    batch_.PutEdge(std::string(src), std::string(dst), {.type = std::string(type)});
  }
  void DeleteEdge(std::string_view src, std::string_view dst, std::string_view type) {
    batch_.DeleteEdge(std::string(src), std::string(dst), type);
  }
  void Write() {
    ASSERT_OK(graph_->Write(batch_, {.sync = false, .create_types = true}));
    batch_.Clear();
  }
  void Compact() { ASSERT_OK(graph_->Compact({}, JobControl())); }

  TempDir dir_;
  std::unique_ptr<Graph> graph_;
  WriteBatch batch_;
};

TEST_F(EdgeEndsOfGraphTest, TheDeltaWidensThemAndACompactionComputesThem) {
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(kNone, kNone));
  PutVertex("p", "paper");
  PutVertex("q", "paper");
  PutVertex("a", "author");
  PutEdge("p", "q", "cites");
  PutEdge("a", "p", "writes");
  Write();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}));
  Compact();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}));
  EXPECT_THAT(graph_->Snapshot()->info().edge_ends, ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}));

  const auto before = graph_->Snapshot();
  PutVertex("v", "venue");
  PutEdge("a", "v", "writes");
  Write();
  PutEdge("q", "v", "in");
  Write();
  const auto widened = ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, kSeveralTypes}, EdgeEnds{0, 2});
  EXPECT_THAT(graph_->edge_ends(), widened);
  EXPECT_THAT(before->edge_ends(), ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}));
  Compact();
  EXPECT_THAT(graph_->edge_ends(), widened);

  DeleteEdge("a", "v", "writes");
  DeleteEdge("p", "q", "cites");
  Write();
  EXPECT_THAT(graph_->edge_ends(), widened);
  Compact();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(kNone, EdgeEnds{1, 0}, EdgeEnds{0, 2}));
}

TEST_F(EdgeEndsOfGraphTest, AStoreOfOneVertexTypeHasNoneUntilAnotherIsAdded) {
  auto plain = Graph::Create(dir_ / "plain.rz", {.text_ids = true, .edge_types = {"cites"}});
  ASSERT_OK(plain);
  graph_ = *std::move(plain);
  PutEdge("p", "q", "cites");
  Write();
  Compact();
  EXPECT_THAT(graph_->edge_ends(), IsEmpty());
  EXPECT_THAT(graph_->Snapshot()->info().edge_ends, IsEmpty());
  PutVertex("a", "author");
  PutEdge("a", "p", "writes");
  Write();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, 0}, EdgeEnds{1, 0}));
  PutEdge("p", "a", "cites");
  Write();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, kSeveralTypes}, EdgeEnds{1, 0}));
}

TEST_F(EdgeEndsOfGraphTest, AnUndirectedEdgeHasBothEndsOnEitherSide) {
  auto undirected = Graph::Create(dir_ / "undirected.rz", {.text_ids = true,
                                                           .undirected = true,
                                                           .vertex_types = {"paper", "author"},
                                                           .edge_types = {"cites", "writes"}});
  ASSERT_OK(undirected);
  graph_ = *std::move(undirected);
  PutVertex("p", "paper");
  PutVertex("q", "paper");
  PutVertex("a", "author");
  PutEdge("p", "q", "cites");
  PutEdge("a", "p", "writes");
  Write();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, 0}, kNone));
  Compact();
  EXPECT_THAT(graph_->edge_ends(), ElementsAre(EdgeEnds{0, 0}, kNone));
}

}  // namespace
}  // namespace rhizome
