#include "cache/full_graph/pass_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "cache/full_graph/pass_step.h"
#include "cache/full_graph/remaining_bytes_bound.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kNoBytes = std::numeric_limits<std::uint64_t>::max();

/// Beam width of the first search, whose plan prunes the wide search.
constexpr std::size_t kNarrow = 64;

std::string KeyOf(std::span<const PartState> states) {
  std::string key;
  for (const PartState& state : states)
    key.push_back(static_cast<char>(state.resident << 4 | state.dirty));
  return key;
}

void StatesOf(const std::string& key, std::vector<PartState>& states) {
  states.clear();
  for (const char c : key) {
    const auto byte = static_cast<std::uint8_t>(c);
    states.push_back({.resident = static_cast<std::uint8_t>(byte >> 4),
                      .dirty = static_cast<std::uint8_t>(byte & 15)});
  }
}

/// A pass in one state with one choice of blocks. It decides which numbers of parts fit in memory
/// together.
class Step {
 public:
  Step(std::vector<StepArray> arrays, std::uint64_t room, std::uint32_t parts)
      : arrays_(std::move(arrays)), room_(room), parts_(parts), rest_(arrays_.size() + 1) {
    rest_.back().fill(0);
    for (std::size_t i = arrays_.size(); i-- > 0;) {
      for (std::uint32_t s = 0; s < parts; ++s)
        rest_[i][s] = rest_[i + 1][s] + arrays_[i].holds[arrays_[i].most][s];
    }
  }

  const std::vector<StepArray>& arrays() const { return arrays_; }

  bool Fits(const StageBytes& held, const StageBytes& more) const {
    for (std::uint32_t s = 0; s < parts_; ++s) {
      if (held[s] + more[s] > room_) return false;
    }
    return true;
  }

  /// Calls visit(parts, cost) for each choice of parts that fits, costs less than `below`, and is
  /// maximal: no part can be added, except for arrays that may grow again later. `visit` returns
  /// false to stop.
  template <typename Visit>
  bool VisitAll(std::uint64_t below, Visit&& visit) const {
    std::vector<std::uint8_t> parts(arrays_.size());
    StageBytes held{};
    return VisitFrom(0, parts, held, 0, below, visit);
  }

  /// Fills memory greedily: takes the arrays in the given order, as many parts of each as fit.
  /// Returns the cost.
  std::uint64_t Fill(std::span<const std::uint32_t> order, std::vector<std::uint8_t>& parts) const {
    parts.assign(arrays_.size(), 0);
    StageBytes held{};
    std::uint64_t cost = 0;
    for (const std::uint32_t i : order) {
      const StepArray& array = arrays_[i];
      std::uint8_t best = 0;
      while (best < array.most && Fits(held, array.holds[best + 1])) ++best;
      parts[i] = best;
      cost += array.cost[best];
      Add(array.holds[best], held);
    }
    return cost;
  }

 private:
  void Add(const StageBytes& more, StageBytes& held) const {
    for (std::uint32_t s = 0; s < parts_; ++s) held[s] += more[s];
  }

  bool CanAdd(const std::vector<std::uint8_t>& parts, const StageBytes& held) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const StepArray& array = arrays_[i];
      const std::uint8_t y = parts[i];
      if (y == array.most || array.regrows) continue;
      bool fits = true;
      for (std::uint32_t s = 0; s < parts_; ++s)
        fits &= held[s] - array.holds[y][s] + array.holds[y + 1][s] <= room_;
      if (fits) return true;
    }
    return false;
  }

  template <typename Visit>
  bool VisitFrom(std::size_t i, std::vector<std::uint8_t>& parts, const StageBytes& held,
                 std::uint64_t cost, std::uint64_t below, Visit&& visit) const {
    if (cost >= below) return true;
    if (i == arrays_.size()) return CanAdd(parts, held) || visit(parts, cost);
    const StepArray& array = arrays_[i];
    const bool all_fit = Fits(held, rest_[i]);
    for (int y = array.most; y >= 0; --y) {
      if (!Fits(held, array.holds[y])) continue;
      StageBytes with = held;
      Add(array.holds[y], with);
      parts[i] = static_cast<std::uint8_t>(y);
      if (!VisitFrom(i + 1, parts, with, cost + array.cost[y], below, visit)) return false;
      if (all_fit && !array.regrows) break;  // nothing has to leave
    }
    return true;
  }

  std::vector<StepArray> arrays_;
  std::uint64_t room_;
  std::uint32_t parts_;
  std::vector<StageBytes> rest_;
};

