#include "cuda/device.h"

#include "cuda/fake_device.h"
#include "testing/testing.h"

// Tests of FakeDevice: it detects the mistakes that are errors on a real device. If there is a real
// device, it does the same work.

namespace rhizome {
namespace {

using testing::FakeDevice;

/// Memory and two streams of a device.
struct TwoStreams {
  explicit TwoStreams(Device& device)
      : device(device),
        host(static_cast<std::byte*>(*device.AllocatePinned(64))),
        back(static_cast<std::byte*>(*device.AllocatePinned(64))),
        memory(*device.Allocate(64)),
        first(*device.MakeStream()),
        second(*device.MakeStream()) {}
  void GiveBack() {
    EXPECT_OK(device.Drain(first));
    EXPECT_OK(device.Drain(second));
    device.FreeStream(first);
    device.FreeStream(second);
    device.Free(memory);
    device.FreePinned(host);
    device.FreePinned(back);
  }
  Device& device;
  std::byte* host;
  std::byte* back;
  void* memory;
  DeviceStream first, second;
};

/// Copies 64 bytes to the device and back, on two streams with an event between.
void CopyThereAndBack(Device& device) {
  TwoStreams two(device);
  for (int i = 0; i < 64; ++i) two.host[i] = static_cast<std::byte>(i * 3);
  EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
  const DeviceEvent up = *device.Record(two.first);
  EXPECT_OK(device.Wait(two.second, up));
  EXPECT_OK(device.CopyToHost(two.second, two.back, two.memory, 64));
  const DeviceEvent down = *device.Record(two.second);
  EXPECT_OK(device.Synchronize(down));
  EXPECT_TRUE(std::equal(two.host, two.host + 64, two.back));
  device.FreeEvent(up);
  device.FreeEvent(down);
  two.GiveBack();
}

TEST(FakeDeviceTest, OrderedWorkIsDoneAndHasNoFault) {
  const std::uint64_t seed = testing::TestSeed();
  for (std::uint64_t i = 0; i < 50; ++i) {
    FakeDevice device(seed + i);
    CopyThereAndBack(device);
    device.Finish();
    EXPECT_TRUE(device.faults().empty()) << device.faults().front();
  }
}

TEST(CudaDeviceTest, DoesTheSameWhereThereIsOne) {
  const auto device = OpenCudaDevice();
  if (!device) {
    EXPECT_STATUS(device, kUnsupported);
    GTEST_SKIP() << device.error().message();
  }
  CopyThereAndBack(**device);
}

/// Runs `work` on fake devices with 30 seeds. Each must list `fault`.
template <typename Work>
void ExpectFault(const std::string& fault, const Work& work) {
  const std::uint64_t seed = testing::TestSeed();
  for (std::uint64_t i = 0; i < 30; ++i) {
    FakeDevice device(seed + i);
    TwoStreams two(device);
    work(device, two);
    device.Finish();
    const bool found =
        std::any_of(device.faults().begin(), device.faults().end(),
                    [&](const std::string& text) { return text.find(fault) != std::string::npos; });
    EXPECT_TRUE(found) << fault;
  }
}

TEST(FakeDeviceTest, FindsWorkOfTwoStreamsInNoOrder) {
  ExpectFault("the same bytes in no order", [](FakeDevice& device, TwoStreams& two) {
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
    EXPECT_OK(device.CopyToHost(two.second, two.back, two.memory, 64));
  });
  // An event that was recorded too early orders nothing.
  ExpectFault("the same bytes in no order", [](FakeDevice& device, TwoStreams& two) {
    const DeviceEvent early = *device.Record(two.first);
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
    EXPECT_OK(device.Wait(two.second, early));
    EXPECT_OK(device.CopyToHost(two.second, two.back, two.memory, 64));
    device.FreeEvent(early);
  });
}

TEST(FakeDeviceTest, FindsMemoryThatIsGivenBackInUseOrNeverOrIsOfTheWrongKind) {
  ExpectFault("given back before its use", [](FakeDevice& device, TwoStreams& two) {
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
    device.FreePinned(two.host);
  });
  ExpectFault("leaks", [](FakeDevice&, TwoStreams&) {});
  ExpectFault("an event leaks", [](FakeDevice& device, TwoStreams& two) {
    EXPECT_OK(device.Record(two.first));
    two.GiveBack();
  });
  ExpectFault("not of that kind", [](FakeDevice& device, TwoStreams& two) {
    const std::vector<std::byte> pageable(64);
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, pageable.data(), 64));
  });
  ExpectFault("that is not there", [](FakeDevice& device, TwoStreams& two) {
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 65));
  });
  ExpectFault("is freed before its work", [](FakeDevice& device, TwoStreams& two) {
    for (int i = 0; i < 40; ++i)
      EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
    device.FreeStream(two.first);
  });
}

// If the host changes memory without waiting for its copy, some schedules copy the wrong bytes.
TEST(FakeDeviceTest, CopiesAreLate) {
  const std::uint64_t seed = testing::TestSeed();
  int wrong = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    FakeDevice device(seed + i);
    TwoStreams two(device);
    two.host[0] = std::byte{1};
    EXPECT_OK(device.CopyToDevice(two.first, two.memory, two.host, 64));
    two.host[0] = std::byte{2};
    EXPECT_OK(device.CopyToHost(two.first, two.back, two.memory, 64));
    EXPECT_OK(device.Drain(two.first));
    wrong += two.back[0] == std::byte{2} ? 1 : 0;
    two.GiveBack();
  }
  EXPECT_GT(wrong, 20);
  EXPECT_LT(wrong, 60);
}

}  // namespace
}  // namespace rhizome
