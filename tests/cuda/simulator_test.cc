#include "cuda/simulator.h"

#include <set>

#include "cuda/launch.h"
#include "testing/testing.h"

// Tests of the simulator: it detects the mistakes in small faulty kernels, and none in correct
// ones.

namespace rhizome {
namespace {

using cuda::kAllLanes;
using cuda::Mem;
using cuda::SyncBlock;
using cuda::ThreadIndex;
using simulator::Fault;
using simulator::Machine;

/// Runs `kernel` on two blocks of 64 threads in 60 schedules. Returns how many schedules show
/// `fault`. Other faults fail the test.
template <typename Kernel>
int SchedulesWith(Fault fault, const Kernel& kernel) {
  const std::uint64_t seed = testing::TestSeed();
  int shown = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    Machine machine(seed + i);
    const Mem<std::uint32_t> numbers = simulator::Allocate<std::uint32_t>("numbers", 128);
    const Mem<std::uint32_t> zeros = simulator::Upload("zeros", std::vector<std::uint32_t>(128, 0));
    machine.Run(2, 64, [=] { kernel(numbers, zeros); });
    shown += machine.Count(fault) > 0 ? 1 : 0;
    for (const simulator::Finding& finding : machine.findings()) {
      EXPECT_EQ(finding.fault, fault) << finding.text;
    }
  }
  return shown;
}

using Numbers = const Mem<std::uint32_t>&;

TEST(SimulatorTest, FindsNothingWhereBarriersOrderEverything) {
  EXPECT_EQ(SchedulesWith(Fault::kRace,
                          [](Numbers numbers, Numbers) {
                            RZ_SHARED(std::uint32_t, mine, 64);
                            const unsigned base = cuda::BlockIndex() * 64;
                            mine[ThreadIndex()] = ThreadIndex();
                            SyncBlock();
                            const std::uint32_t other = mine[63 - ThreadIndex()];
                            SyncBlock();
                            mine[ThreadIndex()] = other;
                            SyncBlock();
                            numbers[base + ThreadIndex()] = mine[ThreadIndex() ^ 1];
                          }),
            0);
}

TEST(SimulatorTest, FindsRacesInABlockBetweenBlocksAndWithAtomics) {
  EXPECT_EQ(SchedulesWith(Fault::kRace,
                          [](Numbers, Numbers zeros) {
                            zeros[(ThreadIndex() + 1) % 64 + cuda::BlockIndex() * 64] = 5;
                            const std::uint32_t seen =
                                zeros[ThreadIndex() + cuda::BlockIndex() * 64];
                            static_cast<void>(seen);
                          }),
            60);
  EXPECT_EQ(SchedulesWith(Fault::kRace,
                          [](Numbers, Numbers zeros) {
                            SyncBlock();
                            if (ThreadIndex() == 0) zeros[0] = 1 + cuda::BlockIndex();
                            SyncBlock();
                          }),
            60);
  EXPECT_EQ(SchedulesWith(Fault::kRace,
                          [](Numbers, Numbers zeros) {
                            if (ThreadIndex() == 40) {
                              zeros[0] = 7000 * (1 + cuda::BlockIndex());
                            } else {
                              cuda::AtomicAdd(zeros + 0, 1);
                            }
                          }),
            60);
  EXPECT_EQ(SchedulesWith(Fault::kRace,
                          [](Numbers, Numbers zeros) {
                            cuda::AtomicAdd(zeros + 0, 1);
                            cuda::AtomicLoad(zeros + 0);
                          }),
            0);
}

TEST(SimulatorTest, ListsRacesOfOneValueApart) {
  EXPECT_EQ(SchedulesWith(Fault::kSameValueRace, [](Numbers, Numbers zeros) { zeros[3] = 0; }), 60);
}

TEST(SimulatorTest, OrdersTheLanesOfASyncWarpAndNoOthers) {
  const auto swap = [](unsigned mask) {
    return [mask](Numbers, Numbers zeros) {
      const unsigned at = cuda::BlockIndex() * 64 + ThreadIndex();
      zeros[at] = at;
      if ((mask >> cuda::Lane() & 1U) != 0) cuda::SyncWarp(mask);
      const std::uint32_t other = zeros[at ^ 1];
      static_cast<void>(other);
    };
  };
  EXPECT_EQ(SchedulesWith(Fault::kRace, swap(kAllLanes)), 0);
  EXPECT_EQ(SchedulesWith(Fault::kRace, swap(0xFFFFFFFCU)), 60);
  // A shuffle does not order memory accesses.
  EXPECT_GT(SchedulesWith(Fault::kRace,
                          [](Numbers, Numbers zeros) {
                            const unsigned at = cuda::BlockIndex() * 64 + ThreadIndex();
                            zeros[at] = at;
                            cuda::Shuffle(kAllLanes, at, 0);
                            const std::uint32_t other = zeros[at ^ 1];
                            static_cast<void>(other);
                          }),
            50);
}

TEST(SimulatorTest, GivesWarpsTheirResults) {
  Machine machine(testing::TestSeed());
  const Mem<std::uint32_t> sums = simulator::Allocate<std::uint32_t>("sums", 128);
  machine.Run(2, 64, [=] {
    std::uint32_t sum = ThreadIndex();
    for (unsigned step = 16; step > 0; step /= 2) {
      sum += cuda::Shuffle(kAllLanes, sum, cuda::Lane() ^ step);
    }
    const unsigned odd = cuda::Ballot(kAllLanes, ThreadIndex() % 2 == 1);
    sums[cuda::GridThread()] = odd == 0xAAAAAAAAU ? sum : 0;
  });
  EXPECT_TRUE(machine.findings().empty()) << machine.Describe();
  const std::vector<std::uint32_t> found = simulator::Download(sums);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i % 64 < 32 ? 496U : 1520U);
}

