#include <string>
#include <utility>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/sampler.h"

namespace rhizome {

Result<SampledSubgraph> Graph::Sample(const std::vector<std::string>& ids,
                                      const SamplerOptions& options) const {
  std::vector<VertexId> seeds;
  for (const std::string& id : ids) {
    RHIZOME_ASSIGN_OR_RETURN(const VertexId seed, FindText(id));
    seeds.push_back(seed);
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(*this, options));
  return sampler->Sample(seeds, /*batch=*/0);
}

}  // namespace rhizome
