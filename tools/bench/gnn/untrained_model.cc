#include "cache/job/safetensors.h"
#include "gnn/models/model.h"
#include "gnn/ops/torch_guard.h"
#include "tools/bench/gnn/bench_kernels.h"

namespace rhizome {

Status SaveUntrainedModel(const ModelSpec& spec, std::int64_t inputs, std::uint64_t seed,
                          const Path& path) {
  const auto saved = GuardedTorch([&]() -> Result<bool> {
    RHIZOME_ASSIGN_OR_RETURN(const Model model,
                             Model::Create({.spec = spec, .inputs = inputs, .classes = 2}, seed));
    RHIZOME_RETURN_IF_ERROR(SaveSafetensors(path, model.ToFile()));
    return true;
  });
  return saved ? Status::Ok() : saved.error();
}

}  // namespace rhizome
