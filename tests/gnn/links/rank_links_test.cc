#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gnn/links/links_testing.h"
#include "gnn/links/negative_figures.h"

// Tests of LinkScores::Evaluate against brute force over a model of the store, with many equal
// scores: all decoders, layouts, memory sizes and threads; candidates that are given; negatives;
// input that is refused.

namespace rhizome {
namespace {

using testing::ExactDecoder;
using testing::LinkFixture;
using testing::LinkModel;
using testing::SourceOf;

/// Sums over ranks, as in a textbook.
struct BruteRanks {
  std::vector<std::pair<double, double>> counts;  // better and equal candidates of each rank

  void ExpectEqual(const LinkRanks& found, const std::string& what) const {
    EXPECT_EQ(found.ranks, counts.size()) << what;
    const std::array<std::pair<const LinkFigures*, double>, 3> shares = {
        {{&found.optimistic, 0.0}, {&found.realistic, 0.5}, {&found.pessimistic, 1.0}}};
    for (const auto& [figures, share] : shares) {
      LinkFigures sums;
      for (const auto& [better, equal] : counts) {
        const double rank = 1 + better + share * equal;
        sums.mrr += 1 / rank;
        sums.mean_rank += rank;
        sums.hits_at_1 += rank <= 1 ? 1 : 0;
        sums.hits_at_3 += rank <= 3 ? 1 : 0;
        sums.hits_at_10 += rank <= 10 ? 1 : 0;
      }
      const auto n = static_cast<double>(std::max<std::size_t>(counts.size(), 1));
      EXPECT_NEAR(figures->mrr, sums.mrr / n, 1e-12) << what << share;
      EXPECT_NEAR(figures->mean_rank, sums.mean_rank / n, 1e-9) << what << share;
      EXPECT_NEAR(figures->hits_at_1, sums.hits_at_1 / n, 1e-12) << what << share;
      EXPECT_NEAR(figures->hits_at_3, sums.hits_at_3 / n, 1e-12) << what << share;
      EXPECT_NEAR(figures->hits_at_10, sums.hits_at_10 / n, 1e-12) << what << share;
    }
  }
};

struct BruteEvaluation {
  BruteRanks all;
  BruteRanks without_unseen;
  BruteRanks dst;
  BruteRanks src;
  std::map<TypeId, BruteRanks> by_type;
};

/// Counts better and equal candidates for one end of a test edge. `known` has all known edges.
std::pair<double, double> BruteCounts(const LinkModel& model, const ExactDecoder& decoder,
                                      const VertexPair& edge, EdgeEnd open, bool by_type) {
  VertexId VertexPair::*const end = open == EdgeEnd::kDst ? &VertexPair::dst : &VertexPair::src;
  const auto type_of = [&](VertexId v) { return model.vertex_type[static_cast<std::size_t>(v)]; };
  const double truth = decoder.ScoreOf(model, edge, open);
  std::pair<double, double> counts{0, 0};
  for (VertexId v = 0; v < static_cast<VertexId>(model.rows.size()); ++v) {
    VertexPair other = edge;
    other.*end = v;
    if (v == edge.*end || model.deleted.contains(v) || model.IsKnown(other)) continue;
    if (by_type && type_of(v) != type_of(edge.*end)) continue;
    const double score = decoder.ScoreOf(model, other, open);
    counts.first += score > truth ? 1 : 0;
    counts.second += score == truth ? 1 : 0;
  }
  return counts;
}

std::vector<double> Numbers(const LinkEvaluation& found) {
  std::vector<double> numbers;
  const auto add = [&](const LinkRanks& ranks) {
    numbers.push_back(static_cast<double>(ranks.ranks));
    for (const LinkFigures* figures : {&ranks.realistic, &ranks.optimistic, &ranks.pessimistic}) {
      numbers.insert(numbers.end(), {figures->mrr, figures->mean_rank, figures->hits_at_1,
                                     figures->hits_at_3, figures->hits_at_10});
    }
  };
  for (const LinkRanks* ranks : {&found.all, &found.without_unseen, &found.dst, &found.src})
    add(*ranks);
  for (const auto& [type, ranks] : found.by_type) add(ranks);
  return numbers;
}

class RankLinksTest : public LinkFixture {
 protected:
  Result<LinkEvaluation> Evaluate(const LinkEvaluationOptions& options,
                                  const LinkEvaluationEdges& edges) const {
    const JobControl control;
    return rhizome_gnn_scores_v1()->Evaluate(*graph_->Snapshot(), options, edges, control);
  }

