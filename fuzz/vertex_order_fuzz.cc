#include <vector>

#include "index/topology/vertex_order.h"
#include "sections.h"
#include "seeds.h"

namespace {

using namespace rhizome;

constexpr std::uint64_t kRows = 6;
constexpr std::uint32_t kPartitions = 2;

/// Builds an order as a store contains it: `grouped` by owner and type, or in the order of the
/// vertices.
std::vector<std::byte> Sample(bool grouped, std::uint32_t types) {
  const std::vector<VertexId> natural = {0, 1, 2, 3, 4, 5};
  const std::vector<VertexId> sorted = {4, 0, 2, 5, 1, 3};
  const std::vector<PartitionId> owners = {0, 1, 0, 1, 0, 1};
  const std::vector<TypeId> type_of_vertex = {1, 1, 1, 1, 0, 0};
  MemorySink sink;
  const OrderInput input{
      .vertex_of_row = grouped ? sorted : natural,
      .owner_of_vertex = owners,
      .type_of_vertex = types > 1 ? std::span(type_of_vertex) : std::span<const TypeId>(),
      .partitions = kPartitions,
      .vertex_types = types};
  RHIZOME_CHECK(VertexOrder::Write(sink, fuzzing::FuzzStoreId(), input).ok());
  return sink.Take();
}

/// Checks that the answers of an accepted order are consistent.
void Walk(const VertexOrder& order, std::uint32_t types) {
  std::vector<std::uint64_t> owned(kPartitions);
  for (Row row = 0; row < static_cast<Row>(order.size()); ++row) {
    RHIZOME_CHECK(order.RowOf(order.VertexAt(row)) == row);
    RHIZOME_CHECK(order.OwnerOf(row) < kPartitions && order.TypeOf(row) < types);
    ++owned[order.OwnerOf(row)];
    if (!order.grouped()) continue;
    const PartitionId owner = order.OwnerOf(row);
    RHIZOME_CHECK(row >= order.owner_begin(owner) && row < order.owner_begin(owner + 1U));
  }
  for (std::uint32_t p = 0; p < kPartitions; ++p) RHIZOME_CHECK(order.owned_count(p) == owned[p]);
}

}  // namespace

// Opens a sealed order with arbitrary content. It must be rejected, or be a permutation whose
// owners and types are in range.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  auto bytes = fuzzing::SealSections({data + 2, size - 2}, FileKind::kOrder);
  auto file =
      SectionFile::Parse(std::move(bytes), "fuzz", FileKind::kOrder, fuzzing::FuzzStoreId());
  if (!file) return 0;
  const std::uint32_t types = 1 + data[0] % 3;
  const auto order = VertexOrder::Parse(*std::move(file), data[1], kPartitions, types);
  if (!order) {
    RHIZOME_CHECK(order.error().code() == StatusCode::kCorruption);
    return 0;
  }
  Walk(*order, types);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (const bool grouped : {false, true}) {
    for (const std::uint8_t types : {1, 2}) {
      const auto sections = SectionsOf(Sample(grouped, types), FileKind::kOrder);
      const auto kind = static_cast<std::uint8_t>(types - 1);
      AddChanged(seeds, Joined({kind, std::uint8_t{kRows}}, sections), 0, 1500);
    }
  }
  return seeds;
}
