#include "cache/full_graph/tensor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>

#include "storage/base/mix.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// A set of tensors or operators.
using Members = std::uint64_t;

Members SetOf(const std::vector<std::uint32_t>& members) {
  Members set = 0;
  for (const std::uint32_t m : members) set |= Members{1} << m;
  return set;
}

std::vector<std::uint32_t> ListOf(Members set) {
  std::vector<std::uint32_t> list;
  for (; set != 0; set &= set - 1)
    list.push_back(static_cast<std::uint32_t>(std::countr_zero(set)));
  return list;
}

/// The graph as sets.
class OpSets {
 public:
  explicit OpSets(const OpGraph& graph) : graph_(graph) {
    for (const OpGraph::Op& op : graph.ops) {
      inputs_.push_back(SetOf(op.inputs));
      outputs_.push_back(SetOf(op.outputs));
    }
    for (std::size_t o = 0; o < inputs_.size(); ++o) {
      Members before = 0;
      for (std::size_t other = 0; other < inputs_.size(); ++other) {
        if ((outputs_[other] & inputs_[o]) != 0) before |= Members{1} << other;
      }
      before_.push_back(before);
    }
  }

  Members in(std::size_t op) const { return inputs_[op]; }
  Members out(std::size_t op) const { return outputs_[op]; }
  std::size_t ops() const { return inputs_.size(); }
  bool CanRun(std::size_t op, Members done) const {
    return (done >> op & 1) == 0 && (before_[op] & ~done) == 0;
  }

  std::uint64_t Bytes(Members tensors) const {
    std::uint64_t bytes = 0;
    for (; tensors != 0; tensors &= tensors - 1)
      bytes += graph_.tensors[static_cast<std::size_t>(std::countr_zero(tensors))].bytes;
    return bytes;
  }

  /// Returns the tensors that operators outside `done` read.
  Members NeededAfter(Members done) const {
    Members needed = 0;
    for (std::size_t o = 0; o < ops(); ++o) {
      if ((done >> o & 1) == 0) needed |= inputs_[o];
    }
    return needed;
  }

 private:
  const OpGraph& graph_;
  std::vector<Members> inputs_;
  std::vector<Members> outputs_;
  std::vector<Members> before_;
};

struct TensorState {
  Members done = 0;
  Members resident = 0;
  Members dirty = 0;
  friend bool operator==(const TensorState&, const TensorState&) = default;
};

struct TensorStateHash {
  std::size_t operator()(const TensorState& state) const {
    return Mix64(state.done ^ Mix64(state.resident ^ Mix64(state.dirty)));
  }
};

struct TensorNode {
  TensorState state;
  std::uint64_t cost = 0;
  std::uint64_t least = 0;  ///< cost plus one read of every needed tensor that is not in memory
  std::uint32_t parent = 0;
  std::uint32_t op = 0;
  Members kept = 0;
};

class TensorSearch {
 public:
  TensorSearch(const OpGraph& graph, const TensorPlanOptions& options)
      : graph_(graph), sets_(graph), options_(options) {}

  /// Searches layer by layer, one executed operator per layer: (1) cuts the states of the layer to
  /// the best ones; (2) expands each state by every operator that can run, with every maximal set
  /// of kept tensors; (3) merges equal states, keeping the one with the lower cost. At the end it
  /// traces the best state back to the start.
  TensorPlan Run() {
    layers_.push_back({TensorNode{}});
    for (std::size_t step = 0; step < sets_.ops(); ++step) {
      Cut(layers_.back());
      std::vector<TensorNode> next;
      known_.clear();
      for (std::uint32_t n = 0; n < layers_.back().size(); ++n) {
        for (std::size_t op = 0; op < sets_.ops(); ++op) {
          const TensorNode& node = layers_.back()[n];
          const bool its_turn = options_.free_order || op == step;
          if (its_turn && sets_.CanRun(op, node.state.done)) Expand(node, n, op, next);
        }
      }
      layers_.push_back(std::move(next));
    }
    TraceBack();
    return std::move(plan_);
  }

 private:
  /// Keeps only the best states if there are too many.
  void Cut(std::vector<TensorNode>& layer) {
    plan_.max_states = std::max(plan_.max_states, layer.size());
    plan_.all_states += layer.size();
    if (layer.size() <= options_.max_states) return;
    DropDominated(layer);
    if (layer.size() <= options_.max_states) return;
    plan_.optimal = false;
    std::nth_element(layer.begin(),
                     layer.begin() + static_cast<std::ptrdiff_t>(options_.max_states), layer.end(),
                     [](const TensorNode& a, const TensorNode& b) { return a.least < b.least; });
    layer.resize(options_.max_states);
  }

