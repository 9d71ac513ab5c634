#include "cache/job/safetensors.h"
#include "gnn/models/model.h"
#include "gnn/models/model_kinds.h"
#include "gnn/ops/torch_guard.h"
#include "tools/bench/gnn/bench_kernels.h"

namespace rhizome {

Status SaveUntrainedModel(const ModelSpec& spec, const UntrainedInputs& inputs, std::uint64_t seed,
                          const Path& path) {
  const auto saved = GuardedTorch([&]() -> Result<bool> {
    ModelShape shape{.spec = spec, .inputs = inputs.columns, .classes = 2};
    RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(spec.kind));
    if (info.typed) {
      shape.vertex_types = inputs.vertex_types;
      shape.relations = inputs.edge_types;
    }
    RHIZOME_ASSIGN_OR_RETURN(const Model model, Model::Create(shape, seed));
    RHIZOME_RETURN_IF_ERROR(SaveSafetensors(path, model.ToFile()));
    return true;
  });
  return saved ? Status::Ok() : saved.error();
}

}  // namespace rhizome
