#include "cuda/device_pool.h"

#include <memory>

#include "cache/policy/basic_policies.h"
#include "cuda/fake_device.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

// Tests of DevicePool, which keeps rows in frames of a device's memory: with every policy the
// delivered rows are right and uploads equal a replay's; failures of the device are reported
// without leaks; memory is predicted; wrong plans are refused.

namespace rhizome {
namespace {

using testing::FakeDevice;
using Random = std::mt19937_64;

constexpr std::uint32_t kKeys = 40;
constexpr std::uint32_t kMost = 16;  // max keys of a step
constexpr std::size_t kRowBytes = 20;

/// Returns a trace over kKeys keys; the first ones are used more often.
Trace RandomTrace(Random& random, std::size_t steps) {
  Trace trace;
  for (std::size_t s = 0; s < steps; ++s) {
    std::vector<CacheKey> keys(kKeys);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<CacheKey>(i);
    std::shuffle(keys.begin(), keys.end(), random);
    std::stable_partition(keys.begin(), keys.end(),
                          [&](CacheKey key) { return key < 10 && random() % 2 == 0; });
    keys.resize(random() % (kMost + 1));
    std::shuffle(keys.begin(), keys.end(), random);
    trace.AddStep(keys);
  }
  return trace;
}

/// The rows of all keys on the host.
struct HostRows {
  HostRows(Random& random) : bytes(kKeys * kRowBytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  }
  const std::byte* row(CacheKey key) const {
    return bytes.data() + static_cast<std::size_t>(key) * kRowBytes;
  }
  std::vector<std::byte> bytes;
};

/// Passes the rows of a trace through a pool, reads them back and compares. The device reads the
/// first `reached` host rows in place.
class PoolRun {
 public:
  PoolRun(FakeDevice& device, const HostRows& rows, const Trace& trace, Policy& policy,
          std::uint32_t frames, std::size_t reached)
      : device_(device), rows_(rows), trace_(trace), policy_(policy), reached_(reached) {
    options_ = {
        .frame_count = frames, .row_bytes = kRowBytes, .max_requests = kMost, .steps_in_flight = 2};
  }

  Status Run() {
    RHIZOME_ASSIGN_OR_RETURN(const auto pool, DevicePool::Create(device_, options_));
    RHIZOME_ASSIGN_OR_RETURN(void* const memory, device_.AllocatePinned(2 * kMost * kRowBytes));
    back_ = static_cast<std::byte*>(memory);
    const Result<DeviceStream> reader = device_.MakeStream();
    Status status = reader ? Status::Ok() : reader.error();
    if (status.ok() && reached_ > 0) {
      status = pool->Reach(std::span(rows_.bytes).first(reached_ * kRowBytes));
      // In this case all rows are packed.
      if (status.code() == StatusCode::kUnsupported) status = Status::Ok();
    }
    if (status.ok()) status = Steps(*pool, *reader);
    counts = pool->counts();
    if (reader) {
      static_cast<void>(device_.Drain(*reader));
      for (const DeviceEvent event : events_) device_.FreeEvent(event);
      device_.FreeStream(*reader);
    }
    device_.FreePinned(memory);
    return status;
  }
  DevicePoolCounts counts;

 private:
  Status Steps(DevicePool& pool, DeviceStream reader) {
    std::vector<const std::byte*> prefill;
    for (const auto& [key, frame] : policy_.Prefill()) prefill.push_back(rows_.row(key));
    RHIZOME_RETURN_IF_ERROR(pool.Prefill(policy_.Prefill(), prefill));
    StepPlan plan;
    for (std::size_t s = 0; s < trace_.steps(); ++s) {
      const auto keys = trace_.step(s);
      RHIZOME_RETURN_IF_ERROR(policy_.Step(keys, plan));
      std::vector<const std::byte*> missed;
      for (const std::uint32_t miss : plan.misses) missed.push_back(rows_.row(keys[miss]));
      RHIZOME_ASSIGN_OR_RETURN(const DevicePool::Rows rows,
                               pool.Step(plan, static_cast<std::uint32_t>(keys.size()), missed));
      RHIZOME_RETURN_IF_ERROR(Read(pool, reader, rows, s));
      if (s > 0) RHIZOME_RETURN_IF_ERROR(Compare(s - 1));
    }
    return trace_.steps() == 0 ? Status::Ok() : Compare(trace_.steps() - 1);
  }
  Status Read(DevicePool& pool, DeviceStream reader, const DevicePool::Rows& rows, std::size_t s) {
    RHIZOME_RETURN_IF_ERROR(device_.Wait(reader, rows.ready));
    if (!trace_.step(s).empty()) {
      RHIZOME_RETURN_IF_ERROR(
          device_.CopyToHost(reader, Back(s), rows.data, trace_.step(s).size() * kRowBytes));
    }
    RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent read, device_.Record(reader));
    events_.push_back(read);
    return pool.Release(rows, reader);
  }
  Status Compare(std::size_t s) {
    RHIZOME_RETURN_IF_ERROR(device_.Synchronize(events_[s]));
    for (std::size_t i = 0; i < trace_.step(s).size(); ++i) {
      EXPECT_EQ(std::memcmp(Back(s) + i * kRowBytes, rows_.row(trace_.step(s)[i]), kRowBytes), 0)
          << "step " << s << ", key " << trace_.step(s)[i];
    }
    return Status::Ok();
  }
  std::byte* Back(std::size_t s) const { return back_ + s % 2 * kMost * kRowBytes; }

