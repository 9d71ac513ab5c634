// Collects ids with the ends of edges in spill files. Ends are stored as integers until an id is
// not a canonical decimal (SwitchToStrings), and as texts afterwards. Resolve then numbers the ids.

#include "index/ids/spilled_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "index/ids/spilled_id_encoder.h"
#include "index/partition/dense_marks.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Head of an edge's record; the two texts follow.
struct EndsHead {
  std::uint32_t src_bytes;
  std::uint32_t dst_bytes;
};

}  // namespace

SpilledIds::SpilledIds(SpillSpace& space, IdType type, std::uint64_t memory_bytes)
    : IdCollector(type), space_(space), memory_bytes_(memory_bytes) {
  auto writer = EdgeSpoolWriter::Create(space, kSpilledBlockEdges);
  if (writer)
    integer_ends_.emplace(*std::move(writer));
  else
    failed_ = writer.error();
  if (texts_) SwitchToStrings();
}

void SpilledIds::Note(Status status) {
  if (failed_.ok()) failed_ = std::move(status);
}

std::uint64_t SpilledIds::memory_bytes() const {
  return integers_.memory_bytes() + strings_.memory_bytes();
}

void SpilledIds::KeepDictionary() {
  if (!counting_) return;
  counting_ = false;
  for (std::uint64_t i = 0; i < nodes_; ++i) integers_.Add(static_cast<std::int64_t>(i));
}

void SpilledIds::SwitchToStrings() {
  KeepDictionary();
  texts_ = true;
  for (std::uint64_t i = 0; i < integers_.size(); ++i)
    strings_.Add(fmt::format_int(integers_.keys().At(i)).str());
  integers_ = {};
  auto writer = SpillWriter::Create(space_, std::size_t{256} << 10);
  if (!writer) return Note(writer.error());
  string_ends_.emplace(*std::move(writer));
}

bool SpilledIds::AddNode(std::string_view text) {
  if (!texts_) {
    if (const auto value = ParseCanonicalInteger(text)) {
      if (counting_ && *value == static_cast<std::int64_t>(nodes_)) {
        ++nodes_;
        return true;
      }
      if (counting_ && *value >= 0 && *value < static_cast<std::int64_t>(nodes_)) return false;
      KeepDictionary();
      const bool added = integers_.Add(*value).second;
      if (added) ++nodes_;
      return added;
    }
    SwitchToStrings();
  }
  const bool added = strings_.Add(text).second;
  if (added) ++nodes_;
  return added;
}

void SpilledIds::AddEdge(std::int64_t src, std::int64_t dst) {
  if (texts_) return AddEdge(fmt::format_int(src).str(), fmt::format_int(dst).str());
  if (!failed_.ok()) return;
  ++edges_;
  const auto [low, high] = std::minmax(src, dst);
  least_ = std::min(least_, low);
  most_ = std::max(most_, high);
  EdgeList& block = integer_ends_->edges;
  block.src.push_back(src);
  block.dst.push_back(dst);
  Note(integer_ends_->FlushIfFull(block.src.size()));
}

void SpilledIds::AddEdge(std::string_view src, std::string_view dst) {
  if (!texts_) {
    const auto src_value = ParseCanonicalInteger(src);
    const auto dst_value = ParseCanonicalInteger(dst);
    if (src_value && dst_value) return AddEdge(*src_value, *dst_value);
    SwitchToStrings();
  }
  if (!failed_.ok()) return;
  ++edges_;
  const EndsHead head{static_cast<std::uint32_t>(src.size()),
                      static_cast<std::uint32_t>(dst.size())};
  record_.resize(sizeof(head) + src.size() + dst.size());
  std::memcpy(record_.data(), &head, sizeof(head));
  std::memcpy(record_.data() + sizeof(head), src.data(), src.size());
  std::memcpy(record_.data() + sizeof(head) + src.size(), dst.data(), dst.size());
  Note(string_ends_->Append(record_));
}

std::uint64_t SpilledIds::DenseBound(std::uint64_t implied) const {
  if (texts_ || least_ < 0) return kNotDense;
  std::uint64_t bound = std::max(implied, static_cast<std::uint64_t>(most_ + 1));
  if (counting_) {
    bound = std::max(bound, nodes_);
  } else {
    for (std::uint64_t i = 0; i < nodes_; ++i) {
      const std::int64_t id = integers_.keys().At(i);
      if (id < 0) return kNotDense;
      bound = std::max(bound, static_cast<std::uint64_t>(id) + 1);
    }
  }
  return bound > implied + nodes_ + 2 * edges_ ? kNotDense : bound;
}