  /// Returns whether no edge of the store has one of the ends; before test edges are known.
  bool IsUnseen(const VertexPair& edge) const {
    const auto has = [&](VertexId v) {
      return std::any_of(model_.known.begin(), model_.known.end(), [&](const auto& known) {
        return std::get<0>(known) == v || std::get<2>(known) == v;
      });
    };
    return !has(edge.src) || !has(edge.dst);
  }
};

TEST_F(RankLinksTest, RanksAreThoseOfBruteForce) {
  const std::vector<VertexPair> test = NewEdges(300);
  const std::vector<VertexPair> valid = NewEdges(200);
  std::vector<bool> unseen;
  for (const VertexPair& edge : test) unseen.push_back(IsUnseen(edge));
  EXPECT_NE(std::count(unseen.begin(), unseen.end(), true), 0);
  for (const auto* edges : {&test, &valid})
    for (const VertexPair& edge : *edges) model_.known.insert({edge.src, edge.type, edge.dst});
  for (const ExactDecoder& decoder : Decoders()) {
    const std::string name = decoder.name + decoder.norm + " ";
    for (const bool by_type : {true, false}) {
      BruteEvaluation brute;
      for (std::size_t i = 0; i < test.size(); ++i) {
        for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
          const auto counts = BruteCounts(model_, decoder, test[i], open, by_type);
          for (BruteRanks* ranks : {&brute.all, open == EdgeEnd::kDst ? &brute.dst : &brute.src,
                                    &brute.by_type[test[i].type]})
            ranks->counts.push_back(counts);
          if (!unseen[i]) brute.without_unseen.counts.push_back(counts);
        }
      }
      std::vector<double> first;
      for (const char* array : {"row", "chunk"}) {
        for (const std::uint32_t threads : {1U, 3U}) {
          const LinkEvaluationOptions options{
              .array = array,
              .decoder = Save(decoder),
              .candidates = by_type ? LinkCandidates::kType : LinkCandidates::kAll,
              .memory_bytes = std::uint64_t{threads == 1 ? 288U : 1U << 20} << 10,
              .threads = threads};
          const auto found =
              Evaluate(options, {.test = SourceOf(test), .known = {SourceOf(valid)}});
          ASSERT_OK(found);
          if (threads == 1) {
            EXPECT_GT(found->passes, 1U);
          }
          EXPECT_EQ(found->edges, test.size());
          EXPECT_EQ(found->leaked_edges, 0U);
          EXPECT_EQ(found->unseen_ends,
                    static_cast<std::uint64_t>(std::count(unseen.begin(), unseen.end(), true)));
          if (first.empty()) {
            first = Numbers(*found);
            brute.all.ExpectEqual(found->all, name + "all ");
            brute.without_unseen.ExpectEqual(found->without_unseen, name + "without_unseen ");
            brute.dst.ExpectEqual(found->dst, name + "dst ");
            brute.src.ExpectEqual(found->src, name + "src ");
            ASSERT_EQ(found->by_type.size(), brute.by_type.size());
            for (const auto& [type, ranks] : found->by_type)
              brute.by_type[type].ExpectEqual(ranks, name + "type " + std::to_string(type));
          }
          EXPECT_EQ(first, Numbers(*found)) << array << threads;
        }
      }
    }
  }
}

// Constant scores must not rank first.
TEST_F(RankLinksTest, ConstantScoresRankInTheMiddle) {
  const std::vector<VertexPair> test = {{.src = AnyVertex(), .dst = AnyVertex(), .type = 0}};
  const ExactDecoder zeros{.name = "distmult",
                           .relations = {3, std::vector<double>(testing::kLinkDim, 0)}};
  const auto found = Evaluate({.array = "row", .decoder = Save(zeros), .allow_leaked = true},
                              {.test = SourceOf(test)});
  ASSERT_OK(found);
  model_.known.insert({test[0].src, test[0].type, test[0].dst});
  const auto [better, equal] = BruteCounts(model_, zeros, test[0], EdgeEnd::kDst, true);
  EXPECT_EQ(better, 0);
  EXPECT_EQ(found->dst.optimistic.mean_rank, 1);
  EXPECT_EQ(found->dst.realistic.mean_rank, 1 + equal / 2);
  EXPECT_EQ(found->dst.pessimistic.mean_rank, 1 + equal);
}

TEST_F(RankLinksTest, GivenCandidatesAreNotFiltered) {
  constexpr std::uint64_t kEach = 30;
  const std::vector<VertexPair> test = NewEdges(100);
  std::vector<VertexId> dst;
  std::vector<VertexId> src;
  for (std::size_t i = 0; i < test.size() * kEach; ++i) {
    dst.push_back(AnyVertex());
    src.push_back(AnyVertex());
  }
  for (const ExactDecoder& decoder : Decoders()) {
    BruteRanks of_dst;
    BruteRanks of_src;
    for (std::size_t i = 0; i < test.size(); ++i) {
      for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
        const double truth = decoder.ScoreOf(model_, test[i], open);
        std::pair<double, double> counts{0, 0};
        for (std::size_t k = i * kEach; k < (i + 1) * kEach; ++k) {
          VertexPair other = test[i];
          (open == EdgeEnd::kDst ? other.dst : other.src) = open == EdgeEnd::kDst ? dst[k] : src[k];
          const double score = decoder.ScoreOf(model_, other, open);
          counts.first += score > truth ? 1 : 0;
          counts.second += score == truth ? 1 : 0;
        }
        (open == EdgeEnd::kDst ? of_dst : of_src).counts.push_back(counts);
      }
    }
    for (const std::uint32_t threads : {1U, 2U}) {
      LinkEvaluationEdges edges{.test = SourceOf(test)};
      edges.given = {.per_edge = kEach, .dst = SourceOf(dst), .src = SourceOf(src)};
      const auto found = Evaluate({.array = "chunk",
                                   .decoder = Save(decoder),
                                   .memory_bytes = threads * std::uint64_t{512} << 10,
                                   .threads = threads},
                                  edges);
      ASSERT_OK(found);
      of_dst.ExpectEqual(found->dst, decoder.name + " given dst ");
      of_src.ExpectEqual(found->src, decoder.name + " given src ");
      // One end alone.
      edges.test = SourceOf(test);
      edges.given = {.per_edge = kEach, .dst = {}, .src = SourceOf(src)};
      const auto one = Evaluate({.array = "row", .decoder = Save(decoder)}, edges);
      ASSERT_OK(one);
      EXPECT_EQ(one->dst.ranks, 0U);
      of_src.ExpectEqual(one->src, decoder.name + " given src alone ");
    }
  }
  LinkEvaluationEdges edges{.test = SourceOf(test)};
  edges.given = {.per_edge = kEach + 1, .dst = SourceOf(dst)};
  EXPECT_STATUS(Evaluate({.array = "row"}, edges), kInvalidArgument);
  edges.test = SourceOf(test);
  edges.given = {.per_edge = kEach - 1, .dst = SourceOf(dst)};
  EXPECT_STATUS(Evaluate({.array = "row"}, edges), kInvalidArgument);
}

