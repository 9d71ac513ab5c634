#include "gnn/models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gnn/models/layer.h"
#include "gnn/models/model_kinds.h"

// The list of all kinds of layers. A file kind_<name>.cc defines a kind, by a function <Name>Kind()
// for the name in this list. A new kind must be added here.
#define RHIZOME_CONV_KINDS(KIND) \
  KIND(Sage)                     \
  KIND(Gcn)                      \
  KIND(Gin)                      \
  KIND(Gat)                      \
  KIND(GatV2)                    \
  KIND(CommNet)                  \
  KIND(Rgcn)                     \
  KIND(Hgt)

namespace rhizome {
inline namespace internal {

#define RHIZOME_DECLARE_KIND(Name) const ConvKind& Name##Kind();
RHIZOME_CONV_KINDS(RHIZOME_DECLARE_KIND)

const std::vector<const ConvKind*>& ConvKinds() {
#define RHIZOME_ADDRESS_OF_KIND(Name) &Name##Kind(),
  static const std::vector<const ConvKind*> kinds = {RHIZOME_CONV_KINDS(RHIZOME_ADDRESS_OF_KIND)};
  return kinds;
}

Result<const ConvKind*> FindConvKind(std::string_view name) {
  std::vector<std::string> known;
  for (const ConvKind* const kind : ConvKinds()) {
    if (kind->info.name == name) return kind;
    known.push_back(kind->info.name);
  }
  return Fail(Status::InvalidArgument(
      fmt::format("there is no model '{}'; existing models: {}", name, fmt::join(known, ", "))));
}

ModelInfo DescribeModel(const ConvKind& kind) {
  ModelInfo info = kind.info;
  for (ModelOption option : LayerOptions()) {
    if (const auto other = kind.defaults.find(option.name); other != kind.defaults.end())
      option.fallback = other->second;
    info.options.push_back(std::move(option));
  }
  return info;
}

Result<ModelInfo> FindModelInfo(std::string_view name) {
  RHIZOME_ASSIGN_OR_RETURN(const ConvKind* const kind, FindConvKind(name));
  return DescribeModel(*kind);
}

std::vector<ModelInfo> DescribeModels() {
  std::vector<ModelInfo> models;
  for (const ConvKind* const kind : ConvKinds()) models.push_back(DescribeModel(*kind));
  return models;
}

}  // namespace internal
}  // namespace rhizome