  FakeDevice& device_;
  const HostRows& rows_;
  const Trace& trace_;
  Policy& policy_;
  const std::size_t reached_;
  DevicePoolOptions options_;
  std::byte* back_ = nullptr;
  std::vector<DeviceEvent> events_;
};

void ExpectNoFault(FakeDevice& device) {
  device.Finish();
  EXPECT_TRUE(device.faults().empty()) << device.faults().front();
}

TEST(DevicePoolTest, DeliversTheRowsOfEveryPolicyAndUploadsWhatAReplayCounts) {
  const std::uint64_t seed = testing::TestSeed();
  for (const PolicyKind kind : AllPolicies()) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      Random random(seed + i);
      const Trace trace = RandomTrace(random, 12);
      const HostRows rows(random);
      const auto frames = static_cast<std::uint32_t>(random() % 14);
      const PolicyOptions options{.kind = kind, .frame_count = frames, .key_count = kKeys};
      const auto policy = MakePolicy(options, trace);
      const auto counted = MakePolicy(options, trace);
      ASSERT_OK(policy);
      ASSERT_OK(counted);
      FakeDevice device(seed + i);
      device.may_register = random() % 4 > 0;
      const std::size_t reached = std::min<std::size_t>(random() % (2 * kKeys), kKeys);
      PoolRun run(device, rows, trace, **policy, frames, reached);
      ASSERT_OK(run.Run());
      ExpectNoFault(device);
      const auto replayed = Replay(**counted, trace);
      ASSERT_OK(replayed);
      EXPECT_EQ(run.counts.uploaded_rows, replayed->reads()) << PolicyName(kind);
      EXPECT_EQ(run.counts.hits, replayed->hits);
      EXPECT_EQ(run.counts.steps, trace.steps());
      EXPECT_EQ(run.counts.row_bytes, replayed->reads() * kRowBytes);
      EXPECT_EQ(device.uploaded_bytes(), run.counts.row_bytes + run.counts.index_bytes);
      if (!device.may_register || reached == 0) {
        EXPECT_EQ(run.counts.packed_rows, run.counts.uploaded_rows);
      } else if (reached == kKeys) {
        EXPECT_EQ(run.counts.packed_rows, 0U);
      }
    }
  }
}

// If any call of the device fails, the error is returned and no resource leaks.
TEST(DevicePoolTest, EveryCallOfTheDeviceMayFail) {
  const std::uint64_t seed = testing::TestSeed();
  std::uint64_t failed = 0;
  for (const std::size_t reached : {std::size_t{0}, std::size_t{kKeys / 2}}) {
    for (std::uint64_t call = 0;; ++call) {
      Random random(seed);
      const Trace trace = RandomTrace(random, 5);
      const HostRows rows(random);
      const auto policy =
          MakePolicy({.kind = PolicyKind::kBelady, .frame_count = 9, .key_count = kKeys}, trace);
      ASSERT_OK(policy);
      FakeDevice device(seed + call);
      device.fail_at = call;
      PoolRun run(device, rows, trace, **policy, 9, reached);
      const Status status = run.Run();
      const bool was_called = device.calls() > device.fail_at;
      if (!status.ok()) {
        EXPECT_NE(status.message().find("this call fails"), std::string::npos) << status.ToString();
        ++failed;
      }
      ExpectNoFault(device);
      if (!was_called) break;
    }
  }
  EXPECT_GT(failed, 60U);
}

// A reader may release rows without having waited for them.
TEST(DevicePoolTest, RowsThatNobodyReadMayBeGivenBack) {
  const std::uint64_t seed = testing::TestSeed();
  for (std::uint64_t i = 0; i < 30; ++i) {
    FakeDevice device(seed + i);
    const DeviceStream reader = *device.MakeStream();
    const std::vector<std::byte> row(4);
    {
      const auto pool =
          DevicePool::Create(device, {.frame_count = 4, .row_bytes = 4, .max_requests = 4});
      ASSERT_OK(pool);
      StepPlan plan;
      plan.misses = {0};
      plan.inserts = {{0, 3}};
      for (int step = 0; step < 6; ++step) {
        const auto rows = (*pool)->Step(plan, 1, std::vector{row.data()});
        ASSERT_OK(rows);
        ASSERT_OK((*pool)->Release(*rows, reader));
      }
    }
    ASSERT_OK(device.Drain(reader));
    device.FreeStream(reader);
    ExpectNoFault(device);
  }
}

