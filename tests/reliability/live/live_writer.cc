// The roles of the child processes (Write, WriteWithArrays, Read, Verify, Follow,
// CompactRepeatedly), which a child selects by
// an environment variable before its tests start, the checks that the tests share, and LiveProcess,
// which starts a child and reads its reports from a pipe.

#include "reliability/live/live_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "index/generation/graph_builder.h"
#include "reliability/live/live_arrays.h"
#include "reliability/live/live_model.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "rhizome/store.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

constexpr const char* kRoleVariable = "RHIZOME_LIVE_ROLE";
constexpr const char* kPathVariable = "RHIZOME_LIVE_STORE";
constexpr int kAckDescriptor = 3;
constexpr std::chrono::milliseconds kBetweenLooks(40);  // time for writers between checks

/// Pauses of a process that opens the store for each check. They are at least three times as long
/// as the check was, so that the process takes a quarter of a processor at most.
class Pauses {
 public:
  void Wait() {
    const Clock::duration took = Clock::now() - begun_;
    std::this_thread::sleep_for(std::max<Clock::duration>(kBetweenLooks, 3 * took));
    begun_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = Clock::now();
};

bool Say(std::uint64_t number) {
  return write(kAckDescriptor, &number, sizeof(number)) == sizeof(number);
}

// Opens the store, commits until the number of commits is a multiple of `until`, and closes it.
Status WriteCommits(const Path& path, std::uint64_t until) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite,
                                       {.wait = {.seconds = 60}}));  // the compactor may hold it
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  RHIZOME_ASSIGN_OR_RETURN(std::uint64_t next, CommitsIn(*graph));
  do {
    const bool sync = next % 3 != 1;
    RHIZOME_RETURN_IF_ERROR(graph->Write(LiveBatch(next), {.sync = sync}));
    if (next % 7 == 6) {
      const auto compacted = graph->Compact({.keep_generations = 0}, JobControl());
      // kBusy: the compactor, if there is one, is at work
      if (!compacted && compacted.error().code() != StatusCode::kBusy) return compacted.error();
    }
    ++next;
    if (sync && !Say(next)) return Status::IoError("nobody listens");
  } while (next % until != 0);
  return Status::Ok();
}

Status Write(const Path& path) {
  return WriteCommits(path, std::numeric_limits<std::uint64_t>::max());
}

// Writes commits and arrays in alternation. The store must have no array yet.
Status WriteWithArrays(const Path& path) {
  for (std::uint64_t number = 0;; ++number) {
    RHIZOME_RETURN_IF_ERROR(WriteCommits(path, kCommitsPerArray));
    RHIZOME_RETURN_IF_ERROR(AddLiveArray(path, number));
  }
}

Status Read(const Path& path) {
  Pauses pauses;
  std::uint64_t before = 0;
  for (std::uint64_t looks = 1;; pauses.Wait()) {
    const auto count = CountCommits(path);
    if (!count && count.error().code() == StatusCode::kBusy) continue;
    if (!count) return count.error();
    if (*count < before)
      return Status::Corruption(fmt::format("{} commits, but {} before", *count, before));
    before = *count;
    if (!Say(looks++)) return Status::IoError("nobody listens");
  }
}

Status Follow(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  for (std::uint64_t before = 0;; std::this_thread::sleep_for(kBetweenLooks)) {
    const Status refreshed = graph->Refresh();
    if (refreshed.code() == StatusCode::kBusy) continue;
    RHIZOME_RETURN_IF_ERROR(refreshed);
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t count, CommitsIn(*graph));
    if (count < before)
      return Status::Corruption(fmt::format("{} commits, but {} before", count, before));
    before = count;
    if (!Say(count)) return Status::IoError("nobody listens");
  }
}

Status CompactRepeatedly(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  for (std::uint64_t done = 0;; std::this_thread::sleep_for(kBetweenLooks)) {
    const auto result = graph->Compact({.keep_generations = 0}, JobControl());
    if (!result && result.error().code() == StatusCode::kBusy) continue;
    if (!result) return result.error();
    RHIZOME_RETURN_IF_ERROR(CommitsIn(*graph));
    if (!Say(++done)) return Status::IoError("nobody listens");
  }
}

Status Verify(const Path& path) {
  Pauses pauses;
  for (std::uint64_t looks = 1;; pauses.Wait()) {
    const auto report = VerifyStore(FileSystem::Posix(), path, JobControl());
    if (!report && report.error().code() == StatusCode::kBusy) continue;
    if (!report) return report.error();
    RHIZOME_RETURN_IF_ERROR(report->verdict());
    if (!Say(looks++)) return Status::IoError("nobody listens");
  }
}

