#include "index/delta/delta_row_writer.h"

#include <fmt/format.h>

#include <vector>

#include "index/delta/delta_record.h"
#include "index/delta/stale_vertices.h"
#include "storage/catalog/catalog.h"
#include "storage/catalog/delta_head.h"

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<DeltaRowWriter>> DeltaRowWriter::Open(Store& store) {
  RHIZOME_RETURN_IF_ERROR(store.ClaimDelta());
  std::unique_ptr<DeltaRowWriter> writer(new DeltaRowWriter(store));
  RHIZOME_ASSIGN_OR_RETURN(writer->delta_, Delta::Load(Delta::Empty(DeltaBaseOf(store)), store));
  return writer;
}

Status DeltaRowWriter::Put(std::uint64_t array_id, VertexId first, std::uint64_t row_bytes,
                           std::span<const std::byte> rows) {
  if (rows.empty() || row_bytes == 0) return Status::Ok();
  const std::uint64_t count = rows.size() / row_bytes;
  if (first < 0 || static_cast<std::uint64_t>(first) + count > vertices())
    return Status::InvalidArgument(
        fmt::format("rows for the vertices {} to {} are out of range: there are {} vertices", first,
                    first + static_cast<VertexId>(count) - 1, vertices()));
  const DeltaContext context = delta_->Context();
  DeltaRunBuilder builder(context.symmetric, context.attribute_count,
                          static_cast<VertexId>(context.vertices));
  std::vector<DeltaRow> put;
  put.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const VertexId vertex = first + static_cast<VertexId>(i);
    builder.PutRow(array_id, vertex);
    put.push_back({array_id, vertex, rows.subspan(i * row_bytes, row_bytes)});
  }
  DeltaRun run;
  std::vector<std::byte> record;
  const auto make = [&](std::uint64_t sequence,
                        const HistoryState& before) -> std::vector<DeltaCommit> {
    run = builder.Finish(sequence);
    run.state.leader = before.leader;
    record = EncodeDeltaRecord(run, context);
    run.state.commits = SealDeltaRecord(record, before.commits, put);
    return {{.sequence = sequence, .record = record, .rows = put}};
  };
  RHIZOME_RETURN_IF_ERROR(store_.CommitDelta(/*sync=*/false, make));
  delta_ = delta_->With(std::move(run));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
