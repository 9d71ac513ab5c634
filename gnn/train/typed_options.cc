#include "gnn/train/typed_options.h"

#include <fmt/format.h>

#include "gnn/models/model_kinds.h"
#include "gnn/options/training_options.h"

namespace rhizome {
inline namespace internal {

namespace {

/// Refuses options of tables for networks, and options of links for other tasks.
Status CheckNoTable(const TrainOptions& options) {
  if (options.learning.optimizer.kind == OptimizerKind::kAdagradRow)
    return Status::InvalidArgument("`optimizer=adagrad-row` is for `model=table`");
  if (options.learning.task == Task::kLink) return Status::Ok();
  for (const std::string& field : FieldsGiven(options))
    if (field.starts_with("link."))
      return Status::InvalidArgument(
          fmt::format("`{}` is for links; give `task=link`, or omit it", field));
  return Status::Ok();
}

}  // namespace

Result<TrainOptions> WithTypedDefaults(const TrainOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckNoTable(options));
  RHIZOME_ASSIGN_OR_RETURN(const ModelInfo info, FindModelInfo(options.model.kind));
  TrainOptions resolved = options;
  if (!resolved.data.sampling.direction)
    resolved.data.sampling.direction = info.typed ? Direction::kBoth : Direction::kIn;
  if (!info.typed) return resolved;
  const auto refuse = [&](std::string_view option, std::string_view where) {
    return Fail(Status::InvalidArgument(
        fmt::format("model {} has weights for each edge type, which training {} does not support; "
                    "omit `{}`, or choose another model",
                    info.name, where, option)));
  };
  if (options.full_graph() != nullptr) return refuse("full_graph", "on the full graph");
  if (options.minibatch()->device) return refuse("device", "on a device");
  if (options.minibatch()->ranks) return refuse("ranks", "over ranks");
  return resolved;
}

}  // namespace internal
}  // namespace rhizome
