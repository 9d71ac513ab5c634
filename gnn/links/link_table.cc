#include "gnn/links/link_table.h"

#include <fmt/format.h>

#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

Result<LinkTable> LinkTable::Open(const GraphSnapshot& graph, const std::string& name) {
  std::shared_ptr<const GraphSnapshot> fixed = graph.Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(auto array, fixed->store().OpenArray(name));
  const ArrayEntry& entry = array->entry();
  if (IsOfEdges(entry) || entry.rows != fixed->info().vertices) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} has {} rows, but there are {} vertices; give an array with one row "
                    "for each vertex",
                    ShownName(entry.name), entry.rows, fixed->info().vertices)));
  }
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(entry, /*normalize=*/false));
  std::shared_ptr<const DeltaRows> delta = DeltaRows::Of(fixed, entry);
  return LinkTable{std::move(fixed), std::move(array), decoder, std::move(delta)};
}

Result<LinkTable> LinkTable::OfRows(const GraphSnapshot& graph, const ChunkArray& rows) {
  RHIZOME_CHECK(rows.entry().rows == graph.vertex_count());
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(rows.entry(), /*normalize=*/false));
  // Without ownership.
  const std::shared_ptr<const ChunkArray> array(std::shared_ptr<void>(), &rows);
  return LinkTable{.graph = graph.Snapshot(),
                   .array = array,
                   .decoder = decoder,
                   .delta = nullptr,
                   .published = false};
}

}  // namespace internal
}  // namespace rhizome
