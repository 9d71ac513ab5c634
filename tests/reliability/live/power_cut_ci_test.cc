#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "reliability/crash/crash_testing.h"
#include "reliability/live/live_writer.h"
#include "rhizome/file_system.h"

namespace rhizome::testing {
namespace {

// Constants from linux/fs.h since 6.9. ext4 and xfs have had them under other names for long.
constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);
constexpr std::uint32_t kWithoutFlushingTheJournal = 2;

bool RunsOfPowerCut(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// A mounted file system in an image file.
class LoopDisk {
 public:
  explicit LoopDisk(const TempDir& dir) : image_(dir / "image"), folder_(dir / "mnt") {}
  ~LoopDisk() { Unmount(); }

  bool Make(const std::string& kind) {
    const std::string force = kind == "xfs" ? "-f -q" : "-F -q";
    std::filesystem::create_directory(folder_);
    return RunsOfPowerCut(fmt::format("truncate -s 320M '{}'", image_.string())) &&
           RunsOfPowerCut(fmt::format("mkfs.{} {} '{}'", kind, force, image_.string())) && Mount();
  }
  bool Mount() {
    mounted_ =
        RunsOfPowerCut(fmt::format("mount -o loop '{}' '{}'", image_.string(), folder_.string()));
    return mounted_;
  }
  void Unmount() {
    if (mounted_)
      RunsOfPowerCut(
          fmt::format("umount '{}' || umount -l '{}'", folder_.string(), folder_.string()));
    mounted_ = false;
  }

  /// Cuts the power: data that has not reached the disk yet is lost.
  bool Cut() {
    const int fd = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return false;
    std::uint32_t how = kWithoutFlushingTheJournal;
    const bool done = ioctl(fd, kShutdown, &how) == 0;
    close(fd);
    return done;
  }
  Path store() const { return folder_ / "g.rz"; }

 private:
  const Path image_;
  const Path folder_;
  bool mounted_ = false;
};

class PowerCutTest : public ::testing::TestWithParam<std::string> {};

// Acknowledgements are counted before the cut, because those that arrive during the cut may belong
// to commits that are lost.
TEST_P(PowerCutTest, LosesNothingThatWasSaidToBeDurable) {
  constexpr int kCuts = 32;
  if (geteuid() != 0) GTEST_SKIP() << "only root can mount a file system";
  const TempDir dir;
  LoopDisk disk(dir);
  if (!disk.Make(GetParam()))
    GTEST_SKIP() << "no loop-mounted " << GetParam() << " can be made here (mkfs." << GetParam()
                 << ", mount -o loop)";
  ASSERT_OK(MakeLiveStore(disk.store()));
  std::mt19937_64 rng(TestSeed());
  std::uint64_t durable = 0;
  for (int cut = 0; cut < kCuts; ++cut) {
    LiveProcess writer(LiveProcess::Role::kWriter, disk.store());
    durable = std::max(durable, writer.WaitForAcks(1 + rng() % 8));
    ASSERT_FALSE(writer.Failed()) << "before cut " << cut;
    ASSERT_TRUE(disk.Cut());
    writer.Kill();
    disk.Unmount();
    ASSERT_TRUE(disk.Mount());
    const auto found = CountCommits(disk.store());
    ASSERT_OK(found);
    ASSERT_GE(*found, durable) << "cut " << cut;
    ASSERT_OK(CheckAfterwards(disk.store()));
  }
  PrintCount("power-cuts", kCuts);
  PrintCount("commits-beside-power-cuts", durable);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, PowerCutTest, ::testing::Values("ext4", "xfs"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rhizome::testing