// A child process runs its role here, before its tests start, and never returns.
const bool kRoleTaken = [] {
  const char* const role = std::getenv(kRoleVariable);
  const char* const path = std::getenv(kPathVariable);
  if (role == nullptr || path == nullptr) return false;
  const Status status = *role == 'w'   ? Write(path)
                        : *role == 'a' ? WriteWithArrays(path)
                        : *role == 'v' ? Verify(path)
                        : *role == 'f' ? Follow(path)
                        : *role == 'c' ? CompactRepeatedly(path)
                                       : Read(path);
  // kIoError is expected from a writer whose disk was cut off.
  if (status.code() != StatusCode::kIoError)
    std::fprintf(stderr, "LIVE %s: %s\n", role, status.ToString().c_str());
  std::fflush(stderr);
  _exit(status.ok() ? 0 : 1);
}();

const char* VariableOf(LiveProcess::Role role) {
  switch (role) {
    case LiveProcess::Role::kWriter:
      return "w";
    case LiveProcess::Role::kArrayWriter:
      return "a";
    case LiveProcess::Role::kReader:
      return "r";
    case LiveProcess::Role::kVerifier:
      return "v";
    case LiveProcess::Role::kFollower:
      return "f";
    case LiveProcess::Role::kCompactor:
      return "c";
  }
  return "";
}

}  // namespace

Status MakeLiveStore(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(
      const auto store, Store::Create(FileSystem::Posix(), path, StoreId{.bytes = {std::byte{9}}}));
  BuildOptions options;
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = 2;
  return BuildGeneration(*store, LiveInput(), options, JobControl());
}

Result<std::uint64_t> CountCommits(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*store)));
  return CommitsIn(*graph);
}

Status CheckAfterwards(const Path& path) {
  RHIZOME_RETURN_IF_ERROR(Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto report, VerifyStore(FileSystem::Posix(), path, JobControl()));
  RHIZOME_RETURN_IF_ERROR(report.verdict());
  if (!report.orphans.empty()) return Status::Corruption("rubbish is left: " + report.orphans[0]);
  return Status::Ok();
}

Status CheckUndisturbed(const Path& path, std::uint64_t commits) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  for (std::uint64_t next = 0; next < commits; ++next) {
    RHIZOME_RETURN_IF_ERROR(graph->Write(LiveBatch(next), {.sync = false}));
    if (next % 7 == 6)
      RHIZOME_RETURN_IF_ERROR(graph->Compact({.keep_generations = 0}, JobControl()));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t found, CommitsIn(*graph));
    if (found != next + 1)
      return Status::Corruption(fmt::format("{} commits after {}", found, next + 1));
  }
  return Status::Ok();
}

LiveProcess::LiveProcess(Role role, const Path& path) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  pipe_ = ends[0];
  process_ =
      ChildProcess::RunAgain({.variables = {fmt::format("{}={}", kRoleVariable, VariableOf(role)),
                                            fmt::format("{}={}", kPathVariable, path.string())},
                              .descriptors = {{ends[1], kAckDescriptor}}});
  close(ends[1]);
}

LiveProcess::~LiveProcess() {
  if (pipe_ >= 0) close(pipe_);
}

bool LiveProcess::ReadAck(bool wait) {
  pollfd ready{.fd = pipe_, .events = POLLIN, .revents = 0};
  while (poll(&ready, 1, wait ? -1 : 0) < 0 && errno == EINTR) {
  }
  if (ready.revents == 0) return false;
  std::uint64_t said = 0;
  ended_ = read(pipe_, &said, sizeof(said)) != sizeof(said);
  if (!ended_) acknowledged_ = said;
  return !ended_;
}

std::uint64_t LiveProcess::WaitForAcks(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count && ReadAck(/*wait=*/true);) ++i;
  return acknowledged();
}

std::uint64_t LiveProcess::acknowledged() {
  while (ReadAck(/*wait=*/false)) {
  }
  return acknowledged_;
}

bool LiveProcess::Reaches(std::uint64_t number) {
  Eventually([&] { return acknowledged() >= number || Failed(); }, 60);
  return acknowledged_ >= number;
}

bool LiveProcess::Failed() { return process_.id() <= 0 || ended_ || process_.Poll(); }

}  // namespace rhizome::testing