  /// Removes dominated states. Among states with the same tensors in memory, a state is dominated
  /// by one that costs no more and whose dirty tensors are a subset.
  static void DropDominated(std::vector<TensorNode>& layer) {
    std::sort(layer.begin(), layer.end(), [](const TensorNode& a, const TensorNode& b) {
      return std::tie(a.state.done, a.state.resident, a.cost) <
             std::tie(b.state.done, b.state.resident, b.cost);
    });
    std::vector<TensorNode> left;
    std::size_t group = 0;  // first remaining state with the same tensors
    for (const TensorNode& node : layer) {
      if (left.empty() || left.back().state.done != node.state.done ||
          left.back().state.resident != node.state.resident) {
        group = left.size();
      }
      const bool dominated = std::any_of(
          left.begin() + static_cast<std::ptrdiff_t>(group), left.end(),
          [&](const TensorNode& better) { return (better.state.dirty & ~node.state.dirty) == 0; });
      if (!dominated) left.push_back(node);
    }
    layer = std::move(left);
  }

  void Expand(const TensorNode& node, std::uint32_t index, std::size_t op,
              std::vector<TensorNode>& next) {
    const Members used = sets_.in(op) | sets_.out(op);
    const std::uint64_t room =
        options_.capacity_bytes - sets_.Bytes(used) - graph_.ops[op].memory_bytes;
    std::vector<std::uint32_t> others = ListOf(node.state.resident & ~used);
    std::sort(others.begin(), others.end(), [&](std::uint32_t a, std::uint32_t b) {
      return graph_.tensors[a].bytes > graph_.tensors[b].bytes;
    });
    ChooseKept(others, 0, 0, room, sets_.Bytes(node.state.resident & ~used),
               [&](Members kept) { AddState(node, index, op, kept, next); });
  }

  /// Calls visit for each maximal subset of others[i..], joined with `kept`, that fits in the
  /// remaining bytes. `rest` is the size of others[i..].
  template <typename Visit>
  void ChooseKept(const std::vector<std::uint32_t>& others, std::size_t i, Members kept,
                  std::uint64_t room, std::uint64_t rest, Visit&& visit) const {
    if (rest <= room) {
      for (; i < others.size(); ++i) kept |= Members{1} << others[i];
      const bool more_fits = std::any_of(others.begin(), others.end(), [&](std::uint32_t t) {
        return (kept >> t & 1) == 0 && graph_.tensors[t].bytes <= room - rest;
      });
      if (!more_fits) visit(kept);
      return;
    }
    const std::uint64_t bytes = graph_.tensors[others[i]].bytes;
    if (bytes <= room) {
      ChooseKept(others, i + 1, kept | Members{1} << others[i], room - bytes, rest - bytes, visit);
    }
    ChooseKept(others, i + 1, kept, room, rest - bytes, visit);
  }

  void AddState(const TensorNode& node, std::uint32_t index, std::size_t op, Members kept,
                std::vector<TensorNode>& next) {
    const Members in = sets_.in(op);
    const Members out = sets_.out(op);
    const Members done = node.state.done | Members{1} << op;
    const Members needed = sets_.NeededAfter(done);
    const bool charges = RHIZOME_MUTANT("the last use of a tensor is charged");
    const Members there = charges ? node.state.resident & needed : node.state.resident;
    TensorNode child{.state = {.done = done, .resident = (kept | in | out) & needed, .dirty = 0},
                     .cost = node.cost + sets_.Bytes(in & ~there),
                     .least = 0,
                     .parent = index,
                     .op = static_cast<std::uint32_t>(op),
                     .kept = kept};
    if (options_.count_writes) {
      if (!RHIZOME_MUTANT("tensors leave memory unwritten"))
        child.cost += sets_.Bytes(node.state.dirty & ~kept & ~in & needed);
      child.state.dirty = (node.state.dirty | out) & child.state.resident;
    }
    const auto [known, is_new] =
        known_.try_emplace(child.state, static_cast<std::uint32_t>(next.size()));
    if (!is_new && next[known->second].cost <= child.cost) return;
    child.least = child.cost + sets_.Bytes(needed & ~child.state.resident & ~Unmade(done));
    if (is_new) {
      next.push_back(child);
    } else {
      next[known->second] = child;
    }
  }

  /// Returns the tensors that operators outside `done` write.
  Members Unmade(Members done) const {
    Members unmade = 0;
    for (std::size_t o = 0; o < sets_.ops(); ++o) {
      if ((done >> o & 1) == 0) unmade |= sets_.out(o);
    }
    return unmade;
  }

