#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "rhizome/file_system.h"
#include "storage/io/files.h"
#include "testing/child_process.h"
#include "testing/forbid_call.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;
using LockMode = FileSystem::LockMode;

/// Returns a description of all failures below an enclosed folder, or an empty text. The result is
/// a text because the check also runs in a child process.
std::string CheckEnclosed(const Path& dir) {
  FileSystem& fs = FileSystem::Posix();
  std::filesystem::create_directories(dir / "victim/folder");
  std::filesystem::create_directories(dir / "root/plain/deep");
  std::ofstream(dir / "victim/file") << "x";
  std::ofstream(dir / "root/plain/deep/file") << "x";
  std::filesystem::create_directory_symlink(dir / "victim", dir / "root/link");
  std::filesystem::create_directory_symlink("plain", dir / "root/inner");
  std::filesystem::create_directory_symlink("root", dir / "way");
  std::string wrong;
  const auto expect = [&](bool right, const std::string& what) {
    if (!right) wrong += what + "\n";
  };
  const auto refused = [&](const auto& outcome, const std::string& what) {
    const Status status = testing::AsStatus(outcome);
    expect(status.code() == StatusCode::kCorruption &&
               status.message().find("symbolic link") != std::string::npos,
           what + ": " + status.ToString());
  };
  const auto enclosed = fs.Enclose(dir / "root/");
  const auto through_way = fs.Enclose(dir / "way");
  for (const char* link : {"root/link", "root/inner", "way/link"}) {
    const Path at = dir / link;
    refused(fs.OpenRead(at / "file"), "read");
    refused(fs.CreateFile(at / "new"), "create");
    refused(fs.OpenAppend(at / "file", 0), "append");
    refused(fs.CreateDirectory(at / "new"), "create folder");
    refused(CreateDirectories(fs, at), "create folders at");
    refused(CreateDirectories(fs, at / "new"), "create folders below");
    refused(fs.RemoveFile(at / "file"), "remove");
    refused(fs.RemoveDirectory(at / "folder"), "remove folder");
    refused(fs.LinkFile(at / "file", dir / "root/new"), "link from");
    refused(fs.LinkFile(dir / "root/plain/deep/file", at / "new"), "link to");
    refused(fs.SyncDirectory(at), "sync folder");
    refused(fs.SyncDirectory(at / "folder"), "sync folder below");
    refused(fs.List(at), "list");
    refused(fs.List(at / "folder"), "list below");
    refused(fs.Stat(at / "file"), "stat");
    refused(fs.Lock(at / "LOCK", LockMode::kExclusive, "x"), "lock");
    refused(fs.FreeBytes(at / "folder"), "free bytes");
    const auto info = fs.Stat(at);
    expect(info && info->kind == DirectoryEntry::Kind::kOther, "a link is seen as one");
  }
  for (const char* root : {"root", "way"}) {
    expect(fs.OpenRead(dir / root / "plain/deep/file").has_value(), "a plain way is open");
    expect(fs.OpenRead(dir / root / "plain//./deep/file").has_value(), "written otherwise");
    expect(fs.List(dir / root).has_value() && fs.SyncDirectory(dir / root).ok(), "the root itself");
    expect(!fs.OpenRead(dir / root / "../victim/file"), "out of the root and back");
  }
  const Status missing = testing::AsStatus(fs.OpenRead(dir / "root/none/file"));
  expect(missing.code() == StatusCode::kNotFound, "missing: " + missing.ToString());
  expect(fs.OpenRead(dir / "victim/file").has_value(), "elsewhere nothing is enclosed");
  expect(RemoveTree(fs, dir / "root/link").ok(), "a link itself may be removed");
  expect(std::filesystem::exists(dir / "victim/folder"), "what it pointed at stays");
  return wrong;
}

TEST(EnclosureTest, NothingBelowAnEnclosedFolderIsReachedThroughALink) {
  const TempDir dir;
  EXPECT_EQ(CheckEnclosed(dir.path()), "");
}

TEST(EnclosureTest, WithoutOpenat2ItIsTheSame) {
  const TempDir dir;
  constexpr int kCannot = 77;
  const int status = testing::RunForked([&] {
    // Linux before 5.6 and some containers lack this system call.
    if (!testing::ForbidCall(SYS_openat2, ENOSYS)) return kCannot;
    const std::string wrong = CheckEnclosed(dir.path());
    std::fputs(wrong.c_str(), stderr);
    return wrong.empty() ? 0 : 1;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot) GTEST_SKIP() << "seccomp is not allowed";
  EXPECT_EQ(status, 0);
}

TEST(EnclosureTest, ItEndsWithTheLastHolder) {
  const TempDir dir;
  FileSystem& fs = FileSystem::Posix();
  std::filesystem::create_directories(dir / "victim");
  std::filesystem::create_directories(dir / "root");
  std::ofstream(dir / "victim/file") << "x";
  std::filesystem::create_directory_symlink("../victim", dir / "root/link");
  auto first = fs.Enclose(dir / "root");
  auto second = fs.Enclose(dir / "root");
  first.reset();
  EXPECT_STATUS(fs.OpenRead(dir / "root/link/file"), kCorruption);
  second.reset();
  EXPECT_OK(fs.OpenRead(dir / "root/link/file"));
}

}  // namespace
}  // namespace rhizome
