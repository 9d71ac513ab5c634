#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "index/generation/graph_builder.h"
#include "index/graph/edges_of_vertex.h"
#include "rhizome/graph_lookup.h"
#include "storage/array/array_facts.h"
#include "tools/cli/id_text.h"
#include "tools/cli/text.h"
#include "tools/import/stored_texts.h"
#include "tools/verbs/verbs.h"
#include "tools/verbs/vertex_array.h"

// `neighbors` visits all entries of a vertex's lists, counts them, and keeps those that it prints
// (Selection), so that a hub with millions of neighbours takes little memory with --limit. With
// --sort, the value of each edge is read, in batches. The attributes of the printed edges are read
// last.

namespace rhizome {
namespace {

struct NeighborsFlags {
  std::string store;
  std::string id;
  Direction direction = Direction::kOut;
  std::string type;
  std::string sort;
  std::optional<std::uint64_t> limit;
};

/// An edge, and the value by which it is sorted. A long double holds every int64 and double.
struct Candidate {
  EdgeOfVertex edge;
  long double key = 0;
};

/// Orders by key, the largest first and NaN last, then by list, type and vertex, so that the result
/// depends neither on partitions nor on the order on disk.
bool IsBefore(const Candidate& a, const Candidate& b) {
  const auto place = [](const Candidate& one) {
    const EdgeOfVertex& edge = one.edge;
    return std::tuple(edge.list == Direction::kIn, edge.neighbor.type, edge.neighbor.vertex,
                      edge.neighbor.weight, edge.edge);
  };
  const bool a_last = std::isnan(a.key);
  const bool b_last = std::isnan(b.key);
  if (a_last != b_last) return b_last;
  if (!a_last && a.key != b.key) return a.key > b.key;
  return place(a) < place(b);
}

/// Keeps the first `limit` candidates in a heap whose front is the last of them.
class Selection {
 public:
  explicit Selection(std::optional<std::uint64_t> limit)
      : limit_(limit.value_or(std::numeric_limits<std::uint64_t>::max())) {}

  void Offer(const Candidate& candidate) {
    ++total_;
    if (kept_.size() < limit_) {
      kept_.push_back(candidate);
      if (kept_.size() == limit_) std::make_heap(kept_.begin(), kept_.end(), IsBefore);
      return;
    }
    if (limit_ == 0 || !IsBefore(candidate, kept_.front())) return;
    std::pop_heap(kept_.begin(), kept_.end(), IsBefore);
    kept_.back() = candidate;
    std::push_heap(kept_.begin(), kept_.end(), IsBefore);
  }

  std::uint64_t total() const { return total_; }
  std::vector<Candidate> Sorted() && {
    std::sort(kept_.begin(), kept_.end(), IsBefore);
    return std::move(kept_);
  }

 private:
  const std::uint64_t limit_;
  std::uint64_t total_ = 0;
  std::vector<Candidate> kept_;
};

/// Reads an attribute of edges.
class EdgeAttribute {
 public:
  EdgeAttribute(const GraphSnapshot& graph, StoredTexts& texts, const EdgeAttributeInfo& info)
      : graph_(graph),
        texts_(texts),
        info_(info),
        array_(graph.store().manifest().FindArray(EdgeArrayName(info.name, 0))) {}

  const std::string& name() const { return info_.name; }

  /// Returns the values of edges: one of each, or an array if the attribute has several.
  Result<std::vector<Json>> Read(std::span<const std::int64_t> edges) const {
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadBytes(edges));
    const std::size_t row_bytes = info_.dim * DataTypeBytes(info_.dtype);
    std::vector<Json> values;
    values.reserve(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(
          Json row, texts_.RowJson(*array_, std::span(bytes).subspan(i * row_bytes, row_bytes)));
      values.push_back(info_.dim == 1 ? std::move(row[0]) : std::move(row));
    }
    return values;
  }

  /// Returns the value of each edge as a number; NaN for null. The attribute has one value per
  /// edge.
  Result<std::vector<long double>> Keys(std::span<const std::int64_t> edges) const {
    RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadBytes(edges));
    switch (info_.dtype) {
      case DataType::kFloat32:
        return KeysAs<float>(bytes);
      case DataType::kFloat64:
        return KeysAs<double>(bytes);
      default:
        return KeysAs<std::int64_t>(bytes);
    }
  }

