#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/topology/type_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph_scan.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/base/exceptions.h"

namespace rhizome {

class ArrayScan::Impl {
 public:
  Impl(std::shared_ptr<const GraphSnapshot> graph, std::unique_ptr<ChunkArray> array)
      : graph_(std::move(graph)),
        array_(std::move(array)),
        changed_(graph_->ChangedRows(array_->entry())),
        type_(TypeNamed(graph_->vertex_types(), BoundType(array_->entry()))) {}

  // Reads the next rows from the chunks and drops the rows of deleted vertices and, in a bound
  // array, of vertices of other types. Then it reads again
  // the rows that the chunks do not have: rows that were put, and all rows of new vertices.
  Status Next(std::uint64_t most, Block& block) {
    block.vertices.clear();
    block.rows.clear();
    again_.clear();
    const std::uint64_t bytes = entry().row_bytes();
    while (block.vertices.empty() && next_ < graph_->vertex_count()) {
      const std::uint64_t end = std::min(graph_->vertex_count(), next_ + most);
      block.rows.resize((end - next_) * bytes);
      for (; next_ < end; ++next_) {
        RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph_->VertexAt(static_cast<Row>(next_)));
        if (graph_->IsDeleted(vertex)) continue;
        if (type_) {
          RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph_->TypeOf(vertex));
          if (type != *type_) continue;
        }
        if (next_ >= entry().rows || std::binary_search(changed_.begin(), changed_.end(), vertex)) {
          again_.push_back(block.vertices.size());
        } else {
          RHIZOME_RETURN_IF_ERROR(CopyRow(next_, &block.rows[block.vertices.size() * bytes]));
        }
        block.vertices.push_back(vertex);
      }
      block.rows.resize(block.vertices.size() * bytes);
    }
    return ReadAgain(block);
  }

  const ArrayEntry& entry() const { return array_->entry(); }
  std::uint64_t rows_done() const { return next_; }
  const GraphSnapshot& graph() const { return *graph_; }

 private:
  Status CopyRow(std::uint64_t row, std::byte* out) {
    const std::uint64_t chunk = row / entry().chunk_rows;
    const std::uint64_t bytes = entry().row_bytes();
    if (chunk != chunk_ || held_.empty()) {
      held_.resize(array_->RowsInChunk(chunk) * bytes);
      RHIZOME_RETURN_IF_ERROR(array_->ReadChunk(chunk, held_));
      chunk_ = chunk;
    }
    std::memcpy(out, &held_[(row - chunk * entry().chunk_rows) * bytes], bytes);
    return Status::Ok();
  }

  Status ReadAgain(Block& block) const {
    if (again_.empty()) return Status::Ok();
    const std::uint64_t bytes = entry().row_bytes();
    std::vector<VertexId> vertices;
    for (const std::size_t i : again_) vertices.push_back(block.vertices[i]);
    std::vector<std::byte> rows(vertices.size() * bytes);
    RHIZOME_RETURN_IF_ERROR(graph_->ReadRows(entry().name, vertices, rows));
    for (std::size_t i = 0; i < again_.size(); ++i)
      std::memcpy(&block.rows[again_[i] * bytes], &rows[i * bytes], bytes);
    return Status::Ok();
  }

  const std::shared_ptr<const GraphSnapshot> graph_;
  const std::unique_ptr<ChunkArray> array_;
  const std::vector<VertexId> changed_;
  const std::optional<TypeId> type_;  // of a bound array
  std::uint64_t next_ = 0;            // next row
  std::vector<std::size_t> again_;    // positions in the block
  std::vector<std::byte> held_;       // decoded rows of chunk_; empty: none
  std::uint64_t chunk_ = 0;
};

ArrayScan::ArrayScan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArrayScan::~ArrayScan() = default;
ArrayScan::ArrayScan(ArrayScan&&) noexcept = default;
ArrayScan& ArrayScan::operator=(ArrayScan&&) noexcept = default;

Result<ArrayScan> ArrayScan::Open(const Graph& graph, std::string_view array) try {
  auto fixed = graph.Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(auto opened, fixed->store().OpenArray(array));
  if (IsOfEdges(opened->entry()) || opened->entry().row_bytes() == 0)
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' has a row for each edge of a partition, not for each vertex",
                    ShownName(opened->entry().name))));
  return ArrayScan(std::make_unique<Impl>(std::move(fixed), std::move(opened)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<bool> ArrayScan::Next(std::uint64_t most, Block& block) try {
  RHIZOME_RETURN_IF_ERROR(impl_->Next(std::max<std::uint64_t>(most, 1), block));
  return !block.vertices.empty();
} catch (...) {
  return Fail(StatusOfException());
}

const ArrayEntry& ArrayScan::entry() const { return impl_->entry(); }
std::uint64_t ArrayScan::rows_done() const { return impl_->rows_done(); }
const GraphSnapshot& ArrayScan::graph() const { return impl_->graph(); }

}  // namespace rhizome
