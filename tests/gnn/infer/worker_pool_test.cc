#include "gnn/infer/worker_pool.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/base/stopwatch.h"
#include "testing/child_process.h"
#include "testing/testing.h"

// Tests of WorkerPool with shell scripts as children: all pieces are done once although children
// die, stop, send wrong answers or cannot be started; errors of a child end the job; no child
// outlives its parent.

namespace rhizome {
namespace {

using testing::TempDir;

/// Returns the command of a child written in the shell: `body` runs for each task, with $stage,
/// $begin and $end set.
std::vector<std::string> Shell(const std::string& body) {
  return {"sh", "-c", "while read stage begin end; do " + body + "; done"};
}

const char* const kAllPieces =
    "i=$begin; while [ $i -lt $end ]; do echo piece $i $stage.$i; i=$((i+1)); done; echo done well";

class WorkerPoolTest : public ::testing::Test {
 protected:
  /// Runs one task for each of `stages` stages, with 10 pieces each, on `workers` children.
  Status Run(const std::vector<std::string>& command, std::uint32_t workers,
             std::uint32_t stages = 4) {
    const auto note = [this](std::string_view text) { notes_.emplace_back(text); };
    auto pool = WorkerPool::Start(command, workers, {.max_silence = max_silence_, .note = note});
    if (!pool) return pool.error();
    std::vector<WorkerTask> tasks;
    for (std::uint32_t stage = 0; stage < stages; ++stage) tasks.push_back({stage, 0, 10});
    const auto finished = [&](std::uint32_t stage, std::uint64_t piece, std::string_view facts) {
      EXPECT_EQ(facts, std::to_string(stage) + "." + std::to_string(piece));
      ++times_[{stage, piece}];
      return Status::Ok();
    };
    const auto done = [&](std::uint32_t, std::string_view facts) {
      EXPECT_EQ(facts, "well");
      ++done_;
      return Status::Ok();
    };
    auto left = (*pool)->Run(std::move(tasks), finished, done, control_);
    died_ = (*pool)->died();
    silenced_ = (*pool)->silenced();
    if (!left) return left.error();
    left_ = *left;
    return Status::Ok();
  }

  void ExpectEachOnce(std::uint32_t stages = 4) const {
    EXPECT_TRUE(left_.empty());
    EXPECT_EQ(times_.size(), 10U * stages);
    for (const auto& [piece, times] : times_) EXPECT_EQ(times, 1) << piece.first << piece.second;
  }

