// Encodes and decodes the catalogue record of a commit. EncodeDeltaRecord writes a run field by
// field; Decoder reads the fields in the same order, checks each against the DeltaContext, and adds
// it to a DeltaRunBuilder. storage/FORMAT.md has the layout.

#include "index/delta/delta_record.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>

#include "index/topology/id_limit.h"
#include "storage/array/text_files.h"
#include "storage/array/type_names.h"
#include "storage/base/bytes.h"
#include "storage/base/utf8.h"
#include "storage/catalog/delta_head.h"

namespace rhizome {
inline namespace internal {

namespace {

// Bits of an edge's flags.
constexpr std::uint8_t kErase = 1;

constexpr std::size_t kMaxDictionaries = std::size_t{1} << 20;

bool Encoded(const DeltaEdge& edge, bool symmetric) {
  return !symmetric || edge.vertex <= edge.neighbor;
}

void EncodeNames(ByteWriter& out, const std::vector<std::string>& names) {
  out.Number(std::uint64_t{names.size()});
  for (const std::string& name : names) out.String(name);
}

void EncodeEdges(ByteWriter& out, const DeltaRun& run, bool symmetric) {
  std::uint64_t count = 0;
  for (const DeltaEdge& edge : run.out) count += Encoded(edge, symmetric) ? 1 : 0;
  out.Number(count);
  for (const DeltaEdge& edge : run.out) {
    if (!Encoded(edge, symmetric)) continue;
    out.Number(edge.vertex);
    out.Number(edge.neighbor);
    out.Number(edge.type);
    out.Number(static_cast<std::uint8_t>(edge.erase ? kErase : 0));
    if (edge.erase) continue;
    out.Number(std::bit_cast<std::uint32_t>(edge.weight));
    for (std::uint32_t a = 0; a < run.attribute_count; ++a)
      out.Number(run.attributes[std::size_t{edge.number} * run.attribute_count + a]);
  }
}

/// A record without texts ends before them, so that older builds can read it.
void EncodeTexts(ByteWriter& out, const std::vector<DeltaTexts>& texts) {
  if (texts.empty()) return;
  out.Number(std::uint64_t{texts.size()});
  for (const DeltaTexts& added : texts) {
    out.Number(added.id);
    out.Number(added.first);
    EncodeNames(out, added.texts);
  }
}

/// Reads a record into a builder, which sorts the entries again.
class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const DeltaContext& context)
      : in_(bytes),
        context_(context),
        builder_(context.symmetric, context.attribute_count,
                 static_cast<VertexId>(context.vertices)) {}

  Result<DeltaRun> Decode(std::uint64_t sequence) {
    const auto version = in_.Number<std::uint8_t>("version");
    if (version > kDeltaRecordVersion)
      return Fail(
          Status::Unsupported(fmt::format("version {}; use a newer version of Rhizome", version)));
    if (version == 0) in_.Refuse("version", "is 0");
    if (in_.Number<std::uint64_t>("sequence") != sequence) in_.Refuse("sequence", "is another's");
    const auto previous = in_.Number<std::uint64_t>("previous");
    if (context_.first ? previous > context_.previous : previous != context_.previous)
      in_.Refuse("previous",
                 fmt::format("is not {}: a commit before it is lost", context_.previous));
    const HistoryState state = version >= 2 ? ReadHistoryState(in_) : HistoryState{};
    ReadTypes();
    ReadVertices();
    ReadEdges();
    ReadDeleted();
    ReadRows();
    if (version >= kDeltaRecordVersion) ReadTexts();
    if (in_.left() > 0) in_.Refuse("end", "has extra bytes");
    RHIZOME_RETURN_IF_ERROR(in_.status());
    DeltaRun run = builder_.Finish(sequence);
    run.state = state;
    return run;
  }

 private:
  void ReadTypes() {
    const std::size_t edge_types = in_.Count("edge types", 4, kMaxTypes);
    for (std::size_t i = 0; i < edge_types && in_.ok(); ++i)
      builder_.AddEdgeType(in_.String("edge type", kMaxTypeNameBytes));
    const std::size_t vertex_types = in_.Count("vertex types", 4, kMaxTypes);
    for (std::size_t i = 0; i < vertex_types && in_.ok(); ++i)
      builder_.AddVertexType(in_.String("vertex type", kMaxTypeNameBytes));
    edge_types_ = context_.edge_types + edge_types;
    vertex_types_ = context_.vertex_types + vertex_types;
    if (edge_types_ > kMaxTypes || vertex_types_ > kMaxTypes)
      in_.Refuse("types", "are more than the limit");
  }

  void ReadVertices() {
    const std::size_t count = in_.Count("vertices", 6, ~std::uint32_t{0});
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      const auto type = in_.Number<std::uint16_t>("vertex type");
      if (type >= vertex_types_) in_.Refuse("vertex type", "does not exist");
      if (!context_.string_ids) {
        builder_.AddVertex(ExternalId(in_.Number<std::int64_t>("external id")), type);
        continue;
      }
      std::string id = in_.String("external id", kMaxIdBytes);
      if (!IsUtf8(id)) in_.Refuse("external id", "is not UTF-8");
      builder_.AddVertex(ExternalId(std::move(id)), type);
    }
    vertices_ = context_.vertices + count;
  }

  VertexId ReadVertex(std::string_view field) {
    const auto vertex = in_.Number<std::int64_t>(field);
    if (static_cast<std::uint64_t>(vertex) >= vertices_) in_.Refuse(field, "does not exist");
    return vertex;
  }

