// Records the block writes and flushes of a live writer on a real file system (LoggedDisk), and
// checks the store after each of many simulated power cuts: at a flush, and at a flush plus a
// random part of the writes before the next one. Needs root, FUSE and loop devices.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "reliability/crash/crash_testing.h"
#include "reliability/live/live_arrays.h"
#include "reliability/live/live_writer.h"
#include "reliability/live/logged_disk.h"
#include "rhizome/file_system.h"

namespace rhizome::testing {
namespace {

constexpr const char* kStore = "g.rz";

bool Runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// mkfs.xfs needs the flag --unsupported below 300 MB; older versions do not know this flag.
Result<OwnedFile> FreshImage(const std::string& kind, const Path& path) {
  const auto make = [&path](const std::string& command) {
    return Runs(fmt::format("{} '{}'", command, path.string()));
  };
  const bool made =
      make("truncate -s 96M") &&
      (kind == "xfs" ? make("mkfs.xfs -q -f --unsupported") || make("mkfs.xfs -q -f")
                     : make("mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0"));
  if (!made) return Fail(Status::IoError("mkfs." + kind + " makes no image of 96 MB"));
  OwnedFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return Fail(Status::IoError("the image cannot be opened"));
  return CopyToMemory(file.fd());
}

/// An acknowledgement of the writer, and the length of the log when it was received.
struct Ack {
  std::uint64_t commits;
  std::size_t position;
};

/// The disk operations of a writer, and its acknowledgements.
struct Recording {
  OwnedFile start;  // the disk before the log
  std::vector<DiskOperation> log;
  std::size_t made = 0;  // length of the log when the store existed and was durable
  std::vector<Ack> acks;
};

/// Creates a fresh disk and its folders. Errors: kIoError, a disk cannot be mounted or logged here.
Status Begin(const std::string& kind, const TempDir& dir, Recording& recording) {
  if (geteuid() != 0) return Status::IoError("only root can mount a file system");
  for (const char* name : {"shown", "disk"}) std::filesystem::create_directory(dir / name);
  RHIZOME_ASSIGN_OR_RETURN(recording.start, FreshImage(kind, dir / "image"));
  RHIZOME_ASSIGN_OR_RETURN(const auto disk, LoggedDisk::Make(recording.start.fd(), dir / "shown"));
  RHIZOME_ASSIGN_OR_RETURN(LoopMount mounted, LoopMount::Mount(disk->image(), kind, dir / "disk"));
  return mounted.Unmount();
}

/// Creates a store on a logged disk and lets the writer work until the disk has been flushed
/// `flushes` times.
Status RecordWork(const std::string& kind, const TempDir& dir, std::size_t flushes,
                  Recording& recording) {
  const Path folder = dir / "disk";
  RHIZOME_ASSIGN_OR_RETURN(const auto disk, LoggedDisk::Make(recording.start.fd(), dir / "shown"));
  RHIZOME_ASSIGN_OR_RETURN(LoopMount mounted, LoopMount::Mount(disk->image(), kind, folder));
  RHIZOME_RETURN_IF_ERROR(MakeLiveStore(folder / kStore));
  recording.made = disk->position();
  const std::size_t before = disk->flushes();
  LiveProcess writer(LiveProcess::Role::kArrayWriter, folder / kStore);
  while (disk->flushes() < before + flushes) {
    const std::uint64_t said = recording.acks.empty() ? 0 : recording.acks.back().commits;
    const std::uint64_t durable = writer.WaitForAcks(1);
    if (durable == said) return Status::IoError("the writer has ended");
    recording.acks.push_back({.commits = durable, .position = disk->position()});
  }
  recording.log = disk->TakeLog();
  writer.Kill();
  return mounted.Unmount();
}

/// The writes between two flushes: operations `begin` to `end` of the log.
struct Epoch {
  std::size_t begin;
  std::size_t end;
  std::uint64_t durable_before;  // reported before the flush at `end`, so durable before `begin`
};

/// Returns the epochs with writes that begin after the store was created.
std::vector<Epoch> EpochsOf(const Recording& recording) {
  std::vector<Epoch> out;
  auto ack = recording.acks.begin();
  std::uint64_t durable = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < recording.log.size(); ++i) {
    if (!recording.log[i].is_flush) continue;
    for (; ack != recording.acks.end() && ack->position <= i; ++ack) durable = ack->commits;
    if (begin >= recording.made && begin < i)
      out.push_back({.begin = begin, .end = i, .durable_before = durable});
    begin = i + 1;
  }
  return out;
}

/// A part of a write that reaches the disk completely or not at all.
struct Piece {
  const DiskOperation* write;
  std::uint64_t begin;
  std::uint64_t end;
};

/// Divides a write at the disk's block boundaries.
std::vector<Piece> BlocksOf(const DiskOperation& write) {
  constexpr std::uint64_t kBlock = 4096;
  std::vector<Piece> out;
  for (std::uint64_t at = 0; at < write.bytes.size();) {
    const std::uint64_t next =
        std::min<std::uint64_t>(at + kBlock - (write.offset + at) % kBlock, write.bytes.size());
    out.push_back({.write = &write, .begin = at, .end = next});
    at = next;
  }
  return out;
}

/// Draws the part of an epoch's writes that reached the disk, in their order: all, none, or some
/// blocks of each write. The part is neither empty nor the whole epoch, because these are states at
/// a flush; it is empty if the epoch has only one block.
std::vector<Piece> DrawPart(const Recording& recording, const Epoch& epoch, std::mt19937_64& rng) {
  std::size_t blocks = 0;
  for (std::size_t i = epoch.begin; i < epoch.end; ++i) blocks += BlocksOf(recording.log[i]).size();
  std::vector<Piece> out;
  while (blocks > 1 && (out.empty() || out.size() == blocks)) {
    out.clear();
    for (std::size_t i = epoch.begin; i < epoch.end; ++i) {
      const auto fate = rng() % 3;
      for (const Piece& block : BlocksOf(recording.log[i]))
        if (fate == 1 || (fate == 2 && rng() % 2 == 0)) out.push_back(block);
    }
  }
  return out;
}

Piece WholeOf(const DiskOperation& write) {
  return {.write = &write, .begin = 0, .end = write.bytes.size()};
}

Status Apply(const Piece& piece, int disk) {
  return WriteAt(disk, piece.write->offset + piece.begin, piece.write->bytes.data() + piece.begin,
                 piece.end - piece.begin);
}

class BlockReplayTest : public ::testing::TestWithParam<std::string> {
 protected:
  /// Mounts a copy of `disk` with `part` written to it, and checks the store. The disk itself is
  /// not changed.
  Status Check(int disk, const std::vector<Piece>& part, std::uint64_t durable) {
    RHIZOME_ASSIGN_OR_RETURN(const OwnedFile image, CopyToMemory(disk));
    for (const Piece& piece : part) RHIZOME_RETURN_IF_ERROR(Apply(piece, image.fd()));
    RHIZOME_ASSIGN_OR_RETURN(LoopMount mounted, LoopMount::Mount(image.fd(), GetParam(), folder_));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t found, CountCommits(folder_ / kStore));
    if (found < durable)
      return Status::Corruption(fmt::format("{} commits of {} durable ones", found, durable));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t arrays, CountLiveArrays(folder_ / kStore));
    if (found < arrays * kCommitsPerArray || found > (arrays + 1) * kCommitsPerArray)
      return Status::Corruption(fmt::format("{} arrays beside {} commits", arrays, found));
    RHIZOME_RETURN_IF_ERROR(CheckAfterwards(folder_ / kStore));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t after, CountCommits(folder_ / kStore));
    if (after != found)
      return Status::Corruption(fmt::format("{} commits, and then {}", found, after));
    return mounted.Unmount();
  }

  const TempDir dir_;
  const Path folder_ = dir_ / "disk";
  const UnmountAtDeath at_death_{{folder_, dir_ / "shown"}};
};

