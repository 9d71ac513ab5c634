#include "rhizome/policy.h"

#include <deque>
#include <set>
#include <string_view>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/trace_testing.h"
#include "testing/testing.h"

// Tests of cache policies by hand-made traces and by naive implementations (LRU, FIFO, CLOCK,
// S3-FIFO) on random traces, and of what they refuse.

namespace rhizome {
namespace {

using testing::FrameSimulator;
using testing::MakeTrace;
using testing::RandomTrace;

TEST(PolicyTest, NamesParseBackAndUnknownOnesDoNot) {
  std::set<std::string_view> names;
  for (const PolicyKind kind : AllPolicies()) {
    EXPECT_EQ(ParsePolicy(PolicyName(kind)), kind);
    EXPECT_TRUE(names.insert(PolicyName(kind)).second);
    EXPECT_NE(*MakePolicy({.kind = kind, .frame_count = 2, .key_count = 3}, Trace{}), nullptr);
  }
  EXPECT_EQ(names.size(), 9U);
  EXPECT_EQ(ParsePolicy("lru"), PolicyKind::kLru);
  EXPECT_EQ(ParsePolicy("LRU"), std::nullopt);
  EXPECT_EQ(ParsePolicy(""), std::nullopt);
}

TEST(PolicyTest, LruKeepsTheMostRecentlyUsedKeys) {
  auto policy = MakeLruPolicy(3, 5);
  // Key 0 is used again before 3 is, so 3 evicts 1; then 1 evicts 2, and 2 evicts 0.
  const Trace trace = MakeTrace({{0}, {1}, {2}, {0}, {3}, {0}, {1}, {2}});
  FrameSimulator frames(3);
  const ReplayCounts counts = frames.Play(*policy, trace);
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.misses, 6u);
  EXPECT_EQ(frames.Resident(), (std::set<CacheKey>{0, 1, 2}));
}

TEST(PolicyTest, FifoIgnoresUse) {
  auto policy = MakeFifoPolicy(3, 5);
  const Trace trace = MakeTrace({{0}, {1}, {2}, {0}, {3}, {0}, {1}, {2}});
  FrameSimulator frames(3);
  const ReplayCounts counts = frames.Play(*policy, trace);
  // Key 3 evicts 0 although 0 was just used; 0 evicts 1, 1 evicts 2, 2 evicts 3.
  EXPECT_EQ(counts.hits, 1u);
  EXPECT_EQ(counts.misses, 7u);
  EXPECT_EQ(frames.Resident(), (std::set<CacheKey>{0, 1, 2}));
}

TEST(PolicyTest, AStepIsJudgedAgainstThePoolAsItWas) {
  for (const auto& policy : {MakeLruPolicy(2, 4), MakeFifoPolicy(2, 4)}) {
    StepPlan plan;
    ASSERT_OK(policy->Step(std::vector<CacheKey>{0, 1}, plan));
    ASSERT_EQ(plan.inserts.size(), 2u);
    const FrameId frame_of_0 = plan.inserts[0].frame;
    // Key 2 is inserted before 0 is reached, but 0 is still a hit: hits are determined at the
    // beginning of the step.
    ASSERT_OK(policy->Step(std::vector<CacheKey>{2, 0}, plan));
    EXPECT_EQ(plan.hits, (std::vector<StepPlan::Place>{{1, frame_of_0}}));
    EXPECT_EQ(plan.misses, (std::vector<std::uint32_t>{0}));
    ASSERT_EQ(plan.inserts.size(), 1u);
    EXPECT_EQ(plan.inserts[0].request, 0u);
  }
}

TEST(PolicyTest, OfAStepLargerThanThePoolTheLastKeysStay) {
  const Trace trace = MakeTrace({{0, 1, 2, 3, 4}});
  for (const auto& policy : {MakeLruPolicy(2, 5), MakeFifoPolicy(2, 5)}) {
    FrameSimulator frames(2);
    EXPECT_EQ(frames.Play(*policy, trace).misses, 5u);
    EXPECT_EQ(frames.Resident(), (std::set<CacheKey>{3, 4}));
  }
}

TEST(PolicyTest, StaticKeepsTheFirstOfItsRankingAndPaysForThem) {
  const std::vector<CacheKey> ranking = {3, 3, 1, 0};
  auto policy = *MakeStaticPolicy(2, 5, ranking);
  const Trace trace = MakeTrace({{0, 1}, {3}, {1, 2}, {4}});
  FrameSimulator frames(2);
  const ReplayCounts counts = frames.Play(*policy, trace);
  EXPECT_EQ(counts.prefill, 2u);
  EXPECT_EQ(counts.hits, 3u);
  EXPECT_EQ(counts.misses, 3u);
  EXPECT_EQ(counts.reads(), 5u);
  EXPECT_EQ(frames.Resident(), (std::set<CacheKey>{1, 3}));
}

TEST(PolicyTest, NoneReadsEverything) {
  const Trace trace = MakeTrace({{0, 1}, {0, 1}, {}});
  auto policy = MakeNonePolicy();
  const ReplayCounts counts = FrameSimulator(0).Play(*policy, trace);
  EXPECT_EQ(counts.requests, 4u);
  EXPECT_EQ(counts.misses, 4u);
  EXPECT_EQ(counts.prefill, 0u);
}

TEST(PolicyTest, APoolWithoutFramesReadsEverything) {
  const Trace trace = MakeTrace({{0, 1}, {0}, {1, 0}});
  const std::vector<CacheKey> ranking = *RankByUse(trace, 2);
  std::vector<std::unique_ptr<Policy>> policies;
  policies.push_back(MakeLruPolicy(0, 2));
  policies.push_back(MakeFifoPolicy(0, 2));
  policies.push_back(*MakeStaticPolicy(0, 2, ranking));
  policies.push_back(*MakeBeladySchedule(trace, 0, 2));
  for (const auto& policy : policies) {
    const ReplayCounts counts = FrameSimulator(0).Play(*policy, trace);
    EXPECT_EQ(counts.reads(), 5u);
    EXPECT_EQ(counts.hits, 0u);
  }
}

TEST(PolicyTest, RankByUseOrdersByCountThenKey) {
  const Trace trace = MakeTrace({{4, 1, 2}, {2, 1}, {2, 5}});
  EXPECT_EQ(*RankByUse(trace, 7), (std::vector<CacheKey>{2, 1, 4, 5}));
  EXPECT_TRUE(RankByUse(Trace{}, 7)->empty());
  EXPECT_TRUE(RankByUse(Trace{}, 0)->empty());
}

/// Naive implementation of LRU and FIFO: a queue of keys, oldest first, through which the keys of a
/// step pass one after the other.
class NaiveQueue {
 public:
  NaiveQueue(std::size_t capacity, bool refresh) : capacity_(capacity), refresh_(refresh) {}

