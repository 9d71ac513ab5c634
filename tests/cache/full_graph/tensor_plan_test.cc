#include "cache/full_graph/tensor_plan.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "testing/sanitizer.h"
#include "testing/testing.h"

// Tests of plans for single tensors against a plain recursion over all orders and kept sets,
// against the published algorithm (as printed), and for limits on the number of states.

namespace rhizome {
namespace {

constexpr std::uint64_t kNoOrder = std::numeric_limits<std::uint64_t>::max();

/// Returns random operators that read tensors of earlier operators and of the slow tier.
OpGraph RandomOps(std::mt19937_64& random, std::size_t max_ops) {
  OpGraph graph;
  const auto add_tensor = [&] {
    graph.tensors.push_back({.name = "t", .bytes = 1 + random() % 9});
    return static_cast<std::uint32_t>(graph.tensors.size() - 1);
  };
  for (std::uint64_t i = 1 + random() % 2; i > 0; --i) add_tensor();
  for (std::size_t o = 3 + random() % (max_ops - 2); o > 0; --o) {
    OpGraph::Op op{.name = "op", .inputs = {}, .outputs = {}, .memory_bytes = random() % 3};
    std::set<std::uint32_t> inputs;
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i)
      inputs.insert(static_cast<std::uint32_t>(random() % graph.tensors.size()));
    op.inputs.assign(inputs.begin(), inputs.end());
    for (std::uint64_t i = 1 + random() % 5 / 4; i > 0; --i) op.outputs.push_back(add_tensor());
    graph.ops.push_back(std::move(op));
  }
  return graph;
}

std::uint64_t LeastMemory(const OpGraph& graph) {
  std::uint64_t least = 0;
  for (const OpGraph::Op& op : graph.ops) {
    std::uint64_t bytes = op.memory_bytes;
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const std::uint32_t t : *list) bytes += graph.tensors[t].bytes;
    }
    least = std::max(least, bytes);
  }
  return least;
}

/// Returns the minimum bytes, by plain recursion over all orders and all sets that may be kept.
class PlainRecursion {
 public:
  PlainRecursion(const OpGraph& graph, const TensorPlanOptions& options)
      : graph_(graph), options_(options) {}

  std::uint64_t Cost(std::vector<bool> done, std::set<std::uint32_t> resident,
                     std::set<std::uint32_t> dirty) const {
    std::uint64_t best = kNoOrder;
    bool any = false;
    for (std::size_t o = 0; o < graph_.ops.size(); ++o) {
      if (done[o]) continue;
      any = true;
      if (CanRun(o, done)) best = std::min(best, Run(o, done, resident, dirty));
      if (!options_.free_order) break;
    }
    return any ? best : 0;
  }

 private:
  bool CanRun(std::size_t op, const std::vector<bool>& done) const {
    for (std::size_t o = 0; o < graph_.ops.size(); ++o) {
      for (const std::uint32_t t : graph_.ops[o].outputs) {
        const auto& in = graph_.ops[op].inputs;
        if (!done[o] && std::find(in.begin(), in.end(), t) != in.end()) return false;
      }
    }
    return true;
  }

  bool Needed(std::uint32_t tensor, const std::vector<bool>& done) const {
    for (std::size_t o = 0; o < graph_.ops.size(); ++o) {
      const auto& in = graph_.ops[o].inputs;
      if (!done[o] && std::find(in.begin(), in.end(), tensor) != in.end()) return true;
    }
    return false;
  }

  std::uint64_t Run(std::size_t op, std::vector<bool> done, const std::set<std::uint32_t>& resident,
                    const std::set<std::uint32_t>& dirty) const {
    const std::vector<std::uint32_t> held(resident.begin(), resident.end());
    std::uint64_t best = kNoOrder;
    for (std::uint64_t kept = 0; kept < std::uint64_t{1} << held.size(); ++kept) {
      std::uint64_t moved = 0;
      std::set<std::uint32_t> now;
      std::set<std::uint32_t> now_dirty;
      for (std::size_t i = 0; i < held.size(); ++i) {
        const bool is_dirty = options_.count_writes && dirty.count(held[i]) != 0;
        if ((kept >> i & 1) != 0) {
          now.insert(held[i]);
          if (is_dirty) now_dirty.insert(held[i]);
        } else if (is_dirty && Needed(held[i], done)) {
          moved += graph_.tensors[held[i]].bytes;
        }
      }
      for (const std::uint32_t t : graph_.ops[op].inputs) {
        if (now.insert(t).second) moved += graph_.tensors[t].bytes;
      }
      for (const std::uint32_t t : graph_.ops[op].outputs) {
        now.insert(t);
        now_dirty.insert(t);
      }
      std::uint64_t bytes = graph_.ops[op].memory_bytes;
      for (const std::uint32_t t : now) bytes += graph_.tensors[t].bytes;
      if (bytes > options_.capacity_bytes) continue;
      std::vector<bool> after = done;
      after[op] = true;
      for (const auto& list : {held, graph_.ops[op].inputs, graph_.ops[op].outputs}) {
        for (const std::uint32_t t : list) {
          if (Needed(t, after)) continue;
          now.erase(t);
          now_dirty.erase(t);
        }
      }
      const std::uint64_t rest = Cost(after, now, now_dirty);
      if (rest != kNoOrder) best = std::min(best, moved + rest);
    }
    return best;
  }