  const TempDir folder_;
  JobControl control_;
  std::chrono::nanoseconds max_silence_ = kMaxWorkerSilence;
  std::vector<std::string> notes_;
  std::string silenced_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> times_;
  std::vector<WorkerTask> left_;
  std::uint32_t died_ = 0;
  std::uint32_t done_ = 0;
};

TEST_F(WorkerPoolTest, EveryPieceIsDoneOnce) {
  for (const std::uint32_t workers : {1, 3, 7}) {
    times_.clear();
    done_ = 0;
    ASSERT_OK(Run(Shell(kAllPieces), workers));
    ExpectEachOnce();
    EXPECT_EQ(died_, 0U);
    EXPECT_EQ(done_, 4U);
  }
}

// The first child that creates the folder dies after three pieces of its task.
TEST_F(WorkerPoolTest, AnotherTakesUpWhatADeadOneLeft) {
  const std::string mark = (folder_ / "dead").string();
  ASSERT_OK(Run(Shell("if mkdir '" + mark +
                      "' 2>/dev/null; then echo piece 0 $stage.0; "
                      "echo piece 1 $stage.1; echo piece 2 $stage.2; kill -9 $$; fi; " +
                      kAllPieces),
                3));
  ExpectEachOnce();
  EXPECT_EQ(died_, 1U);
}

/// Returns the shell code of a child that stops itself (SIGSTOP) after the first piece of its task,
/// if it is the first to get there.
std::string StopsOnce(const std::string& mark) {
  return "if mkdir '" + mark + "' 2>/dev/null; then echo piece 0 $stage.0; kill -STOP $$; fi; ";
}

// A stopped child neither answers nor exits; only the silence limit detects it. The limit leaves
// the other children enough time.
TEST_F(WorkerPoolTest, AnotherTakesUpWhatAStoppedOneLeft) {
  max_silence_ = std::chrono::seconds(5);
  ASSERT_OK(Run(Shell(StopsOnce((folder_ / "stopped").string()) + kAllPieces), 3));
  ExpectEachOnce();
  EXPECT_EQ(died_, 1U);
  ASSERT_EQ(notes_.size(), 1U);
  EXPECT_TRUE(notes_[0].starts_with(silenced_ + " did not respond for 5 s")) << notes_[0];
  EXPECT_TRUE(silenced_.starts_with("worker ")) << silenced_;
}

TEST_F(WorkerPoolTest, ChildrenThatAreAllStoppedAreKilledAndNamed) {
  max_silence_ = std::chrono::milliseconds(200);
  const std::filesystem::path pids = folder_ / "pids";
  ASSERT_OK(Run(Shell("echo $$ >>'" + pids.string() + "'; kill -STOP $$"), 2));
  EXPECT_EQ(died_, 2U);
  EXPECT_EQ(left_.size(), 4U);
  EXPECT_NE(silenced_.find("worker 1 (process "), std::string::npos) << silenced_;
  EXPECT_NE(silenced_.find(", worker 2 (process "), std::string::npos) << silenced_;
  std::ifstream file(pids);
  for (pid_t pid = 0; file >> pid;) {
    EXPECT_NE(silenced_.find("(process " + std::to_string(pid) + ")"), std::string::npos) << pid;
    EXPECT_NE(::kill(pid, 0), 0) << pid;
  }
}

// The child reports that it is alive for longer than a child may be silent.
TEST_F(WorkerPoolTest, AChildThatSaysThatItIsAliveMayTakeItsTime) {
  max_silence_ = std::chrono::seconds(3);
  ASSERT_OK(Run(Shell("i=0; while [ $i -lt 45 ]; do sleep 0.1; echo alive; i=$((i+1)); done; " +
                      std::string(kAllPieces)),
                1, 1));
  ExpectEachOnce(1);
  EXPECT_EQ(died_, 0U);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(WorkerPoolTest, BeatsAreLinesBetweenTheAnswers) {
  std::array<int, 2> in{}, out{};
  ASSERT_EQ(::pipe(in.data()), 0);
  ASSERT_EQ(::pipe(out.data()), 0);
  std::string said;
  std::atomic<bool> beaten = false;
  std::thread reading([&] {
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = ::read(out[0], buffer.data(), buffer.size())) > 0;)
      beaten = said.append(buffer.data(), static_cast<std::size_t>(got)).starts_with("alive\n");
  });
  ASSERT_EQ(::write(in[1], "0 0 200\n", 8), 8);
  ::close(in[1]);
  const std::string facts(9000, 'x');
  {
    const WorkerBeats beats(out[1], std::chrono::microseconds(1));
    EXPECT_OK(ServeTasks(
        in[0], out[1],
        [&](const WorkerTask& task, const FinishedPiece& finished) -> Result<std::string> {
          for (const Stopwatch watch; !beaten && watch.seconds() < 60;) std::this_thread::yield();
          for (std::uint64_t piece = task.begin; piece < task.end; ++piece)
            RHIZOME_RETURN_IF_ERROR(finished(piece, facts));
          return facts;
        }));
  }
  ::close(out[1]);
  reading.join();
  std::istringstream lines(said);
  std::uint64_t pieces = 0, done = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "alive") continue;
    pieces += line == "piece " + std::to_string(pieces) + " " + facts;
    done += line == "done " + facts;
  }
  EXPECT_EQ(pieces, 200U);
  EXPECT_EQ(done, 1U);
  ::close(in[0]);
  ::close(out[0]);
}

TEST_F(WorkerPoolTest, WhatNobodyIsLeftToDoIsReturned) {
  ASSERT_OK(Run(Shell("[ $stage = 2 ] && exit 1; " + std::string(kAllPieces)), 2));
  EXPECT_EQ(died_, 2U);
  // Whether stage 3 was done depends on which child was free. Tasks that were not done are
  // returned.
  std::uint64_t pieces = times_.size();
  for (const WorkerTask& task : left_) pieces += task.end - task.begin;
  EXPECT_EQ(pieces, 40U);
  ASSERT_FALSE(left_.empty());
  EXPECT_EQ(left_[0].stage, 2U);
  EXPECT_EQ(left_[0].begin, 0U);
  EXPECT_EQ(left_[0].end, 10U);
  for (const std::uint32_t stage : {0U, 1U}) EXPECT_EQ(times_.count({stage, 9}), 1U);
}

