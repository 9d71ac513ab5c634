#include "index/delta/delta_record.h"

#include <algorithm>
#include <random>

#include "storage/base/bytes.h"
#include "testing/delta_histories.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::DeltaHistory;

struct Drawn {
  DeltaRun run;
  DeltaContext context;
  std::vector<std::byte> record;
};

// Draws a commit from a history, and encodes its record.
Drawn Draw(std::mt19937_64& rng) {
  const DeltaHistory::Shape shape{.symmetric = rng() % 2 == 0,
                                  .string_ids = rng() % 2 == 0,
                                  .attribute_count = static_cast<std::uint32_t>(rng() % 3),
                                  .base_vertices = 1 + rng() % 5,
                                  .base_sequence = rng() % 9};
  DeltaHistory history(shape);
  Drawn drawn;
  const std::uint64_t before = rng() % 3;
  for (std::uint64_t i = 0; i < before; ++i) history.Commit(rng, 6);
  drawn.context = {.symmetric = shape.symmetric,
                   .string_ids = shape.string_ids,
                   .attribute_count = shape.attribute_count,
                   .vertices = history.vertices(),
                   .vertex_types = 2,
                   .edge_types = history.edge_types(),
                   .previous = history.sequence(),
                   .first = before == 0,
                   .texts = history.text_ends()};
  drawn.run = history.Commit(rng, 12);
  drawn.record = EncodeDeltaRecord(drawn.run, drawn.context);
  return drawn;
}

TEST(DeltaRecordTest, DecodesToTheRunThatWasEncoded) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    const Drawn drawn = Draw(rng);
    const auto decoded = DecodeDeltaRecord(drawn.record, drawn.run.last_sequence, drawn.context);
    ASSERT_OK(decoded);
    EXPECT_EQ(EncodeDeltaRecord(*decoded, drawn.context), drawn.record);
    EXPECT_EQ(decoded->vertex_ids, drawn.run.vertex_ids);
    EXPECT_EQ(decoded->vertex_types, drawn.run.vertex_types);
    EXPECT_EQ(decoded->ids_sorted, drawn.run.ids_sorted);
    EXPECT_EQ(decoded->deleted, drawn.run.deleted);
    EXPECT_EQ(decoded->new_edge_types, drawn.run.new_edge_types);
    EXPECT_EQ(decoded->rows.size(), drawn.run.rows.size());
    EXPECT_TRUE(std::ranges::equal(
        decoded->texts, drawn.run.texts, [](const DeltaTexts& a, const DeltaTexts& b) {
          return a.id == b.id && a.first == b.first && a.texts == b.texts && a.sorted == b.sorted;
        }));
    const auto same = [](const DeltaEdge& a, const DeltaEdge& b) {
      return !KeyLess(a, b) && !KeyLess(b, a) && a.erase == b.erase && a.weight == b.weight;
    };
    EXPECT_TRUE(std::ranges::equal(decoded->out, drawn.run.out, same));
    EXPECT_TRUE(std::ranges::equal(decoded->in, drawn.run.in, same));
    if (HasFailure()) return;
  }
}

// Builds that know only plain names of types must refuse the record.
TEST(DeltaRecordTest, OnlyNamesThatAreNotPlainNeedVersion3) {
  const auto version_of = [](const std::string& type, std::uint64_t types) {
    const DeltaContext context{
        .vertices = 2, .vertex_types = 1, .edge_types = types, .first = true};
    DeltaRunBuilder builder(/*symmetric=*/false, /*attribute_count=*/0, /*first_vertex=*/2);
    builder.AddEdgeType(type);
    const auto record = EncodeDeltaRecord(builder.Finish(7), context);
    const auto decoded = DecodeDeltaRecord(record, 7, context);
    EXPECT_OK(decoded);
    if (decoded) {
      EXPECT_EQ(decoded->new_edge_types, std::vector<std::string>{type});
    }
    return static_cast<int>(record[0]);
  };
  EXPECT_EQ(version_of("likes", 1), 2);
  EXPECT_EQ(version_of("likes", 4095), 2);
  EXPECT_EQ(version_of("likes", 4096), 3);
  EXPECT_EQ(version_of("part of", 1), 3);
  EXPECT_EQ(version_of(std::string(512, 'x'), 1), 3);
}

