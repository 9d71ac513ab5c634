#include "tools/cli/machine.h"

#include "testing/testing.h"

namespace rhizome {
namespace {

TEST(MachineTest, KnowsFileSystemsWhoseLocksMayBeKnownToOneMachineAlone) {
  for (const char* const name : {"nfs", "nfs4", "cifs", "fuse.sshfs", "fuse", "lustre"})
    EXPECT_TRUE(LocksMayBeLocal(name)) << name;
  for (const char* const name : {"ext4", "xfs", "btrfs", "tmpfs", "overlay", "nfsd", "unknown"})
    EXPECT_FALSE(LocksMayBeLocal(name)) << name;
}

TEST(MachineTest, NamesTheFileSystemOfAFolder) {
  const testing::TempDir folder;
  const auto machine = DescribeMachine(folder.path());
  EXPECT_NE(machine["filesystem"], "unknown");
  EXPECT_EQ(DescribeMachine(folder / "missing")["filesystem"], "unknown");
}

}  // namespace
}  // namespace rhizome
