#include <nanobind/stl/string.h>

#include "handle.h"
#include "rhizome/change_feed.h"

namespace rhizome::python {
namespace {

std::string_view KindName(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::kVertexType:
      return "vertex_type";
    case Change::Kind::kEdgeType:
      return "edge_type";
    case Change::Kind::kDeleteVertex:
      return "delete_vertex";
    case Change::Kind::kPutVertex:
      return "put_vertex";
    case Change::Kind::kDeleteEdges:
      return "delete_edges";
    case Change::Kind::kPutEdge:
      return "put_edge";
    case Change::Kind::kPutRow:
      return "put_row";
  }
  return "unknown";
}

/// Iterates over the changes of a graph after a commit.
class PyChanges {
 public:
  PyChanges(const PyGraph& graph, std::uint64_t after, std::uint64_t last, const std::string& state)
      : feed_(graph.handle(), OpenFeed(graph, after, last, state)) {}

  /// Returns the next changes as tuples; an empty list at the end.
  nb::list Next(std::size_t most) const {
    const auto feed = feed_.Use();
    std::vector<Change> changes;
    Check(feed->Unlocked([&](const std::unique_ptr<ChangeFeed>& all) -> Status {
      while (changes.size() < most) {
        Change change;
        RHIZOME_ASSIGN_OR_RETURN(const bool more, all->Next(change));
        if (!more) break;
        changes.push_back(std::move(change));
      }
      return Status::Ok();
    }));
    nb::list result;
    for (const Change& change : changes) result.append(AsTuple(change));
    return result;
  }

 private:
  using Feed = OneAtATime<std::unique_ptr<ChangeFeed>>;

  static std::shared_ptr<Feed> OpenFeed(const PyGraph& graph, std::uint64_t after,
                                        std::uint64_t last, const std::string& state) {
    const auto used = graph.Use();
    const ChangeRange range{.after = after,
                            .last = last,
                            .after_commits = StateId::Parse(state).value_or(StateId{}).commits};
    return std::make_shared<Feed>(Take(Unlocked([&] { return ChangeFeed::Open(*used, range); })));
  }

  static nb::tuple AsTuple(const Change& change) {
    const bool edge =
        change.kind == Change::Kind::kPutEdge || change.kind == Change::Kind::kDeleteEdges;
    const bool type =
        change.kind == Change::Kind::kVertexType || change.kind == Change::Kind::kEdgeType;
    const bool row = change.kind == Change::Kind::kPutRow;
    const auto* bytes = reinterpret_cast<const char*>(change.row.data());
    return nb::make_tuple(
        change.commit, std::string(KindName(change.kind)),
        type ? nb::object(nb::none()) : ToPython(change.id),
        edge ? ToPython(change.neighbor_id) : nb::none(), change.type, change.name,
        change.kind == Change::Kind::kPutEdge ? nb::object(nb::float_(change.weight)) : nb::none(),
        row ? nb::object(nb::bytes(bytes, change.row.size())) : nb::none());
  }

  Handle::Lease<Feed> feed_;
};

}  // namespace

void BindChanges(nb::module_& module) {
  nb::class_<PyChanges>(module, "Changes")
      .def(nb::init<const PyGraph&, std::uint64_t, std::uint64_t, const std::string&>(),
           nb::arg("graph"), nb::arg("after"), nb::arg("last"), nb::arg("state"))
      .def("next", &PyChanges::Next, nb::arg("most"),
           nb::sig("def next(self, most: int) -> list[tuple[typing.Any, ...]]"));
}

}  // namespace rhizome::python