TEST(DevicePoolTest, RefusesPlansAndSizesThatDoNotFit) {
  FakeDevice device(testing::TestSeed());
  EXPECT_STATUS(DevicePool::Create(device, {.frame_count = 4, .row_bytes = 0, .max_requests = 4}),
                kInvalidArgument);
  {
    const auto pool =
        DevicePool::Create(device, {.frame_count = 4, .row_bytes = 4, .max_requests = 4});
    ASSERT_OK(pool);
    const std::vector<std::byte> row(4);
    StepPlan plan;
    plan.misses = {0};
    EXPECT_STATUS((*pool)->Step(plan, 1, {}), kInvalidArgument);
    EXPECT_STATUS((*pool)->Step(plan, 5, std::vector{row.data()}), kInvalidArgument);
    // The kernel detects a frame that does not exist; the error is returned when its buffers are
    // used again.
    plan.inserts = {{0, 4}};
    for (int i = 0; i < 2; ++i) {
      const auto rows = (*pool)->Step(plan, 1, std::vector{row.data()});
      ASSERT_OK(rows);
      ASSERT_OK((*pool)->Release(*rows, 0));
    }
    EXPECT_STATUS((*pool)->Step(plan, 1, std::vector{row.data()}), kInvalidArgument);
  }
  {
    const auto pool =
        DevicePool::Create(device, {.frame_count = 4, .row_bytes = 4, .max_requests = 4});
    ASSERT_OK(pool);
    for (int i = 0; i < 2; ++i) ASSERT_OK((*pool)->Step({}, 0, {}));
    EXPECT_STATUS((*pool)->Step({}, 0, {}), kInvalidArgument);  // both steps are still held
  }
  ExpectNoFault(device);
}

TEST(DevicePoolTest, SaysBeforehandWhatItTakes) {
  FakeDevice device(testing::TestSeed());
  const DevicePoolOptions options{
      .frame_count = 7, .row_bytes = 12, .max_requests = 5, .steps_in_flight = 3};
  EXPECT_EQ(DevicePool::DeviceBytes(options, true), 7U * 12 + 3 * (2 * 60 + 21 * 8));
  EXPECT_EQ(DevicePool::PinnedBytes(options, true), 3U * (60 + 21 * 8 + 4));
  const auto pool = DevicePool::Create(device, options);
  ASSERT_OK(pool);
  const auto expect_bytes = [&](bool packs) {
    EXPECT_EQ(device.allocated_bytes(), DevicePool::DeviceBytes(options, packs));
    EXPECT_EQ((*pool)->pinned_bytes(), DevicePool::PinnedBytes(options, packs));
  };
  expect_bytes(false);
  const std::vector<std::byte> rows(24);
  StepPlan plan;
  plan.misses = {0};
  const auto step = [&](std::size_t row) {
    const auto taken = (*pool)->Step(plan, 1, std::vector{rows.data() + row * 12});
    ASSERT_OK(taken);
    ASSERT_OK((*pool)->Release(*taken, 0));
  };
  ASSERT_OK((*pool)->Reach(std::span(rows).first(12)));
  for (int i = 0; i < 3; ++i) step(0);
  expect_bytes(false);
  for (int i = 0; i < 3; ++i) step(1);
  expect_bytes(true);
  (*pool)->Leave();
}

// Rows that the device reads in place are read late. They must not change before the `read` event;
// otherwise other bytes are read, or the device reports the change.
TEST(DevicePoolTest, RowsStayUntilTheyAreRead) {
  const std::uint64_t seed = testing::TestSeed();
  for (std::uint64_t i = 0; i < 40; ++i) {
    const bool waits = i % 2 == 0;
    FakeDevice device(seed + i);
    const DeviceStream reader = *device.MakeStream();
    auto* const back = static_cast<std::byte*>(*device.AllocatePinned(4));
    std::vector<std::byte> row(4, std::byte{1});
    {
      const auto pool = DevicePool::Create(device, {.row_bytes = 4, .max_requests = 1});
      ASSERT_OK(pool);
      ASSERT_OK((*pool)->Reach(row));
      StepPlan plan;
      plan.misses = {0};
      const auto rows = (*pool)->Step(plan, 1, std::vector{row.data()});
      ASSERT_OK(rows);
      if (waits) {
        ASSERT_OK(device.Synchronize(rows->read));
      }
      std::fill(row.begin(), row.end(), std::byte{2});
      ASSERT_OK(device.Wait(reader, rows->ready));
      ASSERT_OK(device.CopyToHost(reader, back, rows->data, 4));
      ASSERT_OK(device.Drain(reader));
      ASSERT_OK((*pool)->Release(*rows, reader));
    }
    ASSERT_OK(device.Drain(reader));
    device.FreeStream(reader);
    const bool is_another = *back == std::byte{2};
    device.FreePinned(back);
    device.Finish();
    EXPECT_EQ(is_another || !device.faults().empty(), !waits);
  }
}

}  // namespace
}  // namespace rhizome