TEST(SimulatorTest, FindsBarriersThatNotAllReach) {
  EXPECT_EQ(SchedulesWith(Fault::kBarrier,
                          [](Numbers, Numbers) {
                            if (ThreadIndex() < 50) SyncBlock();
                          }),
            60);
  const auto two_barriers = [](Numbers, Numbers) {
    if (ThreadIndex() < 50) {
      SyncBlock();
    } else {
      SyncBlock();
    }
  };
  EXPECT_EQ(SchedulesWith(Fault::kBarrier, two_barriers), 60);
}

TEST(SimulatorTest, FindsLanesThatNeverMeet) {
  EXPECT_EQ(SchedulesWith(Fault::kWarp,
                          [](Numbers, Numbers) {
                            if (cuda::Lane() < 20) cuda::SyncWarp(kAllLanes);
                          }),
            60);
  EXPECT_EQ(SchedulesWith(Fault::kWarp,
                          [](Numbers, Numbers) {
                            if (cuda::Lane() < 20) cuda::Shuffle(0xFFFU, 1U, 3);
                          }),
            60);
}

TEST(SimulatorTest, FindsAccessesBeyondTheEndUnalignedOrOfNothing) {
  EXPECT_EQ(SchedulesWith(Fault::kBounds,
                          [](Numbers numbers, Numbers) { numbers[cuda::GridThread() + 1] = 1; }),
            60);
  EXPECT_EQ(SchedulesWith(Fault::kAlignment,
                          [](Numbers, Numbers zeros) {
                            if (cuda::GridThread() != 0) return;
                            const cuda::Word16 word = cuda::Cast<cuda::Word16>(zeros + 1)[0];
                            static_cast<void>(word);
                          }),
            60);
  const auto reads = [](Numbers numbers, Numbers) {
    const std::uint32_t value = numbers[cuda::GridThread()];
    static_cast<void>(value);
  };
  EXPECT_EQ(SchedulesWith(Fault::kUninitialized, reads), 60);
  EXPECT_EQ(SchedulesWith(Fault::kUninitialized,
                          [](Numbers, Numbers) {
                            RZ_SHARED(float, sums, 64);
                            const float sum = sums[ThreadIndex()];
                            static_cast<void>(sum);
                          }),
            60);
}

TEST(SimulatorTest, EndsLaunchesThatDoNotEnd) {
  Machine machine(testing::TestSeed());
  const Mem<std::uint32_t> zeros = simulator::Upload("zeros", std::vector<std::uint32_t>(1, 0));
  machine.Run(1, 2, [=] {
    while (cuda::AtomicLoad(zeros + 0) == 0) {
    }
  });
  EXPECT_EQ(machine.Count(Fault::kEndless), 1U);
  machine.Run(1, 2048, [] {});
  EXPECT_EQ(machine.Count(Fault::kLaunch), 1U);
}

TEST(SimulatorTest, TakesManyOrdersAndTheSameOneForASeed) {
  const auto order = [](std::uint64_t seed) {
    Machine machine(seed);
    const Mem<std::uint32_t> next = simulator::Upload("next", std::vector<std::uint32_t>(1, 0));
    const Mem<std::uint32_t> taken = simulator::Allocate<std::uint32_t>("taken", 128);
    machine.Run(2, 64, [=] { taken[cuda::GridThread()] = cuda::AtomicAdd(next + 0, 1); });
    return simulator::Download(taken);
  };
  const std::uint64_t seed = testing::TestSeed();
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t i = 0; i < 60; ++i) orders.insert(order(seed + i));
  EXPECT_GT(orders.size(), 30U);
  EXPECT_EQ(order(seed), order(seed));
}

}  // namespace
}  // namespace rhizome
