#include "gnn/models/recorded_direction.h"

#include "cache/feed/feed_fields.h"
#include "storage/options/option.h"

namespace rhizome {
inline namespace internal {

void SetDirection(Direction direction, TensorFile& file) {
  if (direction != Direction::kIn)
    file.metadata[kDirectionMetadataKey] = std::string(NameOfChoice(direction));
}

std::optional<Direction> DirectionOf(const TensorFile& file) {
  const auto found = file.metadata.find(kDirectionMetadataKey);
  if (found == file.metadata.end()) return std::nullopt;
  for (const auto& [name, direction] : ChoiceNames<Direction>::Names())
    if (name == found->second) return direction;
  return std::nullopt;
}

}  // namespace internal
}  // namespace rhizome