TEST_F(RankLinksTest, NegativesAreComparedWithTestEdges) {
  const std::vector<VertexPair> test = NewEdges(80);
  const std::vector<VertexPair> negatives = NewEdges(60);
  const ExactDecoder decoder = Decoders()[1];
  const auto found = Evaluate({.array = "row", .decoder = Save(decoder)},
                              {.test = SourceOf(test), .negatives = SourceOf(negatives)});
  ASSERT_OK(found);
  ASSERT_TRUE(found->negatives.has_value());
  double right = 0;
  for (const VertexPair& yes : test) {
    for (const VertexPair& no : negatives) {
      const double a = decoder.ScoreOf(model_, yes, EdgeEnd::kDst);
      const double b = decoder.ScoreOf(model_, no, EdgeEnd::kDst);
      right += a > b ? 1 : a == b ? 0.5 : 0;
    }
  }
  EXPECT_NEAR(found->negatives->roc_auc, right / 80 / 60, 1e-12);
  EXPECT_EQ(found->negatives->negatives, 60U);
  for (const auto& [k, share] : found->negatives->hits) {
    std::vector<double> scores;
    for (const VertexPair& no : negatives)
      scores.push_back(decoder.ScoreOf(model_, no, EdgeEnd::kDst));
    std::sort(scores.rbegin(), scores.rend());
    const auto hits = std::count_if(test.begin(), test.end(), [&, k = k](const VertexPair& yes) {
      return k > scores.size() || decoder.ScoreOf(model_, yes, EdgeEnd::kDst) > scores[k - 1];
    });
    EXPECT_NEAR(share, static_cast<double>(hits) / 80, 1e-12) << k;
  }
  EXPECT_STATUS(
      Evaluate({.array = "row"}, {.test = SourceOf(test), .negatives = SourceOf<VertexPair>({})}),
      kInvalidArgument);
}