Result<bool> SpilledIds::Dense(std::uint64_t bound, std::uint64_t implied, const EdgeSpool& ends,
                               const JobControl& control) const {
  if (bound == implied) return true;
  if ((bound - implied) / 8 > memory_bytes_ / 2)
    return Fail(TooManyVertices(bound, (bound - implied) / 8, memory_bytes_ / 2));
  DenseMarks marks(bound, implied);
  for (std::uint64_t i = 0; i < nodes_; ++i) marks.Mark(NodeAt(i));
  if (marks.complete()) return true;
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(ends));
  EdgeList block;
  for (std::uint64_t done = 0; !marks.complete(); done += block.size()) {
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "check ids", .done = done, .total = edges_}));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
    if (!more) break;
    for (const std::int64_t id : block.src) marks.Mark(id);
    for (const std::int64_t id : block.dst) marks.Mark(id);
  }
  return marks.complete();
}

std::vector<VertexId> SpilledIds::DenseNodes() const {
  std::vector<VertexId> nodes(nodes_);
  for (std::uint64_t i = 0; i < nodes_; ++i) nodes[i] = NodeAt(i);
  return nodes;
}

// Resolves the ids. If they are dense (DenseBound computes the bound, and Dense scans the ends),
// they are the vertex ids. Otherwise a SpilledIdEncoder sorts the nodes' ids and all ends and
// numbers them.
Result<SpilledIds::Vertices> SpilledIds::Resolve(std::uint64_t implied,
                                                 std::string_view why_implied,
                                                 const JobControl& control) && {
  RHIZOME_RETURN_IF_ERROR(failed_);
  const std::uint64_t bound = DenseBound(implied);
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpool ends, integer_ends_->Finish(integer_ends_->edges.src.size()));
  bool dense = bound != kNotDense;
  if (dense) {
    RHIZOME_ASSIGN_OR_RETURN(dense, Dense(bound, implied, ends, control));
  }
  if (!dense && implied > 0) return Fail(RefuseImplied(why_implied, texts_));
  Vertices vertices;
  if (dense) {
    vertices.count = bound;
    vertices.nodes = DenseNodes();
    vertices.edges = std::move(ends);
    return vertices;
  }

  SpilledIdEncoder encoder(space_, memory_bytes_, nodes_, edges_, texts_, control);
  RHIZOME_RETURN_IF_ERROR(AddNodes(encoder));
  integers_ = {};
  strings_ = {};
  RHIZOME_RETURN_IF_ERROR(AddIntegerEnds(encoder, ends, control));
  ends.file.Remove();
  if (texts_) RHIZOME_RETURN_IF_ERROR(AddStringEnds(encoder, control));
  RHIZOME_RETURN_IF_ERROR(encoder.Encode(vertices));
  return vertices;
}

Status SpilledIds::AddNodes(SpilledIdEncoder& encoder) const {
  for (std::uint64_t i = 0; i < nodes_; ++i)
    RHIZOME_RETURN_IF_ERROR(texts_ ? encoder.Add(strings_.keys().At(i)) : encoder.Add(NodeAt(i)));
  return Status::Ok();
}

Status SpilledIds::ReportSorting(const SpilledIdEncoder& encoder, const JobControl& control) const {
  return control.Report(
      {.phase = "sort ids", .done = encoder.position(), .total = nodes_ + 2 * edges_});
}

Status SpilledIds::AddIntegerEnds(SpilledIdEncoder& encoder, const EdgeSpool& ends,
                                  const JobControl& control) const {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader reader, EdgeSpoolReader::Open(ends));
  EdgeList block;
  while (true) {
    RHIZOME_RETURN_IF_ERROR(ReportSorting(encoder, control));
    RHIZOME_ASSIGN_OR_RETURN(const bool more, reader.Next(block));
    if (!more) return Status::Ok();
    for (std::size_t i = 0; i < block.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(encoder.AddEither(block.src[i]));
      RHIZOME_RETURN_IF_ERROR(encoder.AddEither(block.dst[i]));
    }
  }
}

Status SpilledIds::AddStringEnds(SpilledIdEncoder& encoder, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const SpillFile file, string_ends_->Finish());
  RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(file, /*ahead=*/true));
  while (true) {
    RHIZOME_RETURN_IF_ERROR(ReportSorting(encoder, control));
    RHIZOME_ASSIGN_OR_RETURN(auto block, reader.Next());
    if (block.empty()) return Status::Ok();
    while (block.size() >= sizeof(EndsHead)) {
      EndsHead head{};
      std::memcpy(&head, block.data(), sizeof(head));
      const auto* text = reinterpret_cast<const char*>(block.data()) + sizeof(head);
      RHIZOME_RETURN_IF_ERROR(encoder.Add(std::string_view(text, head.src_bytes)));
      RHIZOME_RETURN_IF_ERROR(encoder.Add(std::string_view(text + head.src_bytes, head.dst_bytes)));
      block = block.subspan(sizeof(head) + head.src_bytes + head.dst_bytes);
    }
  }
}

}  // namespace internal
}  // namespace rhizome
