// Spill files of edges. EncodeEdges and DecodeEdges convert a block of edges to and from bytes;
// EdgeSpoolWriter fills and writes blocks; EdgeSpoolReader reads them back in order.

#include "index/generation/edge_spool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace rhizome {

namespace {

struct BlockHead {
  std::uint32_t ends;  // number of src values, which is also the number of dst values
  std::uint32_t types;
  std::uint32_t weights;
  std::uint16_t attributes;
  std::uint16_t end_bytes;  // 4 or 8
};
struct AttributeHead {
  std::uint64_t values;
  std::int64_t null;  // if has_null
  std::uint32_t dim;
  std::uint16_t dtype;
  std::uint16_t has_null;
};

void Put(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  const std::size_t before = out.size();
  out.resize(before + bytes.size());
  if (!bytes.empty()) std::memcpy(out.data() + before, bytes.data(), bytes.size());
}

bool Narrow(std::span<const VertexId> ends) {
  std::uint64_t all = 0;
  for (const VertexId end : ends) all |= static_cast<std::uint64_t>(end);
  return all <= UINT32_MAX;
}

void PutEnds(std::vector<std::byte>& out, std::span<const VertexId> ends, bool narrow) {
  if (!narrow) return Put(out, std::as_bytes(ends));
  const std::size_t before = out.size();
  out.resize(before + ends.size() * 4);
  std::byte* at = out.data() + before;
  for (const VertexId end : ends) {
    const auto low = static_cast<std::uint32_t>(end);
    std::memcpy(at, &low, sizeof(low));
    at += sizeof(low);
  }
}

/// Removes pieces from the front of a block, and refuses pieces that are longer than the rest.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool Take(std::span<std::byte> out) {
    if (out.size() > rest_.size()) return false;
    if (!out.empty()) std::memcpy(out.data(), rest_.data(), out.size());
    rest_ = rest_.subspan(out.size());
    return true;
  }
  template <typename T>
  bool TakeColumn(std::vector<T>& column, std::size_t count) {
    if (count > rest_.size() / sizeof(T)) return false;
    column.resize(count);
    return Take(std::as_writable_bytes(std::span(column)));
  }
  bool TakeNarrow(std::vector<VertexId>& column, std::size_t count) {
    if (count > rest_.size() / 4) return false;
    column.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t low = 0;
      std::memcpy(&low, rest_.data() + i * sizeof(low), sizeof(low));
      column[i] = low;
    }
    rest_ = rest_.subspan(count * 4);
    return true;
  }
  bool TakeBytes(std::size_t count, std::span<const std::byte>& out) {
    if (count > rest_.size()) return false;
    out = rest_.first(count);
    rest_ = rest_.subspan(count);
    return true;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

// Layout of a block: BlockHead, the ends, types, weights, and for each attribute an AttributeHead
// with its values. Spill files are read by the process that wrote them, so numbers are in native
// byte order.
std::vector<std::byte> internal::EncodeEdges(const EdgeList& edges) {
  const bool narrow = Narrow(edges.src) && Narrow(edges.dst);
  const BlockHead head{static_cast<std::uint32_t>(edges.src.size()),
                       static_cast<std::uint32_t>(edges.type.size()),
                       static_cast<std::uint32_t>(edges.weight.size()),
                       static_cast<std::uint16_t>(edges.attributes.size()),
                       static_cast<std::uint16_t>(narrow ? 4 : 8)};
  std::vector<std::byte> out;
  out.reserve(sizeof(head) + edges.src.size() * (narrow ? 8 : 16) + edges.type.size() * 2 +
              edges.weight.size() * 4);
  Put(out, std::as_bytes(std::span(&head, 1)));
  PutEnds(out, edges.src, narrow);
  PutEnds(out, edges.dst, narrow);
  Put(out, std::as_bytes(std::span(edges.type)));
  Put(out, std::as_bytes(std::span(edges.weight)));
  for (const EdgeAttribute& attribute : edges.attributes) {
    const auto null = attribute.values().null();
    const AttributeHead about{attribute.value_count(), null.value_or(0),
                              static_cast<std::uint32_t>(attribute.dim()),
                              static_cast<std::uint16_t>(attribute.dtype()),
                              static_cast<std::uint16_t>(null.has_value())};
    Put(out, std::as_bytes(std::span(&about, 1)));
    Put(out, attribute.bytes());
  }
  return out;
}

Status internal::DecodeEdges(std::span<const std::byte> block, EdgeList& edges) {
  ClearEdges(edges);
  Cursor cursor(block);
  BlockHead head{};
  bool whole = cursor.Take(std::as_writable_bytes(std::span(&head, 1)));
  for (std::vector<VertexId>* ends : {&edges.src, &edges.dst}) {
    whole = whole && (head.end_bytes == 4 ? cursor.TakeNarrow(*ends, head.ends)
                                          : cursor.TakeColumn(*ends, head.ends));
  }
  whole = whole && cursor.TakeColumn(edges.type, head.types) &&
          cursor.TakeColumn(edges.weight, head.weights);
  if (edges.attributes.size() < head.attributes) edges.attributes.resize(head.attributes);
  for (std::size_t i = 0; whole && i < head.attributes; ++i) {
    AttributeHead about{};
    std::span<const std::byte> bytes;
    whole =
        cursor.Take(std::as_writable_bytes(std::span(&about, 1))) && about.dim > 0 &&
        about.values <= block.size() &&
        cursor.TakeBytes(about.values * DataTypeBytes(static_cast<DataType>(about.dtype)), bytes);
    if (!whole) break;
    const auto dtype = static_cast<DataType>(about.dtype);
    EdgeAttribute column(edges.attributes[i].name(), dtype, about.dim);
    if (about.has_null != 0) column.values().SetNull(about.null);
    RHIZOME_RETURN_IF_ERROR(column.AddBytes(dtype, bytes));
    edges.attributes[i] = std::move(column);
  }
  if (whole && cursor.empty()) return Status::Ok();
  return Status::Corruption("a block of spilled edges has another length than its header says");
}

void internal::ClearEdges(EdgeList& edges) {
  edges.src.clear();
  edges.dst.clear();
  edges.type.clear();
  edges.weight.clear();
  for (EdgeAttribute& attribute : edges.attributes) attribute.Clear();
}

Result<EdgeSpoolWriter> EdgeSpoolWriter::Create(SpillSpace& space, std::size_t block_edges) {
  // The block size of the file is 0, because Flush ends every block explicitly.
  RHIZOME_ASSIGN_OR_RETURN(SpillWriter writer, SpillWriter::Create(space, 0));
  return EdgeSpoolWriter(std::move(writer), block_edges);
}

Status EdgeSpoolWriter::Flush(std::size_t count) {
  if (count == 0) return Status::Ok();
  written_edges_ += count;
  const std::vector<std::byte> block = EncodeEdges(edges);
  ClearEdges(edges);
  RHIZOME_RETURN_IF_ERROR(writer_.Append(block));
  return writer_.EndBlock();
}

Result<EdgeSpool> EdgeSpoolWriter::Finish(std::size_t count) {
  RHIZOME_RETURN_IF_ERROR(Flush(count));
  EdgeSpool spool;
  RHIZOME_ASSIGN_OR_RETURN(spool.file, writer_.Finish());
  spool.edges = written_edges_;
  return spool;
}

Result<EdgeSpoolReader> EdgeSpoolReader::Open(const EdgeSpool& spool) {
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(spool.file, /*ahead=*/true));
  return EdgeSpoolReader(std::move(reader));
}

Result<bool> EdgeSpoolReader::Next(EdgeList& edges) {
  RHIZOME_ASSIGN_OR_RETURN(const auto block, reader_.Next());
  if (block.empty()) return false;
  RHIZOME_RETURN_IF_ERROR(DecodeEdges(block, edges));
  return true;
}

PartitionInput internal::InputOf(std::uint64_t vertex_count, const EdgeSpool& ends) {
  return PartitionInput(
      vertex_count, ends.edges, [&ends](const PartitionInput::Visit& visit) -> Status {
        RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(ends));
        EdgeList block;
        while (true) {
          RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
          if (!more) return Status::Ok();
          RHIZOME_RETURN_IF_ERROR(visit(block.src, block.dst));
        }
      });
}

}  // namespace rhizome
