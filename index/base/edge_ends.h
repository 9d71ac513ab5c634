#pragma once

#include <cstddef>
#include <vector>

#include "rhizome/manifest.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Collects the vertex types of the ends of edges, by edge type.
class EndsOfEdges {
 public:
  /// Begins without an edge.
  explicit EndsOfEdges(std::size_t edge_types) : ends_(edge_types) {}

  /// Begins with edges whose ends are known. `edge_types` may be more than there are ends.
  EndsOfEdges(const std::vector<EdgeEnds>& known, std::size_t edge_types) : ends_(edge_types) {
    for (std::size_t type = 0; type < known.size(); ++type)
      Add(static_cast<TypeId>(type), known[type].source, known[type].destination);
  }

  /// Adds an edge of type `type`, in [0, edge_types).
  void Add(TypeId type, TypeId source, TypeId destination) {
    Ends& ends = ends_[type];
    if (!ends.any) ends = {.any = true, .ends = {source, destination}};
    if (ends.ends.source != source) ends.ends.source = kSeveralTypes;
    if (ends.ends.destination != destination) ends.ends.destination = kSeveralTypes;
  }

  void AddAll(const EndsOfEdges& other) {
    for (std::size_t type = 0; type < other.ends_.size(); ++type)
      if (other.ends_[type].any)
        Add(static_cast<TypeId>(type), other.ends_[type].ends.source,
            other.ends_[type].ends.destination);
  }

  /// Returns whether an edge of this type has an end of another vertex type than `claimed`.
  bool Contradict(TypeId type, EdgeEnds claimed) const {
    const auto wrong = [](TypeId said, TypeId real) {
      return said != kSeveralTypes && said != real;
    };
    return ends_[type].any && (wrong(claimed.source, ends_[type].ends.source) ||
                               wrong(claimed.destination, ends_[type].ends.destination));
  }

  /// Returns the ends by edge type; kSeveralTypes for a type without edges.
  std::vector<EdgeEnds> ByType() const {
    std::vector<EdgeEnds> result;
    for (const Ends& ends : ends_) result.push_back(ends.ends);
    return result;
  }

 private:
  struct Ends {
    bool any = false;
    EdgeEnds ends;
  };
  std::vector<Ends> ends_;
};

}  // namespace internal
}  // namespace rhizome
