#include "gnn/tables/publish_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "index/arrays/publish_array.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Reads the values of the rows [first, first + count) of the graph's order.
Status ReadValues(const TableJob& job, RowTable& table, Row first, std::uint64_t count,
                  std::span<std::byte> values) {
  const std::size_t value_bytes = job.dim() * sizeof(float);
  std::vector<std::byte> rows(count * table.row_bytes());
  std::vector<RowTarget> targets(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex,
                             job.graph->VertexAt(first + static_cast<Row>(i)));
    targets[i] = {.row = static_cast<std::int64_t>(job.batches->table_order().RowOf(vertex)),
                  .out = rows.data() + i * table.row_bytes()};
  }
  RHIZOME_RETURN_IF_ERROR(table.Read(targets));
  for (std::uint64_t i = 0; i < count; ++i)
    std::memcpy(values.data() + i * value_bytes, rows.data() + i * table.row_bytes(), value_bytes);
  return Status::Ok();
}

ArrayEntry EntryOf(const TableJob& job, const std::string& name) {
  return {.name = name,
          .rows = job.graph->vertex_count(),
          .dim = job.dim(),
          .dtype = DataType::kFloat32,
          .layout = ArrayLayout::kRow,
          .codec = {},
          .chunk_rows = 0,
          .array_id = NewArrayId(job.store->id(), job.store->manifest(), "train " + name),
          .attributes = {{"decoder", job.kind->name}, {"made_by", "train table"}}};
}

}  // namespace

Status CheckNewArray(const Store& store, const std::string& name) {
  RHIZOME_RETURN_IF_ERROR(CheckName("array", name));
  if (store.manifest().FindArray(name) == nullptr) return Status::Ok();
  return Status::AlreadyExists(
      fmt::format("`out_array`: the store has an array '{}' already; choose another name, or drop "
                  "it first",
                  name));
}

Status PublishTable(const TableJob& job, const Path& store, const std::string& name,
                    RowTable& table, const Path& scratch, const JobControl& control) {
  FileSystem& fs = job.store->fs();
  ArrayEntry entry = EntryOf(job, name);
  // As for an array of the generation, because rows of new vertices are published separately.
  entry.rows = job.graph->info().vertices;
  RHIZOME_RETURN_IF_ERROR(ChooseChunkRows(entry));
  entry.rows = job.graph->vertex_count();
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, ChunkArrayWriter::Create(fs, scratch, entry));
  const std::uint64_t chunk_rows = writer->entry().chunk_rows;
  std::vector<std::byte> values;
  for (std::uint64_t chunk = 0; chunk < writer->entry().chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "publish",
                                            .done = chunk,
                                            .total = writer->entry().chunk_count(),
                                            .detail = name}));
    const std::uint64_t first = chunk * chunk_rows;
    const std::uint64_t count = std::min(chunk_rows, entry.rows - first);
    values.resize(count * entry.row_bytes());
    RHIZOME_RETURN_IF_ERROR(ReadValues(job, table, static_cast<Row>(first), count, values));
    RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(chunk, values));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto files, writer->Finish());
  const std::vector<ArrayEntry> arrays = writer->arrays();
  const auto published =
      PublishMade(store, {.made_for = job.graph->store(), .source = {arrays, scratch, files}},
                  control, [](ArrayChange& change, const ArraySource& source) -> Status {
                    RHIZOME_RETURN_IF_ERROR(change.Add(source));
                    return Status::Ok();
                  });
  return published ? Status::Ok() : published.error();
}

}  // namespace internal
}  // namespace rhizome
