#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rhizome/cache/job_report.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A part of a job: pieces [begin, end) of stage `stage`, to be finished in this order.
struct WorkerTask {
  std::uint32_t stage = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// How long a child with a task may say nothing, not even that it is alive (WorkerBeats).
inline constexpr std::chrono::seconds kMaxWorkerSilence{30};

struct WorkerPoolOptions {
  std::chrono::nanoseconds max_silence = kMaxWorkerSilence;
  JobNote note = {};  ///< told of each child that was killed because it was silent
};

/// Child processes that work on the tasks of one job, one at a time each. The protocol is lines of
/// text: a child reads `<stage> <begin> <end>` from its standard input, answers with one line for
/// each finished piece, `piece <number> <facts for the job>`, and then with `done <facts>`; or with
/// `error <code> <message>`, which ends the job. At any time it may say `alive`. End of input means
/// that there is no more work.
///
/// A child that dies is not restarted: the unfinished part of its task goes to another. A child
/// that is silent for too long, such as one that is stopped, is killed, and so dies. Children are
/// killed when the pool is destroyed, and by the kernel when the thread that made the pool dies, in
/// whichever way, so that no orphans remain.
/// Threads: one, which must outlive it.
class WorkerPool {
 public:
  /// Starts the children. `command` is the program (a path, or found on the PATH) and its
  /// arguments. Their standard error is ours. Errors: kIoError and kOutOfMemory, a child cannot be
  /// started.
  static Result<std::unique_ptr<WorkerPool>> Start(const std::vector<std::string>& command,
                                                   std::uint32_t workers,
                                                   WorkerPoolOptions options = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Receives a finished piece; its error ends the run.
  using Finished =
      std::function<Status(std::uint32_t stage, std::uint64_t piece, std::string_view facts)>;

  /// Receives a finished task.
  using Done = std::function<Status(std::uint32_t stage, std::string_view facts)>;

  /// Runs all tasks. Returns the tasks that are left; there are none unless all children are dead.
  /// Errors: those of a child, `finished` or `done`; kInterrupted. After an error the pool cannot
  /// be used any more.
  Result<std::vector<WorkerTask>> Run(std::vector<WorkerTask> tasks, const Finished& finished,
                                      const Done& done, const JobControl& control);

  std::uint32_t alive() const;
  std::uint32_t died() const { return died_; }

  /// Names the children that were killed because they were silent: "worker 2 (process 4711), …".
  const std::string& silenced() const { return silenced_; }

  /// Returns the peak memory of each child in bytes, in the order in which they were started. For a
  /// child that died the kernel includes what it was before it became the command.
  std::vector<std::uint64_t> PeakBytes() const;

 private:
  struct Worker {
    pid_t process = -1;
    std::uint64_t peak_bytes = 0;  // set once it is dead
    int socket = -1;               // both of the child's standard streams
    std::string received;          // an incomplete line
    bool busy = false;
    WorkerTask task;  // its unfinished part
    std::chrono::nanoseconds silent{0};
  };

  explicit WorkerPool(WorkerPoolOptions options) : options_(std::move(options)) {}
  Status Add(const std::vector<std::string>& command);
  void HandOut();
  Status Listen(const Finished& finished, const Done& done);
  Status TakeLine(Worker& worker, std::string_view line, const Finished& finished,
                  const Done& done);
  void KillSilent(std::chrono::nanoseconds turn);
  void Lose(Worker& worker);
  void Bury(Worker& worker);

  const WorkerPoolOptions options_;
  std::vector<Worker> workers_;
  std::deque<WorkerTask> waiting_;
  std::uint32_t died_ = 0;
  std::string silenced_;
};

/// The child's side of a WorkerPool: says every two seconds that it is alive, from a thread of its
/// own, for as long as this lives. It waits for no one: where nobody reads, it says nothing.
class WorkerBeats {
 public:
  explicit WorkerBeats(int out, std::chrono::nanoseconds every = std::chrono::seconds(2));
  ~WorkerBeats();
  WorkerBeats(const WorkerBeats&) = delete;
  WorkerBeats& operator=(const WorkerBeats&) = delete;

 private:
  void Beat(int out, std::chrono::nanoseconds every);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

/// The child's side of a WorkerPool: serves tasks from descriptor `in` until that ends. `work`
/// finishes the pieces of a task in order, calls `finished` for each, from one thread at a time,
/// and returns facts about the whole. An error of `work` is sent and returned. Errors: those of
/// `work`; kIoError, the streams are broken.
using FinishedPiece = std::function<Status(std::uint64_t piece, std::string_view facts)>;
using Work =
    std::function<Result<std::string>(const WorkerTask& task, const FinishedPiece& finished)>;
Status ServeTasks(int in, int out, const Work& work);

}  // namespace rhizome::inline internal
