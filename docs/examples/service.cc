// A service over a graph that changes: it answers neighbours and features of vertices from one
// memory budget, writes new edges, and compacts in the background. Commands come from standard
// input, one a line; a real service has a protocol of its own.
//
//     near ID        the neighbours of a vertex, and the first values of its row of `feat`
//     link ID ID     writes an edge; it is durable before the next line is read
//     metrics        metrics in the text format of Prometheus
//
// Build: find_package(rhizome), target_link_libraries(service rhizome::rhizome). Run: service STORE

#include <rhizome/graph_service.h>

#include <algorithm>
#include <iostream>
#include <sstream>

namespace {

using namespace rhizome;

constexpr std::size_t kShownValues = 4;

Status Near(const GraphService& service, const std::string& id) {
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, service.graph().FindText(id));
  NeighborLists lists;
  RHIZOME_RETURN_IF_ERROR(
      LookUpNeighbors(service.graph(), std::span(&vertex, 1), Direction::kOut, lists));
  std::cout << id << ":";
  for (const VertexId neighbor : lists.vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId name, service.graph().ExternalIdOf(neighbor));
    std::cout << " " << ToString(name);
  }
  RHIZOME_ASSIGN_OR_RETURN(const RowLookup* const rows, service.Rows("feat"));
  std::vector<float> row(rows->row_bytes() / sizeof(float));
  RHIZOME_RETURN_IF_ERROR(
      rows->Read(std::span(&vertex, 1), std::as_writable_bytes(std::span(row))));
  std::cout << " |";
  for (std::size_t i = 0; i < std::min(row.size(), kShownValues); ++i) std::cout << " " << row[i];
  std::cout << "\n";
  return Status::Ok();
}

Status Answer(GraphService& service, const std::string& line) {
  std::istringstream words(line);
  std::string verb, a, b;
  words >> verb >> a >> b;
  if (verb == "near") return Near(service, a);
  if (verb == "metrics") {
    std::cout << service.MetricsAsText();
    return Status::Ok();
  }
  if (verb != "link") return Status::InvalidArgument("near ID, link ID ID, or metrics");
  WriteBatch batch;
  RHIZOME_ASSIGN_OR_RETURN(const VertexId source, service.graph().FindText(a));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId from, service.graph().ExternalIdOf(source));
  RHIZOME_ASSIGN_OR_RETURN(const VertexId target, service.graph().FindText(b));
  RHIZOME_ASSIGN_OR_RETURN(const ExternalId to, service.graph().ExternalIdOf(target));
  batch.PutEdge(from, to);
  RHIZOME_RETURN_IF_ERROR(service.graph().Write(batch));
  std::cout << "ok\n";
  return Status::Ok();
}

Status Serve(const Path& store) {
  ServiceOptions options = SmallProfile();  // 64 MiB; ServeProfile() is for a server
  options.mode = Store::Mode::kWrite;
  options.arrays = {"feat"};
  options.compact_when = CompactOptions{.min_delta = 0.2, .memory_bytes = std::uint64_t{1} << 30};
  options.log = [](const LogLine& line) { std::cerr << ToText(line) << "\n"; };
  RHIZOME_ASSIGN_OR_RETURN(const auto service,
                           GraphService::Open(FileSystem::Posix(), store, options));
  for (std::string line; std::getline(std::cin, line);) {
    const Status answered = Answer(*service, line);
    if (!answered.ok()) std::cout << "error: " << answered.message() << "\n";
  }
  return Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const Status served =
      argc == 2 ? Serve(argv[1]) : Status::InvalidArgument("usage: service STORE");
  if (served.ok()) return 0;
  std::cerr << served.message() << "\n";
  return 1;
}