 private:
  Result<std::vector<std::byte>> ReadBytes(std::span<const std::int64_t> edges) const {
    std::vector<std::byte> bytes(edges.size() * info_.dim * DataTypeBytes(info_.dtype));
    RHIZOME_RETURN_IF_ERROR(ReadEdgeRows(graph_, info_.name, edges, bytes));
    return bytes;
  }

  template <typename T>
  std::vector<long double> KeysAs(std::span<const std::byte> bytes) const {
    const std::optional<std::int64_t> null =
        std::is_integral_v<T> ? NullOf(info_.attributes) : std::nullopt;
    std::vector<long double> keys(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      T value{};
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      const bool is_null = null && value == static_cast<T>(*null);
      keys[i] = is_null ? std::numeric_limits<long double>::quiet_NaN() : value;
    }
    return keys;
  }

  const GraphSnapshot& graph_;
  StoredTexts& texts_;
  const EdgeAttributeInfo info_;
  const ArrayEntry* const array_;
};

std::vector<EdgeAttribute> AttributesOf(const GraphSnapshot& graph, StoredTexts& texts) {
  std::vector<EdgeAttribute> attributes;
  for (const EdgeAttributeInfo& info : graph.edge_attributes())
    attributes.emplace_back(graph, texts, info);
  return attributes;
}

/// Assigns the value to sort by to each edge, and offers it to a selection.
class Sorter {
 public:
  /// Errors: kNotFound, there is no such column, listing the existing ones; kInvalidArgument, the
  /// attribute has several values for each edge, or texts.
  static Result<Sorter> Create(const GraphSnapshot& graph, StoredTexts& texts,
                               const std::string& column, Selection& selection) {
    Sorter sorter(selection);
    if (column.empty()) return sorter;
    RHIZOME_ASSIGN_OR_RETURN(const EdgeAttributeInfo info, FindEdgeColumn(graph, column));
    if (info.dim != 1)
      return Fail(Status::InvalidArgument(
          fmt::format("cannot sort by '{}': it has {} values for each edge", column, info.dim)));
    const ArrayEntry* const array = graph.store().manifest().FindArray(EdgeArrayName(column, 0));
    if (array != nullptr && HasTexts(*array))
      return Fail(
          Status::InvalidArgument(fmt::format("cannot sort by '{}': it holds texts", column)));
    const auto attributes = graph.edge_attributes();
    const bool stored = std::any_of(attributes.begin(), attributes.end(),
                                    [&](const auto& one) { return one.name == column; });
    if (stored) sorter.attribute_.emplace(graph, texts, info);
    sorter.by_weight_ = !stored && column == "weight";
    return sorter;
  }

  Status Add(const EdgeOfVertex& edge) {
    if (!attribute_) {
      selection_.Offer({edge, by_weight_ ? static_cast<long double>(edge.neighbor.weight) : 0});
      return Status::Ok();
    }
    waiting_.push_back(edge);
    return waiting_.size() < kBatch ? Status::Ok() : Flush();
  }

  Status Flush() {
    if (waiting_.empty()) return Status::Ok();
    std::vector<std::int64_t> numbers;
    for (const EdgeOfVertex& edge : waiting_) numbers.push_back(edge.edge.value());
    RHIZOME_ASSIGN_OR_RETURN(const auto keys, attribute_->Keys(numbers));
    for (std::size_t i = 0; i < waiting_.size(); ++i) selection_.Offer({waiting_[i], keys[i]});
    waiting_.clear();
    return Status::Ok();
  }

 private:
  static constexpr std::size_t kBatch = 16384;
  explicit Sorter(Selection& selection) : selection_(selection) {}

  Selection& selection_;
  std::optional<EdgeAttribute> attribute_;  // absent: sort by weight, or not at all
  bool by_weight_ = false;
  std::vector<EdgeOfVertex> waiting_;  // their values were not read yet
};

/// Returns the edges as JSON, with their attributes.
Result<Json> EdgesJson(const GraphSnapshot& graph, StoredTexts& texts,
                       const std::vector<Candidate>& edges) {
  const std::vector<std::string> types = graph.edge_types();
  Json list = Json::array();
  std::vector<std::int64_t> numbers;
  for (const auto& [edge, _] : edges) {
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph.ExternalIdOf(edge.neighbor.vertex));
    list.push_back({{"id", IdJson(id)},
                    {"type", types[edge.neighbor.type]},
                    {"weight", edge.neighbor.weight},
                    {"direction", DirectionOfList(graph, edge.list)}});
    if (edge.edge) numbers.push_back(*edge.edge);
  }
  for (const EdgeAttribute& attribute : AttributesOf(graph, texts)) {
    RHIZOME_ASSIGN_OR_RETURN(auto values, attribute.Read(numbers));
    for (std::size_t i = 0; i < values.size(); ++i)
      list[i]["attributes"][attribute.name()] = std::move(values[i]);
  }
  return list;
}

