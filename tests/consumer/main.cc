#include <rhizome/graph.h>
#include <rhizome/store.h>

#include <cstdio>
#include <cstdlib>

// usage: consumer STORE ID
// Prints the vertex count and the out-degree of one vertex.
int main(int argc, char** argv) {
  if (argc != 3) return 1;
  auto store =
      rhizome::Store::Open(rhizome::FileSystem::Posix(), argv[1], rhizome::Store::Mode::kRead);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().ToString().c_str());
    return 2;
  }
  auto graph = rhizome::Graph::Open(**store);
  if (!graph) {
    std::fprintf(stderr, "%s\n", graph.error().ToString().c_str());
    return 2;
  }
  auto vertex = (*graph)->FindText(argv[2]);
  if (!vertex) return 2;
  auto degree = (*graph)->Degree(*vertex, rhizome::Direction::kOut);
  if (!degree) return 2;
  std::printf("%llu %llu\n", static_cast<unsigned long long>((*graph)->vertex_count()),
              static_cast<unsigned long long>(*degree));
  return 0;
}