TEST_F(RankLinksTest, TestEdgesOfTheStoreAreRefused) {
  std::vector<VertexPair> test = NewEdges(10);
  const auto& [src, type, dst] = *model_.known.begin();
  test.push_back({.src = src, .dst = dst, .type = type});
  EXPECT_STATUS(Evaluate({.array = "row"}, {.test = SourceOf(test)}), kInvalidArgument);
  const auto found = Evaluate({.array = "row", .allow_leaked = true}, {.test = SourceOf(test)});
  ASSERT_OK(found);
  EXPECT_EQ(found->leaked_edges, 1U);
}

TEST_F(RankLinksTest, AScoreThatIsNotANumberNamesItsVertex) {
  const std::vector<VertexPair> test = NewEdges(10);
  VertexId bad = AnyVertex(0);
  {
    auto graph = Graph::Open(path(), {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    WriteBatch batch;
    const std::vector<float> row(testing::kLinkDim, std::numeric_limits<float>::quiet_NaN());
    batch.PutRow(ExternalId(bad), "row", std::span<const float>(row));
    ASSERT_OK((*graph)->Write(batch));
  }
  Open();
  LinkEvaluationEdges edges{.test = SourceOf(test)};
  const auto named = [&](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.message().find("vertex " + std::to_string(bad) + " "), std::string::npos)
        << status.message();
  };
  for (const LinkCandidates candidates : {LinkCandidates::kType, LinkCandidates::kAll}) {
    const auto found =
        Evaluate({.array = "row", .candidates = candidates}, {.test = SourceOf(test)});
    named(testing::AsStatus(found));
  }
  edges.given = {.per_edge = 1, .dst = SourceOf(std::vector<VertexId>(test.size(), bad))};
  named(testing::AsStatus(Evaluate({.array = "row"}, edges)));
}

TEST_F(RankLinksTest, RowsThatAreMissingAreRefused) {
  const std::vector<VertexPair> test = NewEdges(10);
  {
    auto graph = Graph::Open(path(), {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    WriteBatch batch;
    batch.PutVertex(ExternalId(std::int64_t{100000}), "person");
    ASSERT_OK((*graph)->Write(batch));
  }
  Open();
  const auto found = Evaluate({.array = "row"}, {.test = SourceOf(test)});
  EXPECT_STATUS(found, kInvalidArgument);
  EXPECT_NE(testing::AsStatus(found).message().find("1 vert"), std::string::npos);
  EXPECT_OK(Evaluate({.array = "row", .allow_stale = true}, {.test = SourceOf(test)}));
}

TEST_F(RankLinksTest, WhatDoesNotFitIsRefused) {
  const std::vector<VertexPair> test = NewEdges(10);
  const auto status = [&](const LinkEvaluationOptions& options, std::vector<VertexPair> edges) {
    return testing::AsStatus(Evaluate(options, {.test = SourceOf(std::move(edges))}));
  };
  EXPECT_STATUS(status({.array = "none"}, test), kNotFound);
  EXPECT_STATUS(status({.array = "row", .decoder = "none"}, test), kNotFound);
  EXPECT_STATUS(status({.array = "row", .scorer = "distmult"}, test), kInvalidArgument);
  EXPECT_STATUS(status({.array = "row"}, {}), kInvalidArgument);
  EXPECT_STATUS(status({.array = "row"}, {{.src = -1, .dst = 0}}), kInvalidArgument);
  EXPECT_STATUS(status({.array = "row"}, {{.src = 0, .dst = 100000}}), kInvalidArgument);
  EXPECT_STATUS(status({.array = "row"}, {{.src = *model_.deleted.begin(), .dst = 0}}),
                kInvalidArgument);
  EXPECT_STATUS(status({.array = "row"}, {{.src = 1, .dst = 2, .type = 3}}), kInvalidArgument);
  EXPECT_STATUS(status({.array = "row", .memory_bytes = 1000}, test), kOutOfMemory);
  const PairSource bad = [](auto) -> Result<std::size_t> {
    return Fail(Status::NotFound("line 3"));
  };
  EXPECT_STATUS(Evaluate({.array = "row"}, {.test = bad}), kNotFound);
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(rhizome_gnn_scores_v1()->Evaluate(*graph_->Snapshot(), {.array = "row"},
                                                  {.test = SourceOf(test)}, cancelled),
                kInterrupted);
}

// Filters need the lists of both directions.
TEST(RankLinksOneDirectionTest, IsRefused) {
  const testing::TempDir folder;
  GraphInput input;
  input.vertex_count = 3;
  input.edges.src = {0};
  input.edges.dst = {1};
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  input.arrays.push_back(
      testing::MakeArray("row", 1, DataType::kFloat32, std::vector<float>{1, 2, 3}));
  BuildOptions build;
  build.directions = Direction::kOut;
  const JobControl control;
  ASSERT_OK(
      IngestGraph(FileSystem::Posix(), folder / "s", std::move(input), build, StoreId(), control));
  const auto graph = Graph::Open(folder / "s");
  ASSERT_OK(graph);
  EXPECT_STATUS(rhizome_gnn_scores_v1()->Evaluate(
                    *(*graph)->Snapshot(), {.array = "row"},
                    {.test = SourceOf<VertexPair>({{.src = 0, .dst = 2}})}, control),
                kInvalidArgument);
}

TEST(OgbHitsTest, AreThoseOfOgbsEvaluator) {
  const std::vector<float> positives = {0.9F, 0.5F, 0.5F, 0.1F};
  const std::vector<float> negatives = {0.2F, 0.5F, 0.8F};
  EXPECT_EQ(OgbHits(positives, negatives, 1), 0.25);
  EXPECT_EQ(OgbHits(positives, negatives, 2), 0.25);  // equal is not better
  EXPECT_EQ(OgbHits(positives, negatives, 3), 0.75);
  EXPECT_EQ(OgbHits(positives, negatives, 4), 1);
}

}  // namespace
}  // namespace rhizome