  const OpGraph& graph_;
  TensorPlanOptions options_;
};

/// Runs a plan step by step: every input is in memory or in the slow tier when it is needed.
void Replay(const OpGraph& graph, const TensorPlan& plan, const TensorPlanOptions& options) {
  std::set<std::uint32_t> slow;
  std::set<std::uint32_t> fast;
  for (std::uint32_t t = 0; t < graph.tensors.size(); ++t) slow.insert(t);
  for (const OpGraph::Op& op : graph.ops) {
    for (const std::uint32_t t : op.outputs) slow.erase(t);
  }
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  for (const TensorStep& step : plan.steps) {
    for (const std::uint32_t t : step.written) {
      ASSERT_EQ(fast.count(t), 1u);
      ASSERT_TRUE(slow.insert(t).second) << "a tensor is written twice";
      written += graph.tensors[t].bytes;
    }
    for (const std::uint32_t t : step.dropped) ASSERT_EQ(fast.erase(t), 1u);
    for (const std::uint32_t t : step.read) {
      ASSERT_TRUE(slow.count(t) == 1 || !options.count_writes);
      ASSERT_TRUE(fast.insert(t).second);
      read += graph.tensors[t].bytes;
    }
    const OpGraph::Op& op = graph.ops[step.op];
    for (const std::uint32_t t : op.inputs) ASSERT_EQ(fast.count(t), 1u);
    for (const std::uint32_t t : op.outputs) ASSERT_TRUE(fast.insert(t).second);
    std::uint64_t bytes = op.memory_bytes;
    for (const std::uint32_t t : step.resident) bytes += graph.tensors[t].bytes;
    ASSERT_LE(bytes, options.capacity_bytes);
    const std::set<std::uint32_t> resident(step.resident.begin(), step.resident.end());
    // Tensors without a later use are listed neither as dropped nor as resident.
    for (auto t = fast.begin(); t != fast.end();)
      t = resident.count(*t) ? std::next(t) : fast.erase(t);
    ASSERT_EQ(fast, resident);
  }
  EXPECT_EQ(read, plan.read_bytes);
  EXPECT_EQ(written, plan.written_bytes);
}

TEST(TensorPlanTest, EqualsPlainRecursionOnRandomGraphs) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < (testing::kSanitized ? 500 : 10'000); ++round) {
    const bool free_order = random() % 4 == 0;
    const OpGraph graph = RandomOps(random, free_order ? 4 : 5);
    const TensorPlanOptions options{.capacity_bytes = LeastMemory(graph) + random() % 12,
                                    .free_order = free_order,
                                    .count_writes = random() % 3 != 0};
    const Result<TensorPlan> plan = PlanTensors(graph, options);
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(plan->optimal);
    const std::vector<bool> none(graph.ops.size(), false);
    ASSERT_EQ(plan->read_bytes + plan->written_bytes,
              PlainRecursion(graph, options).Cost(none, {}, {}))
        << "round " << round;
    Replay(graph, *plan, options);
    if (HasFatalFailure()) return;
  }
}

/// COST(S, T) of Algorithm 1 exactly as printed; the tensors of the slow tier are A(∅).
class Printed {
 public:
  Printed(const OpGraph& graph, std::uint64_t capacity) : graph_(graph), capacity_(capacity) {}

  std::uint64_t Cost(std::size_t ops, const std::set<std::uint32_t>& cached) const {
    if (ops == 0) return Size(cached);
    const OpGraph::Op& op = graph_.ops[ops - 1];
    std::set<std::uint32_t> before = cached;
    for (const std::uint32_t t : op.outputs) before.erase(t);
    for (auto t = before.begin(); t != before.end();)
      t = Active(*t, ops - 1) ? std::next(t) : before.erase(t);
    std::set<std::uint32_t> all = cached;
    std::set<std::uint32_t> missing;
    for (const std::uint32_t t : op.inputs) {
      all.insert(t);
      if (before.count(t) == 0) missing.insert(t);
    }
    all.insert(op.outputs.begin(), op.outputs.end());
    if (Size(all) > capacity_) return kNoOrder;
    const std::uint64_t rest = Cost(ops - 1, before);
    return rest == kNoOrder ? kNoOrder : rest + Size(missing);
  }