  void ReadEdges() {
    const std::size_t count = in_.Count("edges", 19, ~std::uint32_t{0});
    std::vector<std::int64_t> attributes;
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      const VertexId src = ReadVertex("source");
      const VertexId dst = ReadVertex("target");
      const auto type = in_.Number<std::uint16_t>("edge type");
      if (type >= edge_types_) in_.Refuse("edge type", "does not exist");
      if (context_.symmetric && src > dst) in_.Refuse("source", "is larger than the target");
      const auto flags = in_.Number<std::uint8_t>("flags");
      if ((flags & ~kErase) != 0) in_.Refuse("flags", "has unknown bits");
      if ((flags & kErase) != 0) {
        builder_.EraseEdges(src, dst, type);
        continue;
      }
      const auto weight = std::bit_cast<float>(in_.Number<std::uint32_t>("weight"));
      if (!std::isfinite(weight)) in_.Refuse("weight", "is not finite");
      attributes.clear();
      for (std::uint32_t a = 0; a < context_.attribute_count && in_.ok(); ++a)
        attributes.push_back(in_.Number<std::int64_t>("attribute"));
      if (in_.ok()) builder_.AddEdge(src, dst, type, weight, attributes);
    }
  }

  void ReadDeleted() {
    const std::size_t count = in_.Count("deleted vertices", 8, ~std::uint32_t{0});
    for (std::size_t i = 0; i < count && in_.ok(); ++i)
      builder_.DeleteVertex(ReadVertex("deleted vertex"));
  }

  void ReadRows() {
    const std::size_t count = in_.Count("rows", 16, ~std::uint32_t{0});
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      const auto array_id = in_.Number<std::uint64_t>("array");
      builder_.PutRow(array_id, ReadVertex("row"));
    }
  }

  void ReadTexts() {
    const std::size_t count = in_.Count("dictionaries", 28, kMaxDictionaries);
    TextsId last = 0;
    for (std::size_t d = 0; d < count && in_.ok(); ++d) {
      const auto id = in_.Number<TextsId>("dictionary");
      if (d > 0 && id <= last) in_.Refuse("dictionary", "is not sorted or not unique");
      last = id;
      const auto first = in_.Number<std::uint64_t>("first code");
      const auto known = context_.texts.find(id);
      if (known != context_.texts.end() && first != static_cast<std::uint64_t>(known->second))
        in_.Refuse("first code", fmt::format("is not {}", known->second));
      const std::size_t texts = in_.Count("texts", 5, kMaxTexts);
      if (texts == 0 || first > kMaxTexts - texts) in_.Refuse("texts", "are none or too many");
      ReadTextsOf(id, static_cast<std::int64_t>(first), texts);
    }
  }

  void ReadTextsOf(TextsId id, std::int64_t first, std::size_t count) {
    std::unordered_set<std::string> seen;
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      std::string text = in_.String("text", kMaxCodedTextBytes);
      if (text.empty() || !IsUtf8(text)) in_.Refuse("text", "is empty or not UTF-8");
      if (!seen.insert(text).second) in_.Refuse("text", "is repeated");
      if (in_.ok()) builder_.AddText(id, first + static_cast<std::int64_t>(i), std::move(text));
    }
  }

  ByteReader in_;
  const DeltaContext& context_;
  DeltaRunBuilder builder_;
  std::uint64_t vertices_ = 0;
  std::uint64_t edge_types_ = 0;
  std::uint64_t vertex_types_ = 0;
};

}  // namespace

std::vector<std::byte> EncodeDeltaRecord(const DeltaRun& run, const DeltaContext& context) {
  ByteWriter out;
  const bool plain = ArePlainTypes(run.new_edge_types) && ArePlainTypes(run.new_vertex_types) &&
                     context.edge_types + run.new_edge_types.size() <= kMaxPlainTypes &&
                     context.vertex_types + run.new_vertex_types.size() <= kMaxPlainTypes;
  const std::uint8_t version = plain ? kPlainDeltaRecordVersion : kTypesDeltaRecordVersion;
  out.Number(run.texts.empty() ? version : kDeltaRecordVersion);
  out.Number(run.last_sequence);
  out.Number(context.previous);
  WriteHistoryState(out, run.state);
  EncodeNames(out, run.new_edge_types);
  EncodeNames(out, run.new_vertex_types);
  out.Number(std::uint64_t{run.vertex_ids.size()});
  for (std::size_t i = 0; i < run.vertex_ids.size(); ++i) {
    out.Number(run.vertex_types[i]);
    if (const auto* integer = std::get_if<std::int64_t>(&run.vertex_ids[i])) {
      out.Number(*integer);
    } else {
      out.String(std::get<std::string>(run.vertex_ids[i]));
    }
  }
  EncodeEdges(out, run, context.symmetric);
  out.Number(std::uint64_t{run.deleted.size()});
  for (const VertexId vertex : run.deleted) out.Number(vertex);
  out.Number(std::uint64_t{run.rows.size()});
  for (const DeltaRowRef& row : run.rows) {
    out.Number(row.array_id);
    out.Number(row.vertex);
  }
  EncodeTexts(out, run.texts);
  return out.Take();
}

Result<DeltaRun> DecodeDeltaRecord(std::span<const std::byte> bytes, std::uint64_t sequence,
                                   const DeltaContext& context) {
  return Decoder(bytes, context).Decode(sequence);
}

}  // namespace internal
}  // namespace rhizome
