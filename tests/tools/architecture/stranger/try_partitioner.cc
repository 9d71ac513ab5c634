#include <cstdio>

#include "index/partition/partitioner.h"

// Finds the partitioner `stripe` by its name and divides a path of five edges into three parts.
int main() {
  const auto kind = rhizome::ParsePartitioner("stripe");
  if (!kind) return 1;
  const rhizome::VertexId src[] = {0, 1, 2, 3, 4};
  const rhizome::VertexId dst[] = {1, 2, 3, 4, 5};
  const rhizome::PartitionInput input(6, src, dst);
  const auto parts = rhizome::PartitionEdges(input, {.kind = *kind, .partitions = 3}, {});
  if (!parts) return 1;
  for (std::size_t i = 0; i < parts->size(); ++i)
    std::printf(i == 0 ? "%d" : " %d", static_cast<int>((*parts)[i]));
  std::printf("\n");
  return 0;
}