  /// Returns the number of hits, which are determined before anything moves.
  std::uint64_t Step(std::span<const CacheKey> keys) {
    std::vector<bool> hit;
    for (const CacheKey key : keys) hit.push_back(Find(key) != queue_.end());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (hit[i] && !refresh_) continue;
      if (const auto at = Find(keys[i]); at != queue_.end()) queue_.erase(at);
      queue_.push_back(keys[i]);
      if (queue_.size() > capacity_) queue_.pop_front();
    }
    return static_cast<std::uint64_t>(std::count(hit.begin(), hit.end(), true));
  }

  std::set<CacheKey> Resident() const { return {queue_.begin(), queue_.end()}; }

 private:
  std::deque<CacheKey>::iterator Find(CacheKey key) {
    return std::find(queue_.begin(), queue_.end(), key);
  }

  std::size_t capacity_;
  bool refresh_;
  std::deque<CacheKey> queue_;
};

TEST(PolicyTest, LruAndFifoEqualANaiveQueueOnRandomTraces) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t key_count = 1 + random() % 20;
    const std::uint32_t frame_count = static_cast<std::uint32_t>(random() % 8);
    const Trace trace = RandomTrace(random, 1 + random() % 30, key_count, 1 + random() % 12);
    for (const bool lru : {false, true}) {
      SCOPED_TRACE(lru ? "lru" : "fifo");
      auto policy =
          lru ? MakeLruPolicy(frame_count, key_count) : MakeFifoPolicy(frame_count, key_count);
      NaiveQueue naive(frame_count, lru);
      std::uint64_t hits = 0;
      for (std::size_t s = 0; s < trace.steps(); ++s) hits += naive.Step(trace.step(s));
      FrameSimulator frames(frame_count);
      EXPECT_EQ(frames.Play(*policy, trace).hits, hits);
      EXPECT_EQ(frames.Resident(), naive.Resident());
      if (HasFailure()) return;
    }
  }
}

