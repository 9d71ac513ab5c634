#include <string>

#include "index/topology/vertex_ids.h"
#include "rhizome/types.h"
#include "sections.h"
#include "seeds.h"

// Opens a sealed dictionary with arbitrary content. It must be rejected, or a lookup must find
// every id in it, except the ids of deleted vertices.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rhizome;
  if (size < 2) return 0;
  auto bytes = fuzzing::SealSections({data + 2, size - 2}, FileKind::kVertexIds);
  auto file =
      SectionFile::Parse(std::move(bytes), "fuzz", FileKind::kVertexIds, fuzzing::FuzzStoreId());
  if (!file) return 0;
  const auto kind = data[0] % 2 == 0 ? ExternalIdKind::kInteger : ExternalIdKind::kString;
  const std::uint64_t count = data[1];
  const auto ids = VertexIds::Parse(*std::move(file), kind, count);
  if (!ids) return 0;
  for (VertexId v = 0; v < static_cast<VertexId>(count); ++v) {
    const ExternalId id = ids->IdOf(v);
    RHIZOME_CHECK((ids->Find(id) == v) != ids->IsDeleted(v));
    RHIZOME_CHECK(ids->Find(ExternalId(ToString(id))) == ids->Find(id));
    if (ids->IsDeleted(v)) continue;
    RHIZOME_CHECK(ids->SortedAt(ids->LowerBound(id)) == v);
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  const std::vector<std::int64_t> integers = {5, -7, 1'000'000'000'000, 3};
  const std::vector<std::string> strings = {"b", "a", "", "c\xC3\xA9"};
  const std::vector<VertexId> deleted = {2};
  for (const bool with_deleted : {false, true}) {
    const auto gone = with_deleted ? std::span(deleted) : std::span<const VertexId>();
    for (const std::uint8_t kind : {0, 1}) {
      MemorySink sink;
      const Status status =
          kind == 0
              ? VertexIds::Write(sink, FuzzStoreId(), std::span<const std::int64_t>(integers), gone)
              : VertexIds::Write(sink, FuzzStoreId(), std::span<const std::string>(strings), gone);
      RHIZOME_CHECK(status.ok());
      AddChanged(seeds, Joined({kind, 4}, SectionsOf(sink.Take(), FileKind::kVertexIds)), 2, 1500);
      seeds.push_back(seeds.back());
      seeds.back()[1] = 5;
    }
  }
  return seeds;
}
