#include <algorithm>

#include "gnn/links/links_testing.h"

// Tests of LinkScores::Top against sorted scores of a model of the store, with many equal scores.

namespace rhizome {
namespace {

using testing::ExactDecoder;
using testing::LinkFixture;
using testing::SourceOf;

struct FoundLink {
  VertexPair pair;
  double score = 0;
  friend bool operator==(const FoundLink&, const FoundLink&) = default;
};

class TopLinksTest : public LinkFixture {
 protected:
  Result<std::vector<FoundLink>> Top(const TopLinksOptions& options, std::vector<VertexId> of,
                                     TopLinksReport* report = nullptr) const {
    std::vector<FoundLink> links;
    const ScoreSink sink = [&](std::span<const VertexPair> pairs, std::span<const float> scores) {
      for (std::size_t i = 0; i < pairs.size(); ++i) links.push_back({pairs[i], scores[i]});
      return Status::Ok();
    };
    const JobControl control;
    RHIZOME_ASSIGN_OR_RETURN(const TopLinksReport made,
                             rhizome_gnn_scores_v1()->Top(*graph_->Snapshot(), options,
                                                          SourceOf(std::move(of)), sink, control));
    if (report != nullptr) *report = made;
    return links;
  }

  /// Sorts all candidates of each vertex.
  std::vector<FoundLink> BruteTop(const ExactDecoder& decoder, const std::vector<VertexId>& of,
                                  TypeId type, bool drop_known, std::size_t count) const {
    std::vector<FoundLink> all;
    for (const VertexId src : of) {
      std::vector<FoundLink> links;
      for (VertexId dst = 0; dst < static_cast<VertexId>(model_.rows.size()); ++dst) {
        const FoundLink link{{.src = src, .dst = dst, .type = type},
                             decoder.ScoreOf(model_, {src, dst, type}, EdgeEnd::kDst)};
        if (dst == src || model_.deleted.contains(dst)) continue;
        if (type == 2 && model_.vertex_type[static_cast<std::size_t>(dst)] != 1) continue;
        if (drop_known && model_.IsKnown(link.pair)) continue;
        links.push_back(link);
      }
      std::stable_sort(links.begin(), links.end(),
                       [](const FoundLink& a, const FoundLink& b) { return a.score > b.score; });
      links.resize(std::min(count, links.size()));
      all.insert(all.end(), links.begin(), links.end());
    }
    return all;
  }
};

TEST_F(TopLinksTest, LinksAreTheBestOfAllCandidates) {
  std::vector<VertexId> of;
  for (int i = 0; i < 150; ++i) of.push_back(AnyVertex(0));
  for (ExactDecoder decoder : Decoders()) {
    if (decoder.norm == "2") continue;  // its scores have a root, and are not exact
    for (const TypeId type : {TypeId{0}, TypeId{2}}) {
      const bool drop = type == 2;
      const std::size_t count = type == 2 ? 7 : 400;
      const auto expected = BruteTop(decoder, of, type, drop, count);
      for (const std::uint32_t threads : {1U, 3U}) {
        TopLinksReport report;
        const auto found = Top({.array = threads == 1 ? "row" : "chunk",
                                .decoder = Save(decoder),
                                .count = count,
                                .type = type,
                                .drop_known = drop,
                                .memory_bytes = std::uint64_t{threads == 1 ? 2400U : 65536U} << 10,
                                .threads = threads},
                               of, &report);
        ASSERT_OK(found);
        EXPECT_EQ(*found, expected) << decoder.name << type;
        EXPECT_EQ(report.vertices, of.size());
        EXPECT_EQ(report.links, expected.size());
        if (threads == 1 && type == 0) {
          EXPECT_GT(report.passes, 1U);
        }
      }
    }
  }
}

TEST_F(TopLinksTest, WithoutATypeKnownEdgesOfAllTypesAreDropped) {
  const std::vector<VertexId> of = {AnyVertex(), AnyVertex()};
  const auto found = Top({.array = "row", .count = 1000, .drop_known = true}, of);
  ASSERT_OK(found);
  for (const VertexId src : of) {
    const auto size = std::count_if(found->begin(), found->end(),
                                    [&](const FoundLink& link) { return link.pair.src == src; });
    std::set<VertexId> left_out = model_.deleted;
    left_out.insert(src);
    for (const auto& [a, type, b] : model_.known)
      if (a == src) left_out.insert(b);
    EXPECT_EQ(static_cast<std::size_t>(size), model_.rows.size() - left_out.size());
  }
}

TEST_F(TopLinksTest, WhatDoesNotFitIsRefused) {
  const ExactDecoder distmult = Decoders()[1];
  EXPECT_STATUS(Top({.array = "none"}, {1}), kNotFound);
  EXPECT_STATUS(Top({.array = "row", .count = 0}, {1}), kInvalidArgument);
  EXPECT_STATUS(Top({.array = "row", .decoder = Save(distmult)}, {1}), kInvalidArgument);
  EXPECT_STATUS(Top({.array = "row", .type = TypeId{3}}, {1}), kInvalidArgument);
  EXPECT_STATUS(Top({.array = "row"}, {-1}), kInvalidArgument);
  EXPECT_STATUS(Top({.array = "row"}, {*model_.deleted.begin()}), kInvalidArgument);
  EXPECT_STATUS(Top({.array = "row", .memory_bytes = 1000}, {1}), kOutOfMemory);
}

}  // namespace
}  // namespace rhizome