/// Draws at most `most` epochs, in order.
std::vector<Epoch> Sample(const std::vector<Epoch>& all, std::size_t most, std::mt19937_64& rng) {
  std::vector<Epoch> out;
  std::sample(all.begin(), all.end(), std::back_inserter(out), most, rng);
  return out;
}

// For each sampled flush, one image has the state at the flush, and another also has a part of the
// writes up to the next flush.
TEST_P(BlockReplayTest, EveryPrefixOfTheBlocksHasWhatWasAcknowledged) {
  constexpr std::size_t kFlushes = 600;
  constexpr std::size_t kStates = 150;
  Recording recording;
  if (const Status refused = Begin(GetParam(), dir_, recording); !refused.ok())
    GTEST_SKIP() << "no logged disk here: " << refused.ToString();
  std::mt19937_64 rng(TestSeed());
  ASSERT_OK(RecordWork(GetParam(), dir_, kFlushes, recording));
  const std::vector<Epoch> epochs = EpochsOf(recording);
  std::size_t images = 0;
  std::size_t applied = 0;
  auto disk = CopyToMemory(recording.start.fd());
  ASSERT_OK(disk);
  for (const Epoch& epoch : Sample(epochs, kStates, rng)) {
    SCOPED_TRACE(fmt::format("flush at {} of {}", epoch.begin, recording.log.size()));
    for (; applied < epoch.begin; ++applied)
      ASSERT_OK(Apply(WholeOf(recording.log[applied]), disk->fd()));
    ASSERT_OK(Check(disk->fd(), {}, epoch.durable_before));
    ++images;
    const std::vector<Piece> part = DrawPart(recording, epoch, rng);
    if (part.empty()) continue;
    SCOPED_TRACE("and a part of what came up to the next");
    ASSERT_OK(Check(disk->fd(), part, epoch.durable_before));
    ++images;
  }
  ASSERT_FALSE(epochs.empty());
  ASSERT_GT(epochs.back().durable_before, 0U);
  PrintCount("block-images", images);
  PrintCount("commits-beside-block-images", recording.acks.back().commits);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, BlockReplayTest, ::testing::Values("ext4", "xfs"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rhizome::testing
