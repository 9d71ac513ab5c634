// Changes since a commit. The feed walks over the delta's records in the catalogue: NextRun decodes
// the record of the next commit, Step walks over the entries of its run in a fixed order of kinds
// (Part), and Fill converts an entry to a Change, or skips it if it has no net effect.

#include "rhizome/change_feed.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "index/delta/delta.h"
#include "index/delta/delta_record.h"
#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "storage/base/exceptions.h"
#include "storage/store/diverged_states.h"

namespace rhizome {
namespace {

// Records are fetched from the catalogue in pieces of about this size.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct Record {
  std::uint64_t sequence = 0;
  std::vector<std::byte> bytes;
};

}  // namespace

class ChangeFeed::Impl {
 public:
  Impl(std::shared_ptr<const GraphSnapshot> graph, const ChangeRange& range)
      : graph_(std::move(graph)),
        parts_(graph_->parts()),
        after_(range.after),
        after_commits_(range.after_commits),
        last_(range.last == 0 ? graph_->sequence() : range.last) {
    const Delta::Base base = parts_->DeltaBase();
    context_ = Delta::Empty(base)->Context();
    read_up_to_ = base.sequence;
    vertex_types_ = base.vertex_types;
    edge_types_ = base.edge_types;
  }

  std::uint64_t last() const { return last_; }

  const LeaderState& continued() const { return continued_; }
  const LeaderState& reached() const { return reached_; }

  /// Finds the states at both ends of the range, and compares the first with the state that the
  /// caller expects.
  Status FindStates() {
    const Store& store = graph_->store();
    RHIZOME_ASSIGN_OR_RETURN(const HistoryState first, store.StateAt(after_));
    RHIZOME_ASSIGN_OR_RETURN(const HistoryState last, store.StateAt(last_));
    continued_ = {.store = store.id(), .commit = after_, .commits = first.commits};
    reached_ = {.store = store.id(), .commit = last_, .commits = last.commits};
    if (after_commits_ == Hash128{} || !first.known() || first.commits == after_commits_)
      return Status::Ok();
    return DivergedStates(fmt::format("'{}'", store.path().string()), {.commits = first.commits},
                          fmt::format("the given point at commit {}", after_),
                          {.commits = after_commits_},
                          "read the graph at a new snapshot, and its changes after that");
  }

  Status Check() const {
    const std::uint64_t base = parts_->store->base_sequence();
    if (after_ < base)
      return Status::NotFound(fmt::format(
          "'{}': commits up to {} are merged into the generation, so their changes are no longer "
          "available; read the graph at a snapshot, and its changes after commit {}",
          parts_->store->path().string(), base, base));
    if (after_ > last_ || last_ > graph_->sequence())
      return Status::InvalidArgument(fmt::format(
          "changes after commit {} up to {} are not available: the graph is at commit {}", after_,
          last_, graph_->sequence()));
    return Status::Ok();
  }

  Result<bool> Next(Change& change) {
    RHIZOME_RETURN_IF_ERROR(failed_);
    auto more = Step(change);
    if (!more) failed_ = more.error();
    return more;
  }

 private:
  // The parts of a commit, in the order in which they are returned.
  enum class Part : std::uint8_t {
    kVertexTypes,
    kEdgeTypes,
    kDeleted,
    kVertices,
    kEdges,
    kRows,
    kEnd,
  };

  // Walks over the parts of the current commit's run, and over the entries of each part. Entries
  // without a net effect are skipped. After the last part it moves to the next commit.
  Result<bool> Step(Change& change) {
    while (true) {
      if (part_ == Part::kEnd) {
        RHIZOME_ASSIGN_OR_RETURN(const bool more, NextRun());
        if (!more) return false;
      }
      if (index_ == SizeOfPart()) {
        part_ = static_cast<Part>(static_cast<int>(part_) + 1);
        index_ = 0;
        continue;
      }
      const std::size_t i = index_++;
      change = Change{.commit = run_.last_sequence};
      RHIZOME_ASSIGN_OR_RETURN(const bool given, Fill(i, change));
      if (given) return true;
    }
  }

