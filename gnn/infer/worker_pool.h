#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A part of a job: pieces [begin, end) of stage `stage`, to be finished in this order.
struct WorkerTask {
  std::uint32_t stage = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Child processes that work on the tasks of one job, one at a time each. They speak in lines: a
/// child reads `<stage> <begin> <end>` from its standard input, answers with one line for each
/// finished piece, `piece <number> <whatever the job wants to know>`, and then with `done <facts>`;
/// or with `error <code> <message>`, which ends the job. Its input ends when no more is to be done.
///
/// A child that dies is not started again: what it has not finished of its task goes to another.
/// Children are killed when the pool goes, and by the kernel when the thread that made the pool
/// dies, in whichever way: no orphans stay.
/// Threads: one, which must outlive it.
class WorkerPool {
 public:
  /// `command`: program (a path, or found on the PATH) and its arguments. What a child writes to
  /// standard error goes where ours does. Errors: kIoError, kOutOfMemory: it cannot be started.
  static Result<std::unique_ptr<WorkerPool>> Start(const std::vector<std::string>& command,
                                                   std::uint32_t workers);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Takes a finished piece; its error ends the run.
  using Finished =
      std::function<Status(std::uint32_t stage, std::uint64_t piece, std::string_view facts)>;

  /// Takes a finished task.
  using Done = std::function<Status(std::uint32_t stage, std::string_view facts)>;

  /// Runs all tasks. Returns those that nobody is left to do: empty unless all children are dead.
  /// Errors: what a child or `finished` said; kInterrupted. After an error the pool is of no use.
  Result<std::vector<WorkerTask>> Run(std::vector<WorkerTask> tasks, const Finished& finished,
                                      const Done& done, const JobControl& control);

  std::uint32_t alive() const;
  std::uint32_t died() const { return died_; }

  /// The highest memory that each child ever had, in bytes, in the order in which they were
  /// started. Of one that died the kernel counts in what it was before it became the command.
  std::vector<std::uint64_t> PeakBytes() const;

 private:
  struct Worker {
    pid_t process = -1;
    std::uint64_t peak_bytes = 0;  // once it is dead
    int socket = -1;               // both of the child's standard streams
    std::string received;          // not a whole line yet
    bool busy = false;
    WorkerTask task;  // what is left of it
  };

  WorkerPool() = default;
  Status Add(const std::vector<std::string>& command);
  void HandOut();
  Status Listen(const Finished& finished, const Done& done);
  Status TakeLine(Worker& worker, std::string_view line, const Finished& finished,
                  const Done& done);
  void Bury(Worker& worker);

  std::vector<Worker> workers_;
  std::deque<WorkerTask> waiting_;
  std::uint32_t died_ = 0;
};

/// The child's side of a WorkerPool: serves tasks from descriptor `in` until it ends. `work`
/// finishes the pieces of a task in order, calls `finished` for each, from one thread at a time,
/// and returns facts about the whole. An error of `work` is told and returned; kIoError, the
/// streams are broken.
using FinishedPiece = std::function<Status(std::uint64_t piece, std::string_view facts)>;
using Work =
    std::function<Result<std::string>(const WorkerTask& task, const FinishedPiece& finished)>;
Status ServeTasks(int in, int out, const Work& work);

}  // namespace rhizome::inline internal