/// Naive implementation of CLOCK and S3-FIFO, with queues that are searched.
class NaiveClock {
 public:
  explicit NaiveClock(std::size_t capacity) : capacity_(capacity) {}
  void Ask(CacheKey key) {
    for (auto& [there, used] : ring_)
      if (there == key) {
        used = true;
        return;
      }
    while (ring_.size() >= capacity_) {
      const auto [oldest, used] = ring_.front();
      ring_.pop_front();
      if (used) ring_.push_back({oldest, false});
    }
    ring_.push_back({key, false});
  }
  std::set<CacheKey> Resident() const {
    std::set<CacheKey> keys;
    for (const auto& [key, used] : ring_) keys.insert(key);
    return keys;
  }

 private:
  std::size_t capacity_;
  std::deque<std::pair<CacheKey, bool>> ring_;
};

class NaiveS3Fifo {
 public:
  explicit NaiveS3Fifo(std::size_t capacity)
      : capacity_(capacity),
        small_most_(std::max<std::size_t>(capacity / 10, 1)),
        main_most_(capacity - std::min(capacity, small_most_)) {}

  void Ask(CacheKey key) {
    for (Queue* queue : {&small_, &main_})
      for (auto& [there, uses] : *queue)
        if (there == key) {
          uses = std::min(uses + 1, 3);
          return;
        }
    while (small_.size() + main_.size() >= capacity_) {
      if (small_.size() >= small_most_ || main_.empty()) {
        EvictSmall();
      } else {
        EvictMain();
      }
    }
    const auto ghost = std::find(ghost_.begin(), ghost_.end(), key);
    if (ghost == ghost_.end()) {
      small_.push_back({key, 0});
      return;
    }
    *ghost = -1;  // its place in the queue remains
    main_.push_back({key, 0});
  }

  std::set<CacheKey> Resident() const {
    std::set<CacheKey> keys;
    for (const Queue* queue : {&small_, &main_})
      for (const auto& [key, uses] : *queue) keys.insert(key);
    return keys;
  }

 private:
  using Queue = std::deque<std::pair<CacheKey, int>>;
  void EvictSmall() {
    const auto [key, uses] = small_.front();
    small_.pop_front();
    if (uses > 1 && main_most_ > 0) {
      main_.push_back({key, 0});
      if (main_.size() > main_most_) EvictMain();
      return;
    }
    ghost_.push_back(key);
    if (ghost_.size() > main_most_) ghost_.pop_front();
  }
  void EvictMain() {
    while (main_.front().second > 0) {
      main_.push_back({main_.front().first, main_.front().second - 1});
      main_.pop_front();
    }
    main_.pop_front();
  }

  std::size_t capacity_, small_most_, main_most_;
  Queue small_, main_;
  std::deque<CacheKey> ghost_;
};

template <typename Naive>
void ExpectEqualsNaive(std::unique_ptr<Policy> (*make)(std::uint32_t, std::uint64_t)) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t key_count = 1 + random() % 60;
    const auto frame_count = static_cast<std::uint32_t>(1 + random() % 30);
    const Trace trace = RandomTrace(random, 1 + random() % 40, key_count, 1 + random() % 12);
    const auto policy = make(frame_count, key_count);
    Naive naive(frame_count);
    std::uint64_t hits = 0;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      const std::set<CacheKey> before = naive.Resident();
      for (const CacheKey key : trace.step(s)) hits += before.count(key);
      for (const CacheKey key : trace.step(s)) naive.Ask(key);
    }
    FrameSimulator frames(frame_count);
    EXPECT_EQ(frames.Play(*policy, trace).hits, hits);
    EXPECT_EQ(frames.Resident(), naive.Resident());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(PolicyTest, ClockEqualsANaiveOneOnRandomTraces) {
  ExpectEqualsNaive<NaiveClock>(&MakeClockPolicy);
}

TEST(PolicyTest, S3FifoEqualsANaiveOneOnRandomTraces) {
  ExpectEqualsNaive<NaiveS3Fifo>(&MakeS3FifoPolicy);
}