  std::size_t SizeOfPart() const {
    switch (part_) {
      case Part::kVertexTypes:
        return run_.new_vertex_types.size();
      case Part::kEdgeTypes:
        return run_.new_edge_types.size();
      case Part::kDeleted:
        return run_.deleted.size();
      case Part::kVertices:
        return run_.vertex_types.size();
      case Part::kEdges:
        return run_.out.size();
      case Part::kRows:
        return run_.rows.size();
      default:
        return 0;
    }
  }

  // Returns false if the entry has no net effect.
  Result<bool> Fill(std::size_t i, Change& change) {
    switch (part_) {
      case Part::kVertexTypes:
        change.kind = Change::Kind::kVertexType;
        return FillType(i, run_.new_vertex_types, vertex_types_.size(), change);
      case Part::kEdgeTypes:
        change.kind = Change::Kind::kEdgeType;
        return FillType(i, run_.new_edge_types, edge_types_.size(), change);
      case Part::kDeleted:
        change.kind = Change::Kind::kDeleteVertex;
        FillVertex(run_.deleted[i], change);
        return !IsNew(change.vertex);
      case Part::kVertices:
        change.kind = Change::Kind::kPutVertex;
        FillVertex(run_.first_vertex + static_cast<VertexId>(i), change);
        change.type = run_.vertex_types[i];
        change.name = vertex_types_[change.type];
        return !run_.IsDeleted(change.vertex);
      case Part::kEdges:
        return FillEdge(run_.out[i], change);
      default:
        return FillRow(run_.rows[i], change);
    }
  }

  // The names of the run were appended to the list of all names when the run was read.
  static bool FillType(std::size_t i, const std::vector<std::string>& fresh, std::size_t all,
                       Change& change) {
    change.type = static_cast<TypeId>(all - fresh.size() + i);
    change.name = fresh[i];
    return true;
  }

  void FillVertex(VertexId vertex, Change& change) const {
    change.vertex = vertex;
    change.id = IdOf(vertex);
  }

  bool FillEdge(const DeltaEdge& edge, Change& change) const {
    // The run has a pair from both ends; only one is returned.
    if (context_.symmetric && edge.vertex > edge.neighbor) return false;
    if (run_.IsDeleted(edge.vertex) || run_.IsDeleted(edge.neighbor)) return false;
    if (edge.erase && (IsNew(edge.vertex) || IsNew(edge.neighbor))) return false;
    change.kind = edge.erase ? Change::Kind::kDeleteEdges : Change::Kind::kPutEdge;
    FillVertex(edge.vertex, change);
    change.neighbor = edge.neighbor;
    change.neighbor_id = IdOf(edge.neighbor);
    change.type = edge.type;
    change.name = edge_types_[edge.type];
    if (edge.erase) return true;
    change.weight = parts_->info().weighted ? edge.weight : 1;
    const auto first = run_.attributes.begin() +
                       static_cast<std::ptrdiff_t>(std::size_t{edge.number} * run_.attribute_count);
    change.attributes.assign(first, first + run_.attribute_count);
    return true;
  }

  Result<bool> FillRow(const DeltaRowRef& row, Change& change) const {
    if (run_.IsDeleted(row.vertex)) return false;
    for (const ArrayEntry& array : graph_->store().manifest().arrays) {
      if (array.array_id != row.array_id || array.name.ends_with(".crc32c")) continue;
      if (OriginOf(array)) return false;
      change.kind = Change::Kind::kPutRow;
      change.name = array.name;
      FillVertex(row.vertex, change);
      change.row.resize(array.row_bytes());
      RHIZOME_RETURN_IF_ERROR(
          graph_->store().ReadDeltaRow(row.sequence, row.array_id, row.vertex, change.row));
      return true;
    }
    return false;  // the array was dropped after the commit
  }

