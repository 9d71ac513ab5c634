#include "index/ingest/edge_pairs.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "index/generation/edge_spool.h"
#include "index/generation/spill.h"
#include "index/ids/id_table.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_steps.h"

namespace rhizome {

namespace {

constexpr std::uint64_t kQueueBytes = std::uint64_t{4} << 20;

Result<EdgeSpool> Spill(const IdTable::Vertices& vertices, SpillSpace& space,
                        const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter writer,
                           EdgeSpoolWriter::Create(space, kSpoolBlockEdges));
  const PartitionInput edges(vertices.count, vertices.src, vertices.dst);
  RHIZOME_RETURN_IF_ERROR(edges.ForEachBlock(
      [&](std::uint64_t first, std::span<const VertexId> src, std::span<const VertexId> dst) {
        writer.edges.src.assign(src.begin(), src.end());
        writer.edges.dst.assign(dst.begin(), dst.end());
        const Status reported = control.Report({"write edges", first, edges.edge_count(), {}});
        return reported.ok() ? writer.Flush(src.size()) : reported;
      }));
  return writer.Finish(0);
}

}  // namespace

class EdgePairs::Impl {
 public:
  std::unique_ptr<SpillSpace> space;
  EdgeSpool ends;  // declared after space, so that it is destroyed before it
  std::uint64_t vertex_count = 0;
  std::uint64_t bad_lines = 0;
  std::vector<std::string> notes;
  bool ids_are_numbers = false;
};

EdgePairs::EdgePairs(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EdgePairs::EdgePairs(EdgePairs&&) noexcept = default;
EdgePairs& EdgePairs::operator=(EdgePairs&&) noexcept = default;
EdgePairs::~EdgePairs() = default;

std::uint64_t EdgePairs::vertex_count() const { return impl_->vertex_count; }
std::uint64_t EdgePairs::edge_count() const { return impl_->ends.edges; }
std::uint64_t EdgePairs::bad_lines() const { return impl_->bad_lines; }
const std::vector<std::string>& EdgePairs::notes() const { return impl_->notes; }
bool EdgePairs::ids_are_numbers() const { return impl_->ids_are_numbers; }
PartitionInput EdgePairs::input() const { return InputOf(impl_->vertex_count, impl_->ends); }

Result<EdgePairs> ReadEdgePairs(FileSystem& fs, const Path& folder, const IngestOptions& given,
                                const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const InputPlan plan, Sniff(fs, given));
  const IngestOptions& options = plan.options;
  RHIZOME_RETURN_IF_ERROR(CheckEdgeColumns(options));
  RHIZOME_RETURN_IF_ERROR(CheckGivenVertices(options));
  auto pairs = std::make_unique<EdgePairs::Impl>();
  RHIZOME_ASSIGN_OR_RETURN(pairs->space, SpillSpace::Create(fs, folder, "edges", kQueueBytes));
  IngestContext context(fs, plan, control, /*spills=*/false);
  IdTable ids(options.id_type);
  RHIZOME_RETURN_IF_ERROR(ReadEdges(context, ids, /*space=*/nullptr));
  const std::uint64_t implied = options.vertices.value_or(0);
  RHIZOME_ASSIGN_OR_RETURN(const IdTable::Vertices vertices,
                           std::move(ids).Resolve(implied, fmt::format("`vertices={}`", implied)));
  RHIZOME_RETURN_IF_ERROR(CheckVertexBound(options, vertices.count));
  RHIZOME_ASSIGN_OR_RETURN(pairs->ends, Spill(vertices, *pairs->space, control));
  pairs->vertex_count = vertices.count;
  pairs->bad_lines = context.bad_lines();
  pairs->notes = context.Notes();
  pairs->ids_are_numbers = vertices.kind == ExternalIdKind::kDense;
  return EdgePairs(std::move(pairs));
}

}  // namespace rhizome