TEST_F(WorkerPoolTest, AProgramThatIsNotThereLeavesAll) {
  ASSERT_OK(Run({"/nonexistent/worker"}, 2));
  EXPECT_EQ(died_, 2U);
  EXPECT_EQ(left_.size(), 4U);
  EXPECT_STATUS(testing::AsStatus(WorkerPool::Start({}, 1)), kInvalidArgument);
}

TEST_F(WorkerPoolTest, AnErrorOfAChildEndsTheJob) {
  const int corruption = static_cast<int>(StatusCode::kCorruption);
  const Status status =
      Run(Shell("echo error " + std::to_string(corruption) + " chunk 3 is damaged"), 2);
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
  EXPECT_EQ(status.message(), "chunk 3 is damaged");
}

TEST_F(WorkerPoolTest, OtherAnswersAreErrors) {
  for (const char* answer : {"hello", "error 0 x", "error 99 x", "piece", "piece 11 x",
                             "piece -1 x", "done", "piece 1 1.1 ; echo piece 0 0.0"}) {
    times_.clear();
    const Status status = Run(Shell("echo " + std::string(answer) + "; exec sleep 1000"), 1, 1);
    EXPECT_EQ(status.code(), StatusCode::kIoError) << answer;
  }
}

TEST_F(WorkerPoolTest, CancellingKillsTheChildren) {
  control_.Cancel();
  EXPECT_STATUS(Run(Shell("exec sleep 1000"), 2), kInterrupted);
}

// The parent is a separate process, which is killed while its children work.
TEST_F(WorkerPoolTest, AKilledParentLeavesNoOrphans) {
  const std::filesystem::path pids = folder_ / "pids";
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  auto parent = testing::ChildProcess::Fork([&]() -> int {
    ::close(ready[0]);
    // Each child inherits the write end of the pipe, so the pipe reaches its end when all children
    // are dead.
    const auto pool = WorkerPool::Start(
        Shell("echo $$ >>'" + pids.string() + "'; echo piece 0 x; exec sleep 1000"), 2);
    if (!pool) return 1;
    const JobControl control;
    const auto finished = [&](std::uint32_t, std::uint64_t, std::string_view) {
      return ::write(ready[1], "x", 1) == 1 ? Status::Ok() : Status::IoError("");
    };
    const auto done = [](std::uint32_t, std::string_view) { return Status::Ok(); };
    const auto left = (*pool)->Run({{0, 0, 10}, {1, 0, 10}}, finished, done, control);
    return 2;
  });
  ::close(ready[1]);
  std::array<char, 2> both{};
  for (char& one : both) ASSERT_EQ(::read(ready[0], &one, 1), 1);
  EXPECT_FALSE(parent.Poll());  // it runs until it is killed
  parent.Kill();
  EXPECT_EQ(::read(ready[0], both.data(), 1), 0);  // blocks until no child holds the pipe
  ::close(ready[0]);
  std::ifstream file(pids);
  int found = 0;
  for (pid_t pid = 0; file >> pid;) ++found;
  EXPECT_EQ(found, 2);
}

// The two sides of the pool communicate over pipes.
TEST_F(WorkerPoolTest, ServeTasksAnswersInTheLanguageOfThePool) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  ASSERT_EQ(::pipe(in.data()), 0);
  ASSERT_EQ(::pipe(out.data()), 0);
  const std::string tasks = "0 5 7\n1 0 0\n2 1 2\n";
  ASSERT_EQ(::write(in[1], tasks.data(), tasks.size()), static_cast<ssize_t>(tasks.size()));
  ::close(in[1]);
  const Status served =
      ServeTasks(in[0], out[1],
                 [](const WorkerTask& task, const FinishedPiece& finished) -> Result<std::string> {
                   if (task.stage == 2) return Fail(Status::Corruption("two\nlines"));
                   for (std::uint64_t piece = task.begin; piece < task.end; ++piece)
                     RHIZOME_RETURN_IF_ERROR(finished(piece, "facts"));
                   return "all";
                 });
  EXPECT_EQ(served.code(), StatusCode::kCorruption);
  ::close(out[1]);
  std::array<char, 256> said{};
  const ssize_t got = ::read(out[0], said.data(), said.size());
  ASSERT_GT(got, 0);
  EXPECT_EQ(std::string(said.data(), static_cast<std::size_t>(got)),
            "piece 5 facts\npiece 6 facts\ndone all\ndone all\nerror " +
                std::to_string(static_cast<int>(StatusCode::kCorruption)) + " two\\nlines\n");
  ::close(in[0]);
  ::close(out[0]);
}

}  // namespace
}  // namespace rhizome