  bool IsNew(VertexId vertex) const { return vertex >= run_.first_vertex; }
  ExternalId IdOf(VertexId vertex) const {
    return IsNew(vertex) ? run_.vertex_ids[static_cast<std::size_t>(vertex - run_.first_vertex)]
                         : ValueOrThrow(graph_->ExternalIdOf(vertex));
  }

  // Moves to the next commit of the range. Earlier commits are decoded as well, because they
  // determine the numbers of vertices and types.
  Result<bool> NextRun() {
    while (read_up_to_ < last_) {
      if (records_.empty()) RHIZOME_RETURN_IF_ERROR(Fetch());
      if (records_.empty()) {
        read_up_to_ = last_;  // commits of arrays and manifests have no records
        break;
      }
      const Record record = std::move(records_.front());
      records_.pop_front();
      read_up_to_ = record.sequence;
      auto run = DecodeDeltaRecord(record.bytes, record.sequence, context_);
      if (!run)
        return Fail(run.error().WithContext(
            fmt::format("{}: delta, commit {}", parts_->store->path().string(), record.sequence)));
      run_ = *std::move(run);
      Account();
      if (record.sequence <= after_) continue;
      part_ = Part::kVertexTypes;
      index_ = 0;
      return true;
    }
    return false;
  }

  void Account() {
    context_.vertices += run_.vertex_types.size();
    context_.vertex_types += run_.new_vertex_types.size();
    context_.edge_types += run_.new_edge_types.size();
    context_.previous = run_.last_sequence;
    context_.first = false;
    for (const DeltaTexts& added : run_.texts) context_.texts[added.id] = added.end();
    vertex_types_.insert(vertex_types_.end(), run_.new_vertex_types.begin(),
                         run_.new_vertex_types.end());
    edge_types_.insert(edge_types_.end(), run_.new_edge_types.begin(), run_.new_edge_types.end());
  }

  Status Fetch() {
    std::size_t bytes = 0;
    bool enough = false;
    const Status status = graph_->store().ScanDelta(
        read_up_to_, [&](std::uint64_t sequence, std::span<const std::byte> record) {
          enough = sequence > last_ || bytes >= kPieceBytes;
          if (enough) return Status::Interrupted("enough for now");
          records_.push_back({sequence, {record.begin(), record.end()}});
          bytes += record.size();
          return Status::Ok();
        });
    return enough ? Status::Ok() : status;
  }

  const std::shared_ptr<const GraphSnapshot> graph_;  // a snapshot
  const std::shared_ptr<const GraphParts> parts_;
  const std::uint64_t after_;
  const Hash128 after_commits_;
  const std::uint64_t last_;
  LeaderState continued_, reached_;
  DeltaContext context_;
  std::vector<std::string> vertex_types_;  // as of run_
  std::vector<std::string> edge_types_;
  std::deque<Record> records_;  // records after read_up_to_
  std::uint64_t read_up_to_ = 0;
  DeltaRun run_;
  Part part_ = Part::kEnd;
  std::size_t index_ = 0;
  Status failed_;
};

ChangeFeed::ChangeFeed(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChangeFeed::~ChangeFeed() = default;

Result<std::unique_ptr<ChangeFeed>> ChangeFeed::Open(const Graph& graph,
                                                     const ChangeRange& range) try {
  auto impl = std::make_unique<Impl>(graph.Snapshot(), range);
  RHIZOME_RETURN_IF_ERROR(impl->Check());
  RHIZOME_RETURN_IF_ERROR(impl->FindStates());
  return std::unique_ptr<ChangeFeed>(new ChangeFeed(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<bool> ChangeFeed::Next(Change& change) {
  return Guarded([&] { return impl_->Next(change); });
}
std::uint64_t ChangeFeed::last() const { return impl_->last(); }
const LeaderState& ChangeFeed::continued() const { return impl_->continued(); }
const LeaderState& ChangeFeed::reached() const { return impl_->reached(); }

}  // namespace rhizome
