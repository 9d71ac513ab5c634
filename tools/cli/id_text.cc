#include "tools/cli/id_text.h"

namespace rhizome {

Status AppendIdField(const ExternalId& id, TableForm form, std::string& line) {
  const Status added = AppendField(ToString(id), form, line);
  return added.ok() ? added : added.WithContext("an external id");
}

std::string IdText(const Json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

}  // namespace rhizome
