#include "gnn/links/decoder.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "cache/job/safetensors.h"
#include "cache/kernels/simd.h"
#include "gnn/links/decoder_registry.h"
#include "gnn/links/link_decoder.h"
#include "testing/testing.h"

// Tests of decoders: scores of pairs and of queries against the formulas of PyG's layers
// (torch_geometric.nn.kge) in double precision, gradients against libtorch's autograd, the bits of
// a score under all processors and groupings, and files of decoders.

namespace rhizome {
namespace {

using testing::TempDir;

constexpr std::size_t kDecoderDim = 24;

/// The decoders that turn an edge with an open end into a query, with both norms of TransE.
struct QueryKind {
  std::string name;
  std::string norm = {};
};
const std::vector<QueryKind> kQueryKinds = {{"dot"},         {"distmult"},    {"complex"},
                                            {"transe", "1"}, {"transe", "2"}, {"rotate"}};

std::pair<torch::Tensor, torch::Tensor> Halves(const torch::Tensor& x) {
  const auto half = static_cast<std::int64_t>(kDecoderDim) / 2;
  return {x.slice(-1, 0, half), x.slice(-1, half, 2 * half)};
}

/// The formulas of PyG: DistMult, ComplEx, TransE (without its normalisation of the rows) and
/// RotatE (without its margin).
torch::Tensor PygScore(const QueryKind& kind, const torch::Tensor& head, const torch::Tensor& rel,
                       const torch::Tensor& tail) {
  if (kind.name == "dot") return (head * tail).sum(-1);
  if (kind.name == "distmult") return (head * rel * tail).sum(-1);
  if (kind.name == "transe") return -(head + rel - tail).norm(std::stod(kind.norm), {-1});
  const auto [head_re, head_im] = Halves(head);
  const auto [tail_re, tail_im] = Halves(tail);
  if (kind.name == "complex") {
    const auto [rel_re, rel_im] = Halves(rel);
    return (head_re * rel_re * tail_re).sum(-1) + (head_im * rel_re * tail_im).sum(-1) +
           (head_re * rel_im * tail_im).sum(-1) - (head_im * rel_im * tail_re).sum(-1);
  }
  const torch::Tensor rel_re = torch::cos(rel);
  const torch::Tensor rel_im = torch::sin(rel);
  const torch::Tensor re = rel_re * head_re - rel_im * head_im - tail_re;
  const torch::Tensor im = rel_re * head_im + rel_im * head_re - tail_im;
  return -torch::stack({re, im}, 0).norm(2, {0}).sum(-1);
}

class DecoderTest : public ::testing::Test {
 protected:
  std::vector<float> Numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(random_);
    return numbers;
  }

  NamedTensor Tensor(std::vector<std::int64_t> shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    return {.shape = std::move(shape), .values = Numbers(count)};
  }

  static std::size_t RelationWidth(const std::string& name) {
    const DecoderKind* const kind = *FindDecoderKind(name);
    return kind->relation_width == nullptr ? 0 : kind->relation_width(kDecoderDim);
  }

  /// A file of a decoder with `relations` relations.
  TensorFile FileOf(const QueryKind& kind, std::int64_t relations) {
    TensorFile file;
    file.metadata["decoder"] = kind.name;
    if (!kind.norm.empty()) file.metadata["norm"] = kind.norm;
    if (const std::size_t width = RelationWidth(kind.name); width > 0)
      file.tensors["relations"] = Tensor({relations, static_cast<std::int64_t>(width)});
    return file;
  }

  Path Save(const TensorFile& file) const {
    const Path path = folder_ / "decoder.safetensors";
    EXPECT_OK(SaveSafetensors(path, file));
    return path;
  }

  Result<LinkDecoder> Load(const TensorFile& file, const std::vector<std::string>& types,
                           const std::string& name = {}) const {
    return LinkDecoder::Load({.name = name, .path = Save(file)}, kDecoderDim, types);
  }