/// A state before a pass, and how it was reached.
struct Node {
  std::string key;
  std::uint64_t cost = 0;
  std::uint64_t least = 0;  ///< cost plus the lower bound of the rest
  std::uint32_t parent = 0;
  PassDecision decision;
};

class PassSearch {
 public:
  PassSearch(const CountedSequence& sequence, const PassSearchOptions& options)
      : sequence_(sequence),
        options_(options),
        steps_(sequence, options.parts),
        bound_(sequence, options.capacity_bytes),
        best_(options.below_bytes.value_or(kNoBytes)) {}

  /// Searches for the best plan: (1) the lower bound may already show that no plan beats the known
  /// one; (2) a narrow beam with greedy choices finds a good plan; (3) unless that plan meets the
  /// bound, the full search tries all maximal choices and prunes states that cannot beat the best
  /// plan.
  PassSearchResult Run() {
    PassSearchResult result;
    result.bound_bytes = bound_.Of(0, {});
    bool whole = result.bound_bytes >= best_;
    if (!whole) Search(kNarrow, /*all=*/false, result);
    whole = whole || result.bound_bytes >= best_;
    if (!whole) whole = Search(options_.max_states, /*all=*/true, result);
    result.optimal = whole;
    return result;
  }

 private:
  using Layer = std::vector<Node>;

  /// Searches with at most `max_states` states per pass. `all`: tries all maximal choices, else
  /// greedy ones. Returns whether nothing was cut, so that the result is optimal.
  bool Search(std::size_t max_states, bool all, PassSearchResult& result) {
    bool whole = all;
    std::uint64_t tried = 0;
    std::vector<Layer> layers(1);
    layers[0].push_back({.key = std::string(sequence_.arrays.size(), '\0'),
                         .cost = 0,
                         .least = bound_.Of(0, {}),
                         .parent = 0,
                         .decision = {}});
    for (std::size_t p = 0; p < sequence_.passes.size(); ++p) {
      Layer& layer = layers.back();
      std::sort(layer.begin(), layer.end(), [](const Node& a, const Node& b) {
        return std::pair(a.least, a.cost) < std::pair(b.least, b.cost);
      });
      result.states = std::max<std::uint64_t>(result.states, layer.size());
      if (layer.size() > max_states) {
        layer.resize(max_states);
        whole = false;
      }
      Layer next;
      std::unordered_map<std::string, std::uint32_t> known;
      for (std::uint32_t n = 0; n < layer.size(); ++n) {
        if (tried > options_.max_tried) whole = false;
        Expand(p, layer[n], n, all && tried <= options_.max_tried, tried, known, next);
      }
      layers.push_back(std::move(next));
    }
    Take(layers, result);
    return whole;
  }

  void Expand(std::size_t pass, const Node& node, std::uint32_t index, bool all,
              std::uint64_t& tried, std::unordered_map<std::string, std::uint32_t>& known,
              Layer& next) {
    StatesOf(node.key, before_);
    const CountedPass& counted = sequence_.passes[pass];
    for (std::uint32_t c = 0; c < counted.choices.size(); ++c) {
      const CountedChoice& choice = counted.choices[c];
      const Step step(steps_.Make(pass, c, before_),
                      options_.capacity_bytes - choice.blocks.memory_bytes, options_.parts);
      const std::uint64_t before = node.cost + choice.blocks.beside_bytes;
      const auto visit = [&](const std::vector<std::uint8_t>& parts, std::uint64_t cost) {
        ++tried;
        AddChild(pass, step, c, parts, before + cost, index, known, next);
        return tried <= options_.max_tried;
      };
      // Remaining cost below the best plan.
      if (all) {
        step.VisitAll(best_ - std::min(best_, before), visit);
      } else {
        FillInOrders(pass, step, visit);
      }
    }
  }

