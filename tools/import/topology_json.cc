#include "tools/import/topology_json.h"

namespace rhizome {

Json ToJson(const TopologySections& sections) {
  Json json = Json::object();
  for (const auto& [group, bytes] : sections.groups())
    if (bytes > 0) json[group] = bytes;
  return json;
}

Status AddMaxOverMin(const Store& store, Json& fields) {
  RHIZOME_ASSIGN_OR_RETURN(const MaxOverMinLoad load, MaxOverMinOf(store));
  fields["vertex_max_over_min"] = load.vertices;
  fields["edge_max_over_min"] = load.edges;
  return Status::Ok();
}

}  // namespace rhizome
