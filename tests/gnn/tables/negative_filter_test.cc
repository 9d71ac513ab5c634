#include "gnn/tables/negative_filter.h"

#include <algorithm>
#include <set>

#include "gnn/links/links_testing.h"

// NegativeFilter against a set of the known edges, on a store with a delta, with vertex types, and
// with edges that are given; for negatives that edges share and for own negatives of each edge.

namespace rhizome {
namespace {

using testing::LinkFixture;

class NegativeFilterTest : public LinkFixture {
 protected:
  /// Draws edges, some of them new and some with the same given end, and negatives by type.
  LinkBatch Draw(std::uint64_t negatives, bool per_edge) {
    LinkBatch batch;
    for (int e = 0; e < 60; ++e) batch.edges.push_back(AnyEdge());
    for (std::size_t e = 1; e < batch.edges.size(); e += 4) {
      batch.edges[e].src = batch.edges[e - 1].src;
      batch.edges[e].type = batch.edges[e - 1].type;
    }
    for (std::size_t side = 0; side < 2; ++side) {
      for (int type : {0, 1}) {
        TypedNegatives typed{.type = static_cast<TypeId>(type), .vertices = {}};
        std::uint64_t count = negatives;
        if (per_edge) count *= std::max<std::size_t>(EdgesOf(batch, side, typed.type).size(), 1);
        while (typed.vertices.size() < count) typed.vertices.push_back(AnyVertex(type));
        batch.negatives[side].push_back(typed);
      }
    }
    return batch;
  }

  std::vector<std::size_t> EdgesOf(const LinkBatch& batch, std::size_t side, TypeId type) const {
    std::vector<std::size_t> edges;
    for (std::size_t e = 0; e < batch.edges.size(); ++e) {
      const VertexId open = side == 1 ? batch.edges[e].dst : batch.edges[e].src;
      if (model_.vertex_type[static_cast<std::size_t>(open)] == type) edges.push_back(e);
    }
    return edges;
  }

  /// Compares a mask with the model's known edges. Returns the number of masked negatives.
  std::uint64_t Check(const LinkBatch& batch, std::uint64_t each, const NegativeMask& mask) const {
    std::uint64_t masked = 0;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const TypedNegatives& typed : batch.negatives[side]) {
        const std::vector<std::size_t> edges = EdgesOf(batch, side, typed.type);
        for (std::size_t i = 0; i < edges.size(); ++i) {
          const std::size_t first = each == 0 ? 0 : i * each;
          const std::size_t count = each == 0 ? typed.vertices.size() : each;
          std::set<std::uint32_t> wanted;
          for (std::uint32_t k = 0; k < count; ++k) {
            VertexPair edge = batch.edges[edges[i]];
            (side == 1 ? edge.dst : edge.src) = typed.vertices[(first + k) % typed.vertices.size()];
            if (model_.IsKnown(edge)) wanted.insert(k);
          }
          const auto found = mask[side].Of(edges[i]);
          EXPECT_EQ(std::set<std::uint32_t>(found.begin(), found.end()), wanted)
              << "side " << side << ", edge " << edges[i];
          masked += wanted.size();
        }
      }
    }
    return masked;
  }
};

TEST_F(NegativeFilterTest, EqualsASetOfKnownEdges) {
  SCOPED_TRACE(testing::TestSeed());
  const std::vector<VertexPair> more = NewEdges(3000);
  for (const VertexPair& edge : more) model_.known.insert({edge.src, edge.type, edge.dst});
  const auto filter = NegativeFilter::Of(graph_->Snapshot(), more);
  ASSERT_OK(filter);
  EXPECT_GE(filter->bytes(), more.size() * 2 * sizeof(VertexPair));
  NegativeMask mask;
  std::uint64_t shared = 0, own = 0;
  for (int turn = 0; turn < 4; ++turn) {
    LinkBatch batch = Draw(200, /*per_edge=*/false);
    ASSERT_OK(filter->Mask(batch, 0, mask));
    shared += Check(batch, 0, mask);
    batch = Draw(5, /*per_edge=*/true);
    ASSERT_OK(filter->Mask(batch, 5, mask));
    own += Check(batch, 5, mask);
    // Fewer negatives than edges are used in turn.
    batch = Draw(7, /*per_edge=*/false);
    ASSERT_OK(filter->Mask(batch, 3, mask));
    own += Check(batch, 3, mask);
  }
  EXPECT_GT(shared, 100U);
  EXPECT_GT(own, 10U);
  LinkBatch empty;
  ASSERT_OK(filter->Mask(empty, 0, mask));
  EXPECT_TRUE(mask[0].ends.empty() && mask[1].positions.empty());
}

TEST_F(NegativeFilterTest, TheStoreAloneDoesNotHaveGivenEdges) {
  const auto filter = NegativeFilter::Of(graph_->Snapshot(), {});
  ASSERT_OK(filter);
  NegativeMask mask;
  const LinkBatch batch = Draw(200, /*per_edge=*/false);
  ASSERT_OK(filter->Mask(batch, 0, mask));
  EXPECT_GT(Check(batch, 0, mask), 10U);
}

}  // namespace
}  // namespace rhizome