  /// Tries choices by Belady's rule: the arrays needed soonest remain. Then repeats this with each
  /// array moved to the front and to the back of the order.
  template <typename Visit>
  void FillInOrders(std::size_t pass, const Step& step, Visit&& visit) const {
    const auto& arrays = step.arrays();
    std::vector<std::uint32_t> order(arrays.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return NextUse(pass, arrays[a]) < NextUse(pass, arrays[b]);
    });
    std::vector<std::uint8_t> parts;
    visit(parts, step.Fill(order, parts));
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::vector<std::uint32_t> other = order;
      std::rotate(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(i),
                  other.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      visit(parts, step.Fill(other, parts));
      other = order;
      std::rotate(other.begin() + static_cast<std::ptrdiff_t>(i),
                  other.begin() + static_cast<std::ptrdiff_t>(i) + 1, other.end());
      visit(parts, step.Fill(other, parts));
    }
  }

  std::int32_t NextUse(std::size_t pass, const StepArray& array) const {
    const auto here = static_cast<std::int32_t>(pass);
    if (array.before.resident > 0 && array.most >= array.before.resident) {
      const auto& choices = sequence_.passes[pass].choices;
      if (choices.front().Reads(array.array)) return here;
    }
    for (std::size_t p = pass + 1; p < sequence_.passes.size(); ++p) {
      if (sequence_.passes[p].choices.front().Reads(array.array))
        return static_cast<std::int32_t>(p);
    }
    return here;  // used only in this pass: its savings are immediate
  }

  void AddChild(std::size_t pass, const Step& step, std::uint32_t choice,
                const std::vector<std::uint8_t>& parts, std::uint64_t cost, std::uint32_t parent,
                std::unordered_map<std::string, std::uint32_t>& known, Layer& next) {
    after_.assign(sequence_.arrays.size(), {});
    held_.clear();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const StepArray& array = step.arrays()[i];
      const PartState& state = array.after[parts[i]];
      after_[array.array] = state;
      if (state.resident == 0) continue;
      held_.push_back({.array = array.array,
                       .resident_bytes = steps_.PrefixBytes(array.array, state.resident),
                       .dirty_bytes = steps_.PrefixBytes(array.array, state.dirty)});
    }
    std::string key = KeyOf(after_);
    const auto found = known.find(key);
    if (found != known.end() && next[found->second].cost <= cost) return;
    const std::uint64_t least = cost + bound_.Of(pass + 1, held_);
    if (least >= best_) return;
    Node node{.key = key, .cost = cost, .least = least, .parent = parent, .decision = {}};
    node.decision.choice = choice;
    node.decision.resident.assign(sequence_.arrays.size(), 0);
    for (std::size_t i = 0; i < parts.size(); ++i)
      node.decision.resident[step.arrays()[i].array] = parts[i];
    if (found != known.end()) {
      next[found->second] = std::move(node);
    } else {
      known.emplace(std::move(key), static_cast<std::uint32_t>(next.size()));
      next.push_back(std::move(node));
    }
  }

  /// Makes the best plan of the last layer, if there is one, the best known plan.
  void Take(const std::vector<Layer>& layers, PassSearchResult& result) {
    const Layer& last = layers.back();
    if (last.empty()) return;
    const auto best = std::min_element(
        last.begin(), last.end(), [](const Node& a, const Node& b) { return a.cost < b.cost; });
    if (best->cost >= best_) return;
    best_ = best->cost;
    result.bytes = best->cost;
    result.decisions.assign(sequence_.passes.size(), {});
    const Node* node = &*best;
    for (std::size_t p = sequence_.passes.size(); p-- > 0;) {
      result.decisions[p] = node->decision;
      node = &layers[p][node->parent];
    }
  }

  const CountedSequence& sequence_;
  PassSearchOptions options_;
  StepMaker steps_;
  RemainingBytesBound bound_;
  std::uint64_t best_;  // bytes of the best known plan
  std::vector<PartState> before_;
  std::vector<PartState> after_;
  std::vector<HeldArray> held_;
};

}  // namespace

PassSearchResult SearchPasses(const CountedSequence& sequence, const PassSearchOptions& options) {
  return PassSearch(sequence, options).Run();
}

}  // namespace internal
}  // namespace rhizome
