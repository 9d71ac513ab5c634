#pragma once

#include <utility>

#include "rhizome/loader.h"
#include "rhizome/minibatch_options.h"
#include "rhizome/neighbor_sampling.h"
#include "rhizome/policy.h"
#include "rhizome/resource_options.h"
#include "storage/options/option.h"

// Tables (storage/options/option.h) of the options that training, inference and plans share. Each
// function calls visit(option, field of each struct...).

namespace rhizome {
inline namespace internal {

template <>
struct ChoiceNames<TopologyPlace> {
  static Choices<TopologyPlace> Names() {
    return {{"memory", TopologyPlace::kMemory}, {"direct", TopologyPlace::kDirect}};
  }
};
template <>
struct ChoiceNames<Direction> {
  static Choices<Direction> Names() {
    return {{"in", Direction::kIn}, {"out", Direction::kOut}, {"both", Direction::kBoth}};
  }
};
template <>
struct ChoiceNames<IoMaker> {
  static Choices<IoMaker> Names() {
    return {{"auto", IoMaker::kAuto},
            {"uring", IoMaker::kUring},
            {"pread", IoMaker::kPread},
            {"mmap", IoMaker::kMapped}};
  }
};
template <>
struct ChoiceNames<Prior> {
  static Choices<Prior> Names() { return {{"uses", Prior::kUses}, {"none", Prior::kNone}}; }
};
template <>
struct ChoiceNames<Overlap> {
  static Choices<Overlap> Names() {
    return {{"all", Overlap::kAll}, {"changeset", Overlap::kChangeset}, {"none", Overlap::kNone}};
  }
};

template <>
struct ChoiceNames<PolicyKind> {
  static Choices<PolicyKind> Names() {
    Choices<PolicyKind> names;
    for (const PolicyKind kind : AllPolicies()) names.emplace_back(PolicyName(kind), kind);
    return names;
  }
};
template <>
struct ChoiceNames<Prefetch> {
  static Choices<Prefetch> Names() {
    Choices<Prefetch> names;
    for (const Prefetch policy : AllPrefetches()) names.emplace_back(PrefetchName(policy), policy);
    return names;
  }
};

template <typename Visit, typename... Data>
void EachDataField(Visit&& visit, Data&... data) {
  // Front ends accept data.inputs, too.
  visit(Option{"data.features", "features",
               "Array of input features, or an array for each vertex type, such as "
               "paper=feat,author=other,venue=none; each type then has weights of its own; "
               "author=learned:64 learns rows of 64 numbers",
               Effect::kResolved}
            .As("NAME|TYPE=NAME,..."),
        data.features...);
  visit(Option{"data.labels", "labels", "Array of labels: classes as integers, or values",
               Effect::kResolved},
        data.labels...);
  visit(Option{"data.split", "split",
               "Array that assigns vertices to sets: 0 train, 1 valid, 2 test, 255 none",
               Effect::kResolved},
        data.split...);
  visit(Option{"data.edge_weights", "edge-weights",
               "Whether layers that sum or average use edge weights; auto: if the store has them",
               Effect::kResolved}
            .Absent("auto")
            .Words("ignore", "use"),
        data.edge_weights...);
  visit(Option{"data.topology", "topology",
               "Where adjacency lists are during the job: in memory, or read from disk in blocks"},
        data.topology...);
  EachSamplingField(visit, data.sampling...);
}

template <typename Visit, typename... Sampling>
void EachSamplingField(Visit&& visit, Sampling&... sampling) {
  constexpr Effect kEffect = Effect::kResolved;
  visit(Option{"data.sampling.direction", "direction",
               "Edges to follow: in-edges, out-edges, or both as one list; equal for an undirected "
               "store; auto: as in the model's training, which follows "
               "both for models with weights by edge type, else in-edges",
               kEffect}
            .Absent("auto"),
        sampling.direction...);
  visit(Option{"data.sampling.weighted", "weighted",
               "Sample neighbours in proportion to edge weights", kEffect},
        sampling.weighted...);
  visit(
      Option{"data.sampling.typed_fanouts", "typed-fanout",
             "Neighbours sampled along each edge type in each layer, instead of `fanouts`; default "
             "applies to types that are not named, which are not followed otherwise",
             kEffect}
          .As("TYPE:N,N,...;..."),
      sampling.typed_fanouts...);
  visit(Option{"data.sampling.meta_path", "meta-path",
               "Edge type that each layer follows, starting at the seeds", kEffect}
            .As("TYPE,TYPE,..."),
        sampling.meta_path...);
  visit(Option{"data.sampling.time_attribute", "time-attribute",
               "Edge attribute with times: edges later than the time of their seed are not sampled",
               kEffect}
            .As("ATTRIBUTE"),
        sampling.time_attribute...);
  visit(Option{"data.sampling.seed_times", "seed-times",
               "With `time_attribute`: array with the time of each vertex as a seed", kEffect},
        sampling.seed_times...);
}

template <typename Visit, typename... Resources>
void EachResourceField(Visit&& visit, Resources&... resources) {
  visit(Option{"resources.threads", "threads", "Number of threads", Effect::kRanks}.In(1, 1024),
        resources.threads...);
  visit(Option{"resources.memory_bytes", "memory",
               "Memory limit of the process beyond its size at start; default: none"}
            .As(kSize),
        resources.memory_bytes...);
  visit(
      Option{"resources.io", "io",
             "How rows, and lists with `topology=direct`, are read; mmap: from mapped files, as a "
             "baseline"},
      resources.io...);
}

template <typename Visit, typename... Feed>
void EachFeedField(Visit&& visit, Feed&... feed) {
  visit(Option{"minibatch.feed.cache", "cache", "Replacement policy of the feature cache"},
        feed.cache...);
  visit(Option{"minibatch.feed.cache_bytes", "cache-bytes",
               "Size of the feature cache; default: what `memory_bytes` leaves"}
            .As(kSize),
        feed.cache_bytes...);
  visit(Option{"minibatch.feed.neighbor_cache_bytes", "neighbor-cache",
               "With `topology=direct`: memory for the lists that are read most; 0: none; default: "
               "all lists if they fit into a quarter of `memory_bytes` and 256M, else none"}
            .As(kSize),
        feed.neighbor_cache_bytes...);
  visit(
      Option{"minibatch.feed.superbatch", "superbatch",
             "Number of minibatches that are sampled ahead and scheduled together", Effect::kRanks}
          .In(1, 4294967295.0)
          .Absent("auto"),
      feed.superbatch...);
  visit(Option{"minibatch.feed.overlap", "overlap",
               "Stages that overlap. all: sample a superbatch during training on the previous one; "
               "changeset: during its scheduling only, so that the caches of lists and of rows use "
               "the memory in turn; none: read each row when its step needs it"}
            .Absent("auto"),
        feed.overlap...);
  visit(Option{"minibatch.feed.prior", "prior",
               "With `cache=belady` or cost: value of rows that a superbatch does not request "
               "again; uses: by the number of requests so far"},
        feed.prior...);
}

template <typename Visit, typename... Prefetch>
void EachPrefetchField(Visit&& visit, Prefetch&... prefetch) {
  visit(Option{"ranks.prefetch.policy", "prefetch",
               "Over ranks: policy for rows of other ranks. belady: one schedule for all rows, by "
               "cost. The others manage a part of the pool, for comparison: scored (MassiveGNN), "
               "vip (SALIENT++), epoch (RapidGNN), static (highest degree), lru, none",
               Effect::kRanks},
        prefetch.policy...);
  visit(
      Option{"ranks.prefetch.remote_bytes", "remote-memory",
             "With `prefetch` other than belady: memory for rows of other ranks; default: half of "
             "the pool",
             Effect::kRanks}
          .As(kSize),
      prefetch.remote_bytes...);
  visit(Option{"ranks.prefetch.gamma", "gamma", "With `prefetch=scored`: decay of its scores",
               Effect::kRanks}
            .In(0, 1),
        prefetch.gamma...);
}

template <typename Visit, typename... Device>
void EachDeviceField(Visit&& visit, Device&... device) {
  visit(Option{"device.memory_bytes", "device-memory",
               "With `device=cuda`: device memory for cached feature rows; default: half of the "
               "free memory"}
            .As(kSize),
        device.memory_bytes...);
  visit(Option{"device.cache", "device-cache",
               "With `device=cuda`: replacement policy of the feature cache of the device"}
            .Only("belady|static|match|none"),
        device.cache...);
}

/// Without the options of ranks and device, which are optional groups.
template <typename Visit, typename... Minibatch>
void EachMinibatchField(Visit&& visit, Minibatch&... minibatch) {
  visit(Option{"minibatch.batch_size", "batch-size", "Training vertices per minibatch",
               Effect::kModel}
            .In(1, 1099511627776.0),
        minibatch.batch_size...);
  visit(Option{"minibatch.fanouts", "fanout",
               "Neighbours sampled in each layer, starting at the seeds; one number applies to all "
               "layers; default: 10",
               Effect::kModel}
            .As(kFanouts),
        minibatch.fanouts...);
  visit(Option{"minibatch.eval_fanouts", "eval-fanout",
               "Neighbours sampled in each layer for the validation set; default: as in training",
               Effect::kModel}
            .As(kFanouts),
        minibatch.eval_fanouts...);
  visit(Option{"minibatch.steps", "steps", "Maximum minibatches per epoch; default: all",
               Effect::kModel}
            .In(1, 1099511627776.0),
        minibatch.steps...);
  visit(Option{"minibatch.trace", "trace",
               "Write the times of all stages to this file, for chrome://tracing or Perfetto "
               "(JSON)"}
            .As("F"),
        minibatch.trace...);
  EachFeedField(visit, minibatch.feed...);
}

}  // namespace internal
}  // namespace rhizome
