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

#include "rhizome/job_control.h"
#include "rhizome/job_report.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A part of a job: pieces [begin, end) of stage `stage`, to be finished in this order.
struct WorkerTask {
  std::uint32_t stage = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Max time for which a busy child may send nothing, not even a heartbeat (WorkerBeats).
inline constexpr std::chrono::seconds kMaxWorkerSilence{30};

struct WorkerPoolOptions {
  std::chrono::nanoseconds max_silence = kMaxWorkerSilence;
  JobNote note = {};  ///< receives a message for each child that is killed because it is silent
};

/// Child processes that work on the tasks of one job, one task at a time each. The protocol
/// consists of lines of text. A child reads `<stage> <begin> <end>` from its standard input. It
/// answers with one line per finished piece, `piece <number> <facts for the job>`, and then with
/// `done <facts>`; or with `error <code> <message>`, which ends the job. At any time it may send
/// `alive`. End of input means that there is no more work.
///
/// A child that dies is not restarted: the unfinished part of its task goes to another child. A
/// child that is silent for too long, for example because it was stopped, is killed and treated in
/// the same way. Children are killed when the pool is destroyed. If the thread that created the
/// pool dies, for any reason, the kernel kills them, so that no orphans remain.
/// Threads: one, which must outlive this object.
class WorkerPool {
 public:
  /// Starts the children. `command` is the program (a path, or a name to find on the PATH) and its
  /// arguments. Children inherit standard error from this process. Errors: kInvalidArgument,
  /// `command` is empty; kIoError or kOutOfMemory, a child cannot be started.
  static Result<std::unique_ptr<WorkerPool>> Start(const std::vector<std::string>& command,
                                                   std::uint32_t workers,
                                                   WorkerPoolOptions options = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Receives a finished piece. An error that it returns ends the run.
  using Finished =
      std::function<Status(std::uint32_t stage, std::uint64_t piece, std::string_view facts)>;

  /// Receives a finished task.
  using Done = std::function<Status(std::uint32_t stage, std::string_view facts)>;

  /// Runs all tasks. Returns the unfinished tasks; there are none unless all children have died.
  /// Errors: any error of a child, `finished` or `done`; kInterrupted. After an error the pool
  /// cannot be used any more.
  Result<std::vector<WorkerTask>> Run(std::vector<WorkerTask> tasks, const Finished& finished,
                                      const Done& done, const JobControl& control);

  std::uint32_t alive() const;
  std::uint32_t died() const { return died_; }

  /// Names the children that were killed because they were silent: "worker 2 (process 4711), …".
  const std::string& silenced() const { return silenced_; }

  /// Returns the peak memory of each child in bytes, in the order in which they were started. For a
  /// child that died, the kernel's figure includes the time before it executed the command.
  std::vector<std::uint64_t> PeakBytes() const;

 private:
  struct Worker {
    pid_t process = -1;
    std::uint64_t peak_bytes = 0;  // set once it is dead
    int socket = -1;               // the child's standard input and output
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

/// The child's side of a WorkerPool: sends `alive` at regular intervals from a separate thread
/// until this object is destroyed. It never blocks: if the pool does not read, nothing is sent.
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

/// The child's side of a WorkerPool: serves tasks from descriptor `in` until end of input. `work`
/// finishes the pieces of a task in order, calls `finished` for each one, from one thread at a
/// time, and returns facts about the whole task. An error of `work` is sent to the pool and
/// returned. Errors: any error of `work`; kIoError, the streams are broken; kInvalidArgument, a
/// line is not a task.
using FinishedPiece = std::function<Status(std::uint64_t piece, std::string_view facts)>;
using Work =
    std::function<Result<std::string>(const WorkerTask& task, const FinishedPiece& finished)>;
Status ServeTasks(int in, int out, const Work& work);

}  // namespace internal
}  // namespace rhizome