  void TraceBack() {
    const auto& last = layers_.back();
    const TensorNode* node = &*std::min_element(
        last.begin(), last.end(),
        [](const TensorNode& a, const TensorNode& b) { return a.cost < b.cost; });
    for (std::size_t step = sets_.ops(); step-- > 0;) {
      const TensorNode& before = layers_[step][node->parent];
      const Members in = sets_.in(node->op);
      const Members used = in | sets_.out(node->op);
      const Members dropped = before.state.resident & ~node->kept & ~used;
      const Members written = before.state.dirty & dropped & sets_.NeededAfter(before.state.done);
      const Members read = in & ~before.state.resident;
      plan_.read_bytes += sets_.Bytes(read);
      plan_.written_bytes += sets_.Bytes(written);
      plan_.steps.push_back({.op = node->op,
                             .dropped = ListOf(dropped),
                             .written = ListOf(written),
                             .read = ListOf(read),
                             .resident = ListOf(node->kept | used)});
      node = &before;
    }
    std::reverse(plan_.steps.begin(), plan_.steps.end());
  }

  const OpGraph& graph_;
  OpSets sets_;
  TensorPlanOptions options_;
  std::vector<std::vector<TensorNode>> layers_;
  std::unordered_map<TensorState, std::uint32_t, TensorStateHash> known_;
  TensorPlan plan_;
};

Status CheckOps(const OpGraph& graph, std::uint64_t capacity_bytes) {
  if (graph.tensors.size() > 64 || graph.ops.size() > 64) {
    return Status::InvalidArgument(fmt::format(
        "{} tensors and {} operators are too many: a plan by tensors has at most 64 of either",
        graph.tensors.size(), graph.ops.size()));
  }
  Members written = 0;
  for (const OpGraph::Op& op : graph.ops) {
    for (const auto* list : {&op.inputs, &op.outputs}) {
      if (std::any_of(list->begin(), list->end(),
                      [&](std::uint32_t t) { return t >= graph.tensors.size(); })) {
        return Status::InvalidArgument(op.name + " uses a tensor that is not listed");
      }
    }
    if ((SetOf(op.outputs) & (written | SetOf(op.inputs))) != 0)
      return Status::InvalidArgument(op.name + " writes a tensor that exists already");
    written |= SetOf(op.outputs);
  }
  Members there = 0;
  for (const OpGraph::Op& op : graph.ops) {
    if ((SetOf(op.inputs) & written & ~there) != 0)
      return Status::InvalidArgument(op.name + " reads a tensor that is written later");
    there |= SetOf(op.outputs);
    std::uint64_t bytes = op.memory_bytes;
    for (const std::uint32_t t : ListOf(SetOf(op.inputs) | SetOf(op.outputs)))
      bytes += graph.tensors[t].bytes;
    if (bytes > capacity_bytes) {
      return Status::OutOfMemory(
          fmt::format("{} needs {} bytes for its whole tensors, but {} are left", op.name, bytes,
                      capacity_bytes));
    }
  }
  return Status::Ok();
}

}  // namespace

Result<TensorPlan> PlanTensors(const OpGraph& graph, const TensorPlanOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckOps(graph, options.capacity_bytes));
  return TensorSearch(graph, options).Run();
}

std::uint64_t UncachedReads(const OpGraph& graph) {
  std::uint64_t bytes = 0;
  for (const OpGraph::Op& op : graph.ops) {
    for (const std::uint32_t t : op.inputs) bytes += graph.tensors[t].bytes;
  }
  return bytes;
}

std::uint64_t LruReads(const OpGraph& graph, std::uint64_t capacity_bytes, bool live) {
  std::vector<std::size_t> last_use(graph.tensors.size(), 0);
  for (std::size_t o = 0; o < graph.ops.size(); ++o) {
    for (const std::uint32_t t : graph.ops[o].inputs) last_use[t] = o;
  }
  std::uint64_t read = 0;
  std::uint64_t held = 0;
  std::vector<std::uint32_t> queue;  // least recently used first
  const auto take_out = [&](std::vector<std::uint32_t>::iterator at) {
    held -= graph.tensors[*at].bytes;
    return queue.erase(at);
  };
  for (std::size_t o = 0; o < graph.ops.size(); ++o) {
    const OpGraph::Op& op = graph.ops[o];
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const std::uint32_t t : *list) {
        const auto at = std::find(queue.begin(), queue.end(), t);
        if (at != queue.end()) {
          take_out(at);
        } else if (list == &op.inputs) {
          read += graph.tensors[t].bytes;
        }
        queue.push_back(t);
        held += graph.tensors[t].bytes;
      }
    }
    while (held > capacity_bytes) take_out(queue.begin());
    for (auto at = queue.begin(); live && at != queue.end();)
      at = last_use[*at] <= o ? take_out(at) : at + 1;
  }
  return read;
}

}  // namespace internal
}  // namespace rhizome
