// A consumer of changes: it reads the in-edges of every vertex once, and then keeps them up to date
// with each commit, as a search index or a cache outside of the store would.
//
// Build: as service.cc. Run: follower STORE ROUNDS; it prints the busiest vertex after each round,
// and waits for a line on standard input before the next.

#include <rhizome/change_feed.h>
#include <rhizome/graph.h>
#include <rhizome/graph_scan.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

namespace {

using namespace rhizome;

class Follower {
 public:
  explicit Follower(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}

  /// Reads the whole graph at one commit.
  Status Begin() {
    sources_.clear();
    RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(*graph_));
    const GraphSnapshot& at = scan.graph();
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan.Next());
      if (!edge) break;
      RHIZOME_ASSIGN_OR_RETURN(const ExternalId source, at.ExternalIdOf(edge->src));
      RHIZOME_ASSIGN_OR_RETURN(const ExternalId target, at.ExternalIdOf(edge->dst));
      sources_[ToString(target)].emplace(ToString(source), edge->type);
    }
    seen_ = at.sequence();
    return Status::Ok();
  }

  /// Applies the commits since. If a compaction has merged them, it reads the graph again.
  Status Continue() {
    RHIZOME_RETURN_IF_ERROR(graph_->Refresh());
    const auto feed = ChangeFeed::Open(*graph_, {.after = seen_});
    if (!feed && feed.error().code() == StatusCode::kNotFound) return Begin();
    if (!feed) return feed.error();
    Change change;
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const bool more, (*feed)->Next(change));
      if (!more) break;
      Apply(change);
    }
    seen_ = (*feed)->last();
    return Status::Ok();
  }

  void Print() const {
    const auto busiest = std::max_element(
        sources_.begin(), sources_.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (busiest != sources_.end())
      std::cout << busiest->first << " has " << busiest->second.size() << " in-edges" << std::endl;
  }

 private:
  void Apply(const Change& change) {
    const std::string source = ToString(change.id);
    switch (change.kind) {
      case Change::Kind::kPutEdge:
        sources_[ToString(change.neighbor_id)].emplace(source, change.type);
        break;
      case Change::Kind::kDeleteEdges:
        sources_[ToString(change.neighbor_id)].erase({source, change.type});
        break;
      case Change::Kind::kDeleteVertex:
        sources_.erase(source);
        for (auto& [target, edges] : sources_)
          std::erase_if(edges, [&](const auto& edge) { return edge.first == source; });
        break;
      default:
        break;  // new types, vertices without edges, rows
    }
  }

  const std::unique_ptr<Graph> graph_;
  /// The in-edges of a vertex: source and type of each. Parallel edges are separate entries.
  std::map<std::string, std::multiset<std::pair<std::string, TypeId>>> sources_;
  std::uint64_t seen_ = 0;  // the last commit that was applied
};

Status Run(const Path& store, int rounds) {
  RHIZOME_ASSIGN_OR_RETURN(auto graph, Graph::Open(store, {}));
  Follower follower(std::move(graph));
  RHIZOME_RETURN_IF_ERROR(follower.Begin());
  follower.Print();
  std::string line;
  for (int round = 1; round < rounds && std::getline(std::cin, line); ++round) {
    RHIZOME_RETURN_IF_ERROR(follower.Continue());
    follower.Print();
  }
  return Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const Status run = argc == 3 ? Run(argv[1], std::stoi(argv[2]))
                               : Status::InvalidArgument("usage: follower STORE ROUNDS");
  if (run.ok()) return 0;
  std::cerr << run.message() << "\n";
  return 1;
}
