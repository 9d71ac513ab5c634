#include "gnn/links/few_rows.h"

#include <algorithm>
#include <cstring>

#include "cache/blocks/chunk_reader.h"
#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kStagingBytes = std::uint64_t{1} << 20;

/// Single rows are read if they are fewer, by this factor, than the rows of all chunks that would
/// be read.
constexpr std::uint64_t kRowAdvantage = 4;

}  // namespace

bool FewRows::possible() const {
  // The sidecar of the layout row is found in the store.
  return table_.entry().inner_rows != 0 ||
         (table_.published && table_.entry().layout == ArrayLayout::kRow);
}

bool FewRows::better(std::uint64_t rows, std::uint64_t chunks) const {
  return possible() && rows * kRowAdvantage < chunks * table_.entry().chunk_rows;
}

Result<std::uint64_t> FewRows::Read(std::span<const Row> rows, std::span<float> out) {
  const std::size_t row_bytes = table_.decoder.stored_row_bytes();
  stored_.resize(rows.size() * row_bytes);
  std::vector<RowTarget> in_files;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<std::byte> row = std::span(stored_).subspan(i * row_bytes, row_bytes);
    if (table_.delta != nullptr && table_.delta->Holds(rows[i]))
      RHIZOME_RETURN_IF_ERROR(table_.delta->Read(rows[i], row));
    else
      in_files.push_back({rows[i], row.data()});
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, table_.entry().layout == ArrayLayout::kRow
                                                          ? ReadSingle(in_files)
                                                          : ReadShards(in_files));
  table_.decoder.Decode(stored_, out);
  return bytes;
}

Result<std::uint64_t> FewRows::ReadSingle(std::span<RowTarget> targets) {
  if (reader_ == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(const auto sidecar,
                             table_.graph->store().OpenArray(SidecarName(table_.entry().name)));
    RHIZOME_ASSIGN_OR_RETURN(reader_, RowReader::Open(*table_.array, *sidecar,
                                                      {.io = {}, .staging_bytes = kStagingBytes}));
  }
  const std::uint64_t before = reader_->stats().read_bytes;
  RHIZOME_RETURN_IF_ERROR(reader_->Read(targets));
  return reader_->stats().read_bytes - before;
}

// Reads all wanted rows of an inner chunk at once, because it is decoded as a whole anyway.
Result<std::uint64_t> FewRows::ReadShards(std::span<const RowTarget> targets) {
  const ArrayEntry& entry = table_.entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  std::uint64_t bytes = 0;
  const auto inner_of = [&](std::size_t i) {
    return static_cast<std::uint64_t>(targets[i].row) / entry.inner_rows;
  };
  for (std::size_t i = 0; i < targets.size();) {
    std::size_t end = i + 1;
    while (end < targets.size() && inner_of(end) == inner_of(i)) ++end;
    const auto first = static_cast<std::uint64_t>(targets[i].row);
    const std::uint64_t count = static_cast<std::uint64_t>(targets[end - 1].row) - first + 1;
    run_.resize(count * row_bytes);
    RHIZOME_RETURN_IF_ERROR(table_.array->ReadRows(first, count, run_));
    bytes += run_.size();
    for (; i < end; ++i) {
      const std::uint64_t at = static_cast<std::uint64_t>(targets[i].row) - first;
      std::memcpy(targets[i].out, run_.data() + at * row_bytes, row_bytes);
    }
  }
  return bytes;
}

Result<GatheredRows> GatheredRows::Read(const LinkTable& table, std::vector<Row> rows,
                                        const JobControl& control) {
  GatheredRows gathered(std::move(rows), table.dim());
  const std::uint64_t chunk_rows = table.entry().chunk_rows;
  std::vector<std::uint64_t> chunks;
  for (const Row row : gathered.rows_) {
    const std::uint64_t chunk = static_cast<std::uint64_t>(row) / chunk_rows;
    if (chunks.empty() || chunks.back() != chunk) chunks.push_back(chunk);
  }
  FewRows few(table);
  if (few.better(gathered.rows_.size(), chunks.size())) {
    RHIZOME_RETURN_IF_ERROR(few.Read(gathered.rows_, gathered.values_));
    return gathered;
  }
  ChunkReader reader(*table.array, table.decoder, {.ahead = 1}, control, table.delta);
  for (const std::uint64_t chunk : chunks) reader.Append(chunk);
  std::size_t next = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const DecodedChunk chunk, reader.Next());
    const Row end = chunk.first_row + static_cast<Row>(chunk.rows);
    for (; next < gathered.rows_.size() && gathered.rows_[next] < end; ++next) {
      const auto at = static_cast<std::size_t>(gathered.rows_[next] - chunk.first_row);
      std::copy_n(chunk.values.get() + at * table.dim(), table.dim(),
                  gathered.values_.data() + next * table.dim());
    }
  }
  reader.Finish();
  return gathered;
}

std::uint32_t GatheredRows::PlaceOf(Row row) const {
  return static_cast<std::uint32_t>(std::lower_bound(rows_.begin(), rows_.end(), row) -
                                    rows_.begin());
}

}  // namespace internal
}  // namespace rhizome