 private:
  std::uint64_t Size(const std::set<std::uint32_t>& tensors) const {
    std::uint64_t bytes = 0;
    for (const std::uint32_t t : tensors) bytes += graph_.tensors[t].bytes;
    return bytes;
  }

  /// Returns whether an operator from `done` on reads the tensor.
  bool Active(std::uint32_t tensor, std::size_t done) const {
    for (std::size_t o = 0; o < graph_.ops.size(); ++o) {
      const auto& list = o < done ? graph_.ops[o].outputs : graph_.ops[o].inputs;
      const bool has = std::find(list.begin(), list.end(), tensor) != list.end();
      if (o >= done && has) return true;
    }
    return false;
  }

  const OpGraph& graph_;
  std::uint64_t capacity_;
};

TEST(TensorPlanTest, TheAlgorithmAsPrintedChargesACachedLastUse) {
  // x -> a -> b with enough memory: only x has to be read. But line 14 as printed removes a, which
  // no operator after the second reads, from the tensors that the first operator left in memory.
  const OpGraph graph{.tensors = {{"x", 5}, {"a", 3}, {"b", 2}},
                      .ops = {{"first", {0}, {1}}, {"second", {1}, {2}}}};
  EXPECT_EQ(Printed(graph, 100).Cost(2, {}), 5u + 3u);
  const Result<TensorPlan> plan =
      PlanTensors(graph, {.capacity_bytes = 100, .count_writes = false});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->read_bytes, 5u);
}

TEST(TensorPlanTest, TheAlgorithmAsPrintedIsNeverCheaperAndMostlyDearer) {
  std::mt19937_64 random(testing::TestSeed());
  int dearer = 0;
  for (int round = 0; round < 400; ++round) {
    const OpGraph graph = RandomOps(random, 5);
    const std::uint64_t capacity = LeastMemory(graph) + random() % 12;
    const std::uint64_t printed = Printed(graph, capacity).Cost(graph.ops.size(), {});
    const Result<TensorPlan> plan =
        PlanTensors(graph, {.capacity_bytes = capacity, .count_writes = false});
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_GE(printed, plan->read_bytes);
    dearer += printed > plan->read_bytes ? 1 : 0;
  }
  EXPECT_GT(dearer, 200);
}

TEST(TensorPlanTest, CutStatesGiveABoundThatIsAPlan) {
  std::mt19937_64 random(testing::TestSeed());
  int cut = 0;
  for (int round = 0; round < 300; ++round) {
    const OpGraph graph = RandomOps(random, 9);
    TensorPlanOptions options{.capacity_bytes = LeastMemory(graph) + random() % 12};
    const Result<TensorPlan> exact = PlanTensors(graph, options);
    options.max_states = 1;
    const Result<TensorPlan> narrow = PlanTensors(graph, options);
    ASSERT_TRUE(exact && narrow);
    EXPECT_GE(narrow->read_bytes + narrow->written_bytes, exact->read_bytes + exact->written_bytes);
    if (narrow->optimal) {
      EXPECT_EQ(narrow->read_bytes + narrow->written_bytes,
                exact->read_bytes + exact->written_bytes);
    }
    cut += narrow->optimal ? 0 : 1;
    Replay(graph, *narrow, options);
  }
  EXPECT_GT(cut, 0);
}

TEST(TensorPlanTest, LruReadsWhatAQueueOfTensorsMisses) {
  const OpGraph graph{.tensors = {{"x", 4}, {"a", 4}, {"b", 4}, {"c", 4}, {"d", 4}},
                      .ops = {{"1", {0}, {1}}, {"2", {1}, {2}}, {"3", {2}, {3}}, {"4", {0}, {4}}}};
  EXPECT_EQ(UncachedReads(graph), 4u * 4);
  EXPECT_EQ(LruReads(graph, 12, false), 4u + 4);  // c evicts x
  EXPECT_EQ(LruReads(graph, 12, true), 4u);       // a was dropped earlier
  EXPECT_EQ(LruReads(graph, 16, false), 4u);
}

TEST(TensorPlanTest, RefusesWhatCannotBePlanned) {
  OpGraph graph{.tensors = {{"x", 5}, {"a", 3}}, .ops = {{"first", {0}, {1}}}};
  const Result<TensorPlan> small = PlanTensors(graph, {.capacity_bytes = 7});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(small.error().message(), "first needs 8 bytes for its whole tensors, but 7 are left");
  graph.ops.push_back({"second", {0}, {1}});
  EXPECT_EQ(PlanTensors(graph, {.capacity_bytes = 70}).error().code(),
            StatusCode::kInvalidArgument);
  graph.ops[1] = {"second", {7}, {}};
  EXPECT_EQ(PlanTensors(graph, {.capacity_bytes = 70}).error().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