std::string DescribeNeighbors(const Json& f) {
  const Json& neighbors = f["neighbors"];
  const std::string direction = f["direction"];
  const auto total = f["total"].get<std::uint64_t>();
  std::string text = fmt::format("{}: {}{}", IdText(f["id"]), Plural(total, "neighbour"),
                                 direction == "both" ? "" : fmt::format(" ({}-edges)", direction));
  if (neighbors.size() < total) text += fmt::format(", the first {}", WithCommas(neighbors.size()));
  text += "\n";
  TextTable table;
  for (const Json& n : neighbors) {
    std::vector<std::string> row;
    if (direction == "both" && n["direction"] != "both") row.push_back(n["direction"]);
    row.insert(row.end(), {n["type"].get<std::string>(), IdText(n["id"])});
    if (f["weighted"].get<bool>()) row.push_back(fmt::format("{:g}", n["weight"].get<double>()));
    if (n.contains("attributes"))
      for (const auto& [name, value] : n["attributes"].items())
        row.push_back(fmt::format("{} {}", name,
                                  value.is_string() ? value.get<std::string>() : value.dump()));
    table.Add(std::move(row));
  }
  return text + table.ToString();
}

/// Returns the edge type called `name`. Errors: kNotFound, listing the existing types.
Result<TypeId> FindEdgeType(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<TypeId>(found - names.begin());
  return Fail(
      Status::NotFound(fmt::format("there is no edge type '{}'; there {} {}", name,
                                   names.size() == 1 ? "is" : "are", fmt::join(names, ", "))));
}

Result<Answer> RunNeighbors(const NeighborsFlags& flags, Session& session) {
  RHIZOME_ASSIGN_OR_RETURN(const OpenedGraph opened,
                           OpenGraph(flags.store, session, TopologyPlace::kLazy));
  const GraphSnapshot& graph = *opened.graph;
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, graph.FindText(flags.id));
  std::optional<TypeId> type;
  if (!flags.type.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(type, FindEdgeType(graph.edge_types(), flags.type));
  }
  Selection selection(flags.limit);
  StoredTexts texts(graph);
  RHIZOME_ASSIGN_OR_RETURN(Sorter sorter, Sorter::Create(graph, texts, flags.sort, selection));
  RHIZOME_RETURN_IF_ERROR(VisitEdgesOf(graph, vertex, flags.direction, type,
                                       [&](const EdgeOfVertex& edge) { return sorter.Add(edge); }));
  RHIZOME_RETURN_IF_ERROR(sorter.Flush());
  const std::uint64_t total = selection.total();
  RHIZOME_ASSIGN_OR_RETURN(auto neighbors, EdgesJson(graph, texts, std::move(selection).Sorted()));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph.ExternalIdOf(vertex));
  const char* direction = flags.direction == Direction::kOut  ? "out"
                          : flags.direction == Direction::kIn ? "in"
                                                              : "both";
  Json fields = {{"id", IdJson(id)},
                 {"direction", direction},
                 {"weighted", graph.info().weighted},
                 {"total", total},
                 {"neighbors", std::move(neighbors)}};
  return Answer{std::move(fields), DescribeNeighbors, {}};
}

}  // namespace

void AddNeighborsVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<NeighborsFlags>();
  CLI::App* verb =
      AddVerb(root, session, "neighbors",
              "List the neighbours of a vertex with their edges; parallel edges are repeated",
              "rhizome neighbors demo.rz 7 --direction in --limit 10", flags, RunNeighbors);
  verb->add_option("STORE", flags->store, "The store's folder")->required();
  verb->add_option("ID", flags->id, "External id of the vertex")->required();
  AddChoice<Direction>(
      *verb, "--direction", flags->direction,
      {{"out", Direction::kOut}, {"in", Direction::kIn}, {"both", Direction::kBoth}},
      "Edges to follow: out-edges of the vertex, in-edges, or both");
  verb->add_option("--type", flags->type, "Only edges of this type")->type_name("NAME");
  verb->add_option("--sort", flags->sort,
                   "Sort by weight or by an edge attribute, largest first; default: by type")
      ->type_name("weight|NAME");
  verb->add_option("--limit", flags->limit, "Print only the first N neighbours")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N");
}

}  // namespace rhizome