// Builds that do not know texts in commits must refuse the record, because its codes need them.
TEST(DeltaRecordTest, TextsNeedVersion4AndFollowOnEarlierTexts) {
  const DeltaContext context{.vertices = 2, .first = true};
  DeltaRunBuilder builder(/*symmetric=*/false, /*attribute_count=*/0, /*first_vertex=*/2);
  builder.AddText(5, 7, "tea");
  builder.AddText(kEdgeTexts, 0, "rent");
  builder.AddText(5, 8, "ale");
  const auto record = EncodeDeltaRecord(builder.Finish(7), context);
  EXPECT_EQ(static_cast<int>(record[0]), 4);
  const auto decoded = DecodeDeltaRecord(record, 7, context);
  ASSERT_OK(decoded);
  const DeltaTexts* const added = FindTexts(decoded->texts, 5);
  ASSERT_NE(added, nullptr);
  EXPECT_EQ(added->Find("ale"), 8);
  EXPECT_EQ(added->Find("beer"), std::nullopt);
  EXPECT_EQ(FindTexts(decoded->texts, 4), nullptr);
  auto earlier = context;
  earlier.texts = {{5, 7}};
  EXPECT_OK(DecodeDeltaRecord(record, 7, earlier));
  earlier.texts = {{5, 6}};
  EXPECT_STATUS(DecodeDeltaRecord(record, 7, earlier), kCorruption);

  for (const std::string& wrong : {std::string(), std::string("\xff"), std::string("tea"),
                                   std::string((std::size_t{1} << 20) + 1, 'x')}) {
    builder.AddText(5, 7, "tea");
    builder.AddText(5, 8, wrong);
    EXPECT_STATUS(DecodeDeltaRecord(EncodeDeltaRecord(builder.Finish(7), context), 7, context),
                  kCorruption);
  }
}

TEST(DeltaRecordTest, RefusesEveryTruncationAndEveryByteMore) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const Drawn drawn = Draw(rng);
    for (std::size_t bytes = 0; bytes < drawn.record.size(); ++bytes)
      EXPECT_STATUS(DecodeDeltaRecord(std::span(drawn.record).first(bytes), drawn.run.last_sequence,
                                      drawn.context),
                    kCorruption);
    auto longer = drawn.record;
    longer.push_back(std::byte{0});
    EXPECT_STATUS(DecodeDeltaRecord(longer, drawn.run.last_sequence, drawn.context), kCorruption);
  }
}

// The checksum of the catalogue detects flipped bits. The decoder must still survive them, and
// accept only records that could have been written.
TEST(DeltaRecordTest, EveryFlippedBitIsRefusedOrAnotherValidRecord) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    const Drawn drawn = Draw(rng);
    for (std::size_t bit = 0; bit < drawn.record.size() * 8; ++bit) {
      auto bytes = drawn.record;
      bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      const auto decoded = DecodeDeltaRecord(bytes, drawn.run.last_sequence, drawn.context);
      if (!decoded) {
        const StatusCode code = decoded.error().code();
        ASSERT_TRUE(code == StatusCode::kCorruption || code == StatusCode::kUnsupported)
            << decoded.error().ToString();
        continue;
      }
      const auto again = EncodeDeltaRecord(*decoded, drawn.context);
      const auto twice = DecodeDeltaRecord(again, drawn.run.last_sequence, drawn.context);
      ASSERT_OK(twice);
      EXPECT_EQ(EncodeDeltaRecord(*twice, drawn.context), again);
    }
  }
}

TEST(DeltaRecordTest, NoticesALostRecordBeforeIt) {
  std::mt19937_64 rng(testing::TestSeed());
  const DeltaHistory::Shape shape;
  DeltaHistory history(shape);
  DeltaContext context{.vertices = 5, .vertex_types = 2};
  const DeltaRun first = history.Commit(rng, 1);
  const auto first_record = EncodeDeltaRecord(first, context);
  ASSERT_OK(DecodeDeltaRecord(first_record, 1, context));
  context.previous = 1;
  context.first = false;
  context.vertices = history.vertices();
  context.edge_types = history.edge_types();
  context.texts = history.text_ends();
  const DeltaRun second = history.Commit(rng, 1);
  const auto second_record = EncodeDeltaRecord(second, context);
  ASSERT_OK(DecodeDeltaRecord(second_record, 2, context));

  EXPECT_STATUS(DecodeDeltaRecord(second_record, 3, context), kCorruption);  // wrong key
  context.previous = 0;
  EXPECT_STATUS(DecodeDeltaRecord(second_record, 2, context), kCorruption);
  context.first = true;  // the generation ends at commit 0: commit 1 is missing
  EXPECT_STATUS(DecodeDeltaRecord(second_record, 2, context), kCorruption);
}

TEST(DeltaRecordTest, RefusesCountsThatTheRecordCannotHold) {
  ByteWriter out;
  out.Number(std::uint8_t{1});
  out.Number(std::uint64_t{1});
  out.Number(std::uint64_t{0});
  out.Number(std::uint64_t{0});
  out.Number(std::uint64_t{0});
  out.Number(std::uint64_t{0xFFFFFFFF});  // vertices
  EXPECT_STATUS(DecodeDeltaRecord(out.bytes(), 1, {.vertices = 5}), kCorruption);
}

}  // namespace
}  // namespace rhizome
