#include <span>
#include <vector>

#include "edits.h"
#include "index/delta/delta_record.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

DeltaContext Context(unsigned kind) {
  return {.symmetric = kind % 2 == 1,
          .string_ids = kind / 2 % 2 == 1,
          .attribute_count = kind / 4 % 3,
          .vertices = 4,
          .vertex_types = 2,
          .edge_types = 2};
}

/// Builds a record with every kind of change.
std::vector<std::byte> Sample(const DeltaContext& context) {
  DeltaRunBuilder builder(context.symmetric, context.attribute_count, 4);
  builder.AddVertex(context.string_ids ? ExternalId("n") : ExternalId(std::int64_t{7}), 1);
  builder.AddEdge(0, 4, 0, 1.5F, {});
  builder.AddEdge(2, 1, 1, 1, {});
  builder.EraseEdges(1, 3, 0);
  builder.DeleteVertex(3);
  builder.PutRow(1, 2);
  builder.AddEdgeType("e");
  builder.AddVertexType("v");
  builder.AddText(3, 2, "text");
  builder.AddText(3, 3, "another");
  builder.AddText(kEdgeTexts + 1, 0, "text");
  DeltaRun run = builder.Finish(1);
  run.state.commits.fill(std::byte{5});
  if (context.symmetric) run.state.leader = LeaderState{.store = {}, .commit = 6, .commits = {}};
  return EncodeDeltaRecord(run, context);
}

void Check(std::span<const std::byte> bytes, const DeltaContext& context) {
  const auto run = DecodeDeltaRecord(bytes, 1, context);
  if (!run) return;
  const auto encoded = EncodeDeltaRecord(*run, context);
  const auto again = DecodeDeltaRecord(encoded, 1, context);
  RHIZOME_CHECK(again.has_value());
  RHIZOME_CHECK(EncodeDeltaRecord(*again, context) == encoded);
}

}  // namespace

// Decodes raw bytes, and a valid record with edits. Each must be rejected, or decode to a run whose
// encoding decodes to the same run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const DeltaContext context = Context(data[0] / 2);
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    Check(std::as_bytes(input), context);
  } else {
    Check(fuzzing::WithEdits(Sample(context), input), context);
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (unsigned kind = 0; kind < 12; ++kind) {
    const std::vector<std::byte> sample = Sample(Context(kind));
    AddEdits(seeds, {static_cast<std::uint8_t>(2 * kind + 1)}, sample.size(), 400);
    AddChanged(seeds, Joined({static_cast<std::uint8_t>(2 * kind)}, sample), 1, 100);
  }
  return seeds;
}