  static torch::Tensor ToDouble(const std::vector<float>& values, std::int64_t rows) {
    return torch::tensor(values).reshape({rows, -1}).to(torch::kFloat64);
  }

  const TempDir folder_;
  std::mt19937_64 random_{testing::TestSeed()};
};

TEST_F(DecoderTest, ScoresOfPairsAndOfBothOpenEndsAreThoseOfPyg) {
  constexpr std::int64_t kPairs = 40;
  for (const QueryKind& kind : kQueryKinds) {
    TensorFile file = FileOf(kind, 1);
    const auto decoder = Load(file, {"a"});
    ASSERT_OK(decoder);
    const std::vector<float> src = Numbers(kPairs * kDecoderDim);
    const std::vector<float> dst = Numbers(kPairs * kDecoderDim);
    const torch::Tensor relation =
        kind.name == "dot" ? torch::Tensor() : ToDouble(file.tensors["relations"].values, 1);
    const torch::Tensor expected =
        PygScore(kind, ToDouble(src, kPairs), relation, ToDouble(dst, kPairs));
    std::vector<PairRows> pairs;
    for (std::size_t i = 0; i < kPairs; ++i)
      pairs.push_back(
          decoder->PairOf(src.data() + i * kDecoderDim, dst.data() + i * kDecoderDim, 0));
    std::vector<float> scores(kPairs);
    decoder->decoder().Score(pairs, scores);
    for (std::int64_t i = 0; i < kPairs; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_NEAR(scores[at], expected[i].item<double>(), 1e-4) << kind.name << kind.norm;
      for (const EdgeEnd open : {EdgeEnd::kSrc, EdgeEnd::kDst}) {
        const bool to_dst = open == EdgeEnd::kDst;
        const std::vector<QueryRows> query = {
            decoder->QueryOf(to_dst ? pairs[at].src : pairs[at].dst, 0, open)};
        float score = 0;
        decoder->decoder().Group(query)->Score({.x = to_dst ? pairs[at].dst : pairs[at].src,
                                                .stride = kDecoderDim,
                                                .columns = kDecoderDim},
                                               1, &score, 1);
        EXPECT_NEAR(score, expected[i].item<double>(), 1e-4) << kind.name << kind.norm << to_dst;
      }
    }
  }
}

TEST_F(DecoderTest, ReciprocalSourcesAreDestinationsOfTheInverseRelation) {
  TensorFile file = FileOf({"complex"}, 4);  // two relations, then their inverses
  file.metadata["reciprocal"] = "true";
  const auto decoder = Load(file, {"a", "b"});
  ASSERT_OK(decoder);
  const std::vector<float> rows = Numbers(2 * kDecoderDim);
  const torch::Tensor given = ToDouble({rows.begin(), rows.begin() + kDecoderDim}, 1);
  const torch::Tensor other = ToDouble({rows.begin() + kDecoderDim, rows.end()}, 1);
  const torch::Tensor relations = ToDouble(file.tensors["relations"].values, 4);
  for (const TypeId type : {TypeId{0}, TypeId{1}}) {
    for (const EdgeEnd open : {EdgeEnd::kSrc, EdgeEnd::kDst}) {
      const std::vector<QueryRows> query = {decoder->QueryOf(rows.data(), type, open)};
      float score = 0;
      decoder->decoder().Group(query)->Score(
          {.x = rows.data() + kDecoderDim, .stride = kDecoderDim, .columns = kDecoderDim}, 1,
          &score, 1);
      const torch::Tensor relation = relations[type + (open == EdgeEnd::kSrc ? 2 : 0)];
      EXPECT_NEAR(score, PygScore({"complex"}, given, relation, other).item<double>(), 1e-4);
    }
  }
}

TEST_F(DecoderTest, GradientsAreThoseOfAutograd) {
  for (const QueryKind& kind : kQueryKinds) {
    const auto loaded = Load(FileOf(kind, 1), {"a"});
    ASSERT_OK(loaded);
    const auto& decoder = dynamic_cast<const QueryDecoder&>(loaded->decoder());
    for (const EdgeEnd open : {EdgeEnd::kSrc, EdgeEnd::kDst}) {
      const std::vector<float> given = Numbers(kDecoderDim);
      const std::vector<float> candidate = Numbers(kDecoderDim);
      const std::size_t width = RelationWidth(kind.name);
      const std::vector<float> relation = Numbers(width);
      const QueryRows rows{.given = given.data(), .relation = relation.data(), .open = open};
      std::vector<float> query(kDecoderDim);
      decoder.Query(rows, query.data());
      constexpr float kLossGradient = 0.7F;
      // Gradients are added to what is there.
      std::vector<float> query_gradient(kDecoderDim, 0);
      std::vector<float> candidate_gradient(kDecoderDim, 1);
      std::vector<float> given_gradient(kDecoderDim, 2);
      std::vector<float> relation_gradient(width, 3);
      AddCombineGradient(decoder.combination(), kDecoderDim, query.data(), candidate.data(),
                         kLossGradient, query_gradient.data(), candidate_gradient.data());
      decoder.AddQueryGradient(rows, query_gradient.data(), given_gradient.data(),
                               relation_gradient.data());

      const auto variable = [](const std::vector<float>& values) {
        return ToDouble(values, 1).squeeze(0).set_requires_grad(true);
      };
      const torch::Tensor g = variable(given);
      const torch::Tensor c = variable(candidate);
      const torch::Tensor r = width == 0 ? torch::Tensor() : variable(relation);
      (kLossGradient * (open == EdgeEnd::kDst ? PygScore(kind, g, r, c) : PygScore(kind, c, r, g)))
          .backward();
      const auto expect = [&](const std::vector<float>& found, float before,
                              const torch::Tensor& wanted) {
        for (std::size_t d = 0; d < found.size(); ++d) {
          EXPECT_NEAR(found[d] - before, wanted[static_cast<std::int64_t>(d)].item<double>(), 1e-4)
              << kind.name << kind.norm << (open == EdgeEnd::kDst ? " dst " : " src ") << d;
        }
      };
      expect(given_gradient, 2, g.grad());
      expect(candidate_gradient, 1, c.grad());
      if (width > 0) expect(relation_gradient, 3, r.grad());
    }
  }
}

// A distance has no derivative where a difference is 0. It counts as 0.
TEST_F(DecoderTest, GradientsOfEqualRowsAreZero) {
  const std::vector<float> row = Numbers(kDecoderDim);
  for (const Combination by : {Combination::kL1, Combination::kL2, Combination::kModulus}) {
    std::vector<float> query_gradient(kDecoderDim, 0);
    std::vector<float> row_gradient(kDecoderDim, 0);
    AddCombineGradient(by, kDecoderDim, row.data(), row.data(), 1, query_gradient.data(),
                       row_gradient.data());
    EXPECT_EQ(query_gradient, std::vector<float>(kDecoderDim, 0));
    EXPECT_EQ(row_gradient, std::vector<float>(kDecoderDim, 0));
  }
}

TEST_F(DecoderTest, BitsDependOnQueryAndRowAlone) {
  const SimdPath usual = CurrentSimdPath();
  for (const Combination by :
       {Combination::kDot, Combination::kL1, Combination::kL2, Combination::kModulus}) {
    for (const std::size_t dim : {std::size_t{2}, std::size_t{30}, std::size_t{512}}) {
      const std::size_t queries = 1 + random_() % 70;
      const std::size_t rows = 1 + random_() % 70;
      const std::vector<float> query = Numbers(queries * dim);
      const std::vector<float> row = Numbers(rows * dim);
      std::vector<float> first;
      for (const SimdPath path : AvailableSimdPaths()) {
        SetSimdPath(path);
        std::vector<float> all(rows * queries);
        PackedQueries(by, dim, query)
            .Score({.x = row.data(), .stride = dim, .columns = dim}, rows, all.data(), queries);
        if (first.empty()) first = all;
        EXPECT_EQ(first, all) << SimdPathName(path);
        const std::size_t q = random_() % queries;
        const std::size_t r = random_() % rows;
        float one = 0;
        PackedQueries(by, dim, std::span(query).subspan(q * dim, dim))
            .Score({.x = row.data() + r * dim, .stride = dim, .columns = dim}, 1, &one, 1);
        EXPECT_EQ(one, all[r * queries + q]) << SimdPathName(path);
        EXPECT_NEAR(one, Combine(by, dim, query.data() + q * dim, row.data() + r * dim), 1e-2);
      }
      SetSimdPath(usual);
    }
  }
}

TEST_F(DecoderTest, NamesOfRelationsFindTheirRows) {
  TensorFile file = FileOf({"distmult"}, 2);
  file.metadata["relation_names"] = R"(["likes", "knows"])";
  const auto decoder = Load(file, {"knows", "hates", "likes"});
  ASSERT_OK(decoder);
  EXPECT_OK(decoder->CheckType(0));
  EXPECT_STATUS(decoder->CheckType(1), kInvalidArgument);
  EXPECT_STATUS(decoder->CheckType(3), kInvalidArgument);
  const std::vector<float>& values = file.tensors["relations"].values;
  const std::vector<float> ones(kDecoderDim, 1);
  for (const auto& [type, row] : {std::pair<TypeId, std::size_t>{0, 1}, {2, 0}}) {
    const PairRows pair = decoder->PairOf(ones.data(), ones.data(), type);
    EXPECT_EQ(*pair.relation, values[row * kDecoderDim]);
  }
}

TEST_F(DecoderTest, AFileNamesItsDecoder) {
  const TensorFile named = FileOf({"rotate"}, 1);
  EXPECT_OK(Load(named, {"a"}));
  EXPECT_OK(Load(named, {"a"}, "rotate"));
  EXPECT_STATUS(Load(named, {"a"}, "complex"), kInvalidArgument);
  TensorFile unnamed = FileOf({"distmult"}, 1);
  unnamed.metadata.clear();
  EXPECT_STATUS(Load(unnamed, {"a"}), kInvalidArgument);
  EXPECT_OK(Load(unnamed, {"a"}, "distmult"));
  const auto without = LinkDecoder::Load({}, kDecoderDim, {"a"});
  ASSERT_OK(without);
  EXPECT_EQ(without->kind().name, "dot");
}

TEST_F(DecoderTest, FilesThatDoNotFitAreRefused) {
  const auto refused = [&](const TensorFile& file, const std::string& part,
                           std::uint64_t dim = kDecoderDim) {
    const auto decoder = LinkDecoder::Load({.name = {}, .path = Save(file)}, dim, {"a", "b"});
    EXPECT_STATUS(decoder, kInvalidArgument);
    const std::string message = testing::AsStatus(decoder).message();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const char* name : {"complex", "rotate"}) refused(FileOf({name}, 2), "even", 23);
  refused(FileOf({"complex"}, 2), "relations", 26);
  refused(FileOf({"distmult"}, 3), "2 edge types");
  TensorFile file = FileOf({"transe", "3"}, 2);
  refused(file, "norm");
  file = FileOf({"distmult"}, 3);
  file.metadata["reciprocal"] = "true";
  refused(file, "2 x");
  file.metadata["reciprocal"] = "yes";
  refused(file, "true or false");
  file = FileOf({"distmult"}, 2);
  for (const char* names : {"a,b", "[1, 2]", R"(["a"])"}) {
    file.metadata["relation_names"] = names;
    refused(file, "relation_names");
  }
  file = FileOf({"distmult"}, 2);
  file.tensors["other"] = Tensor({1});
  refused(file, "one tensor");
  file = FileOf({"dot"}, 2);
  file.tensors["other"] = Tensor({1});
  refused(file, "dot");
  file = FileOf({"dot"}, 2);
  file.metadata["reciprocal"] = "true";
  refused(file, "reciprocal");
  file.metadata["decoder"] = "conve";
  refused(file, "existing decoders");
}

}  // namespace
}  // namespace rhizome