TEST(PolicyTest, MatchServesExactlyWhatTheStepBeforeAskedFor) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t key_count = 1 + random() % 40;
    const auto frame_count = static_cast<std::uint32_t>(random() % 15);
    const Trace trace = RandomTrace(random, 1 + random() % 20, key_count, 1 + random() % 20);
    const auto policy = MakeMatchPolicy(frame_count, key_count);
    std::vector<CacheKey> frames(frame_count, -1);
    std::span<const CacheKey> before;
    StepPlan plan;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      const std::span<const CacheKey> keys = trace.step(s);
      ASSERT_OK(policy->Step(keys, plan));
      std::vector<std::uint32_t> hits;
      for (const StepPlan::Place& hit : plan.hits) {
        EXPECT_EQ(frames[hit.frame], keys[hit.request]);
        hits.push_back(hit.request);
      }
      std::vector<std::uint32_t> expected_hits, expected_misses;
      for (std::uint32_t i = 0; i < keys.size(); ++i) {
        const bool held = std::find(before.begin(), before.end(), keys[i]) != before.end();
        (held ? expected_hits : expected_misses).push_back(i);
      }
      ASSERT_EQ(hits, expected_hits) << "step " << s;
      ASSERT_EQ(plan.misses, expected_misses) << "step " << s;
      for (const StepPlan::Place& insert : plan.inserts) {
        EXPECT_TRUE(std::count(plan.misses.begin(), plan.misses.end(), insert.request) == 1);
        frames[insert.frame] = keys[insert.request];
      }
      before = keys.first(std::min<std::size_t>(frame_count, keys.size()));
    }
  }
}

TEST(PolicyTest, AStepThatNoTraceHasIsRefusedAndChangesNothing) {
  const std::vector<std::vector<CacheKey>> bad = {{1, 1}, {1, 2, 1}, {0, -1}, {3, 4}, {2, 1, 0, 2}};
  const Trace good = MakeTrace({{2, 1, 0}, {3, 0}, {1}, {0, 3}});
  for (const PolicyKind kind : AllPolicies()) {
    if (kind == PolicyKind::kNone) continue;  // it does not check keys
    SCOPED_TRACE(PolicyName(kind));
    const PolicyOptions options{.kind = kind, .frame_count = 3, .key_count = 4, .cost = {}};
    const auto policy = *MakePolicy(options, good);
    const auto undisturbed = *MakePolicy(options, good);
    StepPlan plan;
    StepPlan wanted;
    for (std::size_t s = 0; s < good.steps(); ++s) {
      for (const std::vector<CacheKey>& keys : bad) {
        EXPECT_STATUS(policy->Step(keys, plan), kInvalidArgument);
      }
      ASSERT_OK(policy->Step(good.step(s), plan));
      ASSERT_OK(undisturbed->Step(good.step(s), wanted));
      EXPECT_EQ(plan.hits, wanted.hits);
      EXPECT_EQ(plan.misses, wanted.misses);
      EXPECT_EQ(plan.inserts, wanted.inserts);
    }
  }
}

TEST(PolicyTest, WhatIsNoTraceIsRefused) {
  std::vector<Trace> bad = {MakeTrace({{0, 4}}), MakeTrace({{-1}}), MakeTrace({{0, 1}})};
  bad[2].offsets = {0, 3};
  bad.push_back(MakeTrace({{0, 1}}));
  bad[3].offsets = {0, 2, 1, 2};
  bad.push_back(Trace{.keys = {}, .offsets = {}});
  bad.push_back(Trace{.keys = {0}, .offsets = {0}});
  for (const Trace& trace : bad) {
    EXPECT_STATUS(CheckTrace(trace, 4), kInvalidArgument);
    EXPECT_STATUS(RankByUse(trace, 4), kInvalidArgument);
    for (const PolicyKind kind : AllPolicies()) {
      if (!KnowsTheFuture(kind)) continue;
      const PolicyOptions options{.kind = kind, .frame_count = 2, .key_count = 4, .cost = {}};
      SCOPED_TRACE(PolicyName(kind));
      EXPECT_STATUS(MakePolicy(options, trace), kInvalidArgument);
    }
  }
  const PolicyOptions none_such{.kind = static_cast<PolicyKind>(99), .cost = {}};
  EXPECT_STATUS(MakePolicy(none_such, Trace{}), kInvalidArgument);
  EXPECT_STATUS(MakeStaticPolicy(2, 4, std::vector<CacheKey>{0, 4}), kInvalidArgument);
  EXPECT_STATUS(Replay(*MakeLruPolicy(2, 4), bad[0]), kInvalidArgument);
  EXPECT_STATUS(Replay(*MakeLruPolicy(2, 4), bad[2]), kInvalidArgument);
}

TEST(PolicyTest, TooManyKeysAreNoMemory) {
  const PolicyOptions options{
      .kind = PolicyKind::kLru, .frame_count = 2, .key_count = kAnyKey, .cost = {}};
  EXPECT_STATUS(MakePolicy(options, Trace{}), kOutOfMemory);
}

}  // namespace
}  // namespace rhizome
