#include "gnn/infer/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "cache/job/process_memory.h"
#include "rhizome/task_metrics.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Interval of checks for cancellation while children are silent.
constexpr int kPollMilliseconds = 100;

/// Max silence that one round of listening adds to a child: this process may have been stopped
/// itself.
constexpr std::chrono::seconds kMaxTurn{1};

constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

/// Heartbeat of a child.
constexpr std::string_view kAlive = "alive";

/// Exit code of a child that could not run the program.
constexpr int kNotStarted = 127;

/// Removes the first word of `line` and returns it.
std::string_view TakeWord(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::optional<std::uint64_t> TakeNumber(std::string_view& line) {
  const std::string_view word = TakeWord(line);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// Sends all of `text`. Returns false if the peer is gone.
bool Send(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Status ProtocolError(std::string_view line) {
  return Status::IoError(
      fmt::format("a worker sent '{}', which is not a valid message; check that all workers run "
                  "the same version of Rhizome",
                  line.substr(0, 100)));
}

/// Runs the command in the child, after fork. Nothing may allocate or lock between fork and exec.
[[noreturn]] void RunChild(const std::vector<char*>& command, int socket, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);  // the parent died before prctl
  if (::dup2(socket, STDIN_FILENO) < 0 || ::dup2(socket, STDOUT_FILENO) < 0) ::_exit(kNotStarted);
  ::execvp(command.front(), command.data());
  ::_exit(kNotStarted);
}

}  // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::Start(const std::vector<std::string>& command,
                                                      std::uint32_t workers,
                                                      WorkerPoolOptions options) {
  if (command.empty()) {
    return Fail(Status::InvalidArgument("workers need a command that starts one"));
  }
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::move(options)));
  for (std::uint32_t i = 0; i < workers; ++i) RHIZOME_RETURN_IF_ERROR(pool->Add(command));
  return pool;
}

Status WorkerPool::Add(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execvp does not modify them
  }
  arguments.push_back(nullptr);
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Status::FromErrno(errno, "connecting a worker");
  }
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process == 0) RunChild(arguments, sockets[1], parent);
  const int error = errno;
  ::close(sockets[1]);
  if (process < 0) {
    ::close(sockets[0]);
    return Status::FromErrno(error, "starting a worker");
  }
  Worker worker;
  worker.process = process;
  worker.socket = sockets[0];
  workers_.push_back(std::move(worker));
  return Status::Ok();
}

WorkerPool::~WorkerPool() {
  for (Worker& worker : workers_) {
    if (worker.process < 0) continue;
    ::kill(worker.process, SIGKILL);
    Bury(worker);
  }
}

std::uint32_t WorkerPool::alive() const {
  return static_cast<std::uint32_t>(std::count_if(
      workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.process >= 0; }));
}

std::vector<std::uint64_t> WorkerPool::PeakBytes() const {
  std::vector<std::uint64_t> peaks;
  for (const Worker& worker : workers_)
    peaks.push_back(worker.process < 0 ? worker.peak_bytes : PeakResidentBytesOf(worker.process));
  return peaks;
}

void WorkerPool::Bury(Worker& worker) {
  ::close(worker.socket);
  rusage used{};
  while (::wait4(worker.process, nullptr, 0, &used) < 0 && errno == EINTR) {
  }
  worker.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  worker.process = -1;
  worker.socket = -1;
}

/// Handles a dead child: its unfinished task goes to the others.
void WorkerPool::Lose(Worker& worker) {
  ++died_;
  if (worker.busy && worker.task.begin < worker.task.end) waiting_.push_front(worker.task);
  worker.busy = false;
  ::kill(worker.process, SIGKILL);  // it may only have closed its streams, or be stopped
  Bury(worker);
}

/// Kills the children that have been silent for too long, after a round of listening of length
/// `turn`.
void WorkerPool::KillSilent(std::chrono::nanoseconds turn) {
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (!worker.busy) continue;
    worker.silent += std::min<std::chrono::nanoseconds>(turn, kMaxTurn);
    if (worker.silent <= options_.max_silence) continue;
    const std::string name = fmt::format("worker {} (process {})", w + 1, worker.process);
    silenced_ += (silenced_.empty() ? "" : ", ") + name;
    Lose(worker);
    if (options_.note == nullptr) continue;
    options_.note(fmt::format("{} did not respond for {:g} s and was killed{}", name,
                              std::chrono::duration<double>(options_.max_silence).count(),
                              alive() > 0 ? "; other workers compute its part" : ""));
  }
}

// Runs tasks in a loop: hands waiting tasks to idle children, then listens for finished pieces,
// finished tasks, deaths and silence, until no child is busy.
Result<std::vector<WorkerTask>> WorkerPool::Run(std::vector<WorkerTask> tasks,
                                                const Finished& finished, const Done& done,
                                                const JobControl& control) {
  waiting_.assign(tasks.begin(), tasks.end());
  while (true) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    HandOut();
    const bool working = std::any_of(workers_.begin(), workers_.end(),
                                     [](const Worker& worker) { return worker.busy; });
    if (!working) break;
    const auto began = std::chrono::steady_clock::now();
    RHIZOME_RETURN_IF_ERROR(Listen(finished, done));
    KillSilent(std::chrono::steady_clock::now() - began);
  }
  return std::vector<WorkerTask>(waiting_.begin(), waiting_.end());
}

void WorkerPool::HandOut() {
  for (Worker& worker : workers_) {
    if (worker.process < 0 || worker.busy || waiting_.empty()) continue;
    worker.task = waiting_.front();
    waiting_.pop_front();
    worker.busy = true;
    worker.silent = {};
    // A dead child is noticed when its socket is read.
    static_cast<void>(Send(worker.socket, fmt::format("{} {} {}\n", worker.task.stage,
                                                      worker.task.begin, worker.task.end)));
  }
}

Status WorkerPool::Listen(const Finished& finished, const Done& done) {
  std::vector<pollfd> sockets;
  for (const Worker& worker : workers_) {
    sockets.push_back({.fd = worker.socket, .events = POLLIN, .revents = 0});  // poll ignores -1
  }
  if (::poll(sockets.data(), sockets.size(), kPollMilliseconds) < 0 && errno != EINTR) {
    return Status::FromErrno(errno, "waiting for workers");
  }
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    Worker& worker = workers_[w];
    if (sockets[w].revents == 0) continue;
    std::array<char, 65536> buffer;
    const ssize_t got = ::recv(worker.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      Lose(worker);
      continue;
    }
    worker.silent = {};
    worker.received.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = worker.received.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const std::string_view line(worker.received.data() + begin, end - begin);
      RHIZOME_RETURN_IF_ERROR(TakeLine(worker, line, finished, done));
    }
    worker.received.erase(0, begin);
    if (worker.received.size() > kMaxLineBytes) return ProtocolError(worker.received);
  }
  return Status::Ok();
}

Status WorkerPool::TakeLine(Worker& worker, std::string_view line, const Finished& finished,
                            const Done& done) {
  std::string_view rest = line;
  const std::string_view kind = TakeWord(rest);
  if (line == kAlive) return Status::Ok();
  if (kind == "error") {
    const std::optional<std::uint64_t> code = TakeNumber(rest);
    if (!code || *code == 0 || *code > static_cast<std::uint64_t>(StatusCode::kInterrupted)) {
      return ProtocolError(line);
    }
    return {static_cast<StatusCode>(*code), std::string(rest)};
  }
  if (!worker.busy) return ProtocolError(line);
  if (kind == "done" && worker.task.begin == worker.task.end) {
    worker.busy = false;
    return done(worker.task.stage, rest);
  }
  const std::optional<std::uint64_t> piece = TakeNumber(rest);
  if (kind != "piece" || !piece || *piece != worker.task.begin || *piece >= worker.task.end) {
    return ProtocolError(line);
  }
  RHIZOME_RETURN_IF_ERROR(finished(worker.task.stage, *piece, rest));
  worker.task.begin = *piece + 1;
  return Status::Ok();
}

namespace {

/// Held while a line is written, so that a heartbeat cannot interleave with it.
std::mutex g_speaking;

Status Say(int out, std::string line) {
  line += '\n';
  const std::lock_guard lock(g_speaking);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(out, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Status::FromErrno(errno, "reporting a worker's result");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return Status::Ok();
}

std::optional<WorkerTask> ParseTask(std::string_view line) {
  const std::optional<std::uint64_t> stage = TakeNumber(line);
  const std::optional<std::uint64_t> begin = TakeNumber(line);
  const std::optional<std::uint64_t> end = TakeNumber(line);
  if (!stage || *stage > UINT32_MAX || !begin || !end || *begin > *end) return std::nullopt;
  return WorkerTask{static_cast<std::uint32_t>(*stage), *begin, *end};
}

}  // namespace

WorkerBeats::WorkerBeats(int out, std::chrono::nanoseconds every)
    : thread_([this, out, every] { Beat(out, every); }) {}

WorkerBeats::~WorkerBeats() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerBeats::Beat(int out, std::chrono::nanoseconds every) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, every, [this] { return ending_; })) {
    pollfd room = {.fd = out, .events = POLLOUT, .revents = 0};
    // The next answer detects a write error.
    if (::poll(&room, 1, 0) == 1) static_cast<void>(Say(out, std::string(kAlive)));
  }
}

Status ServeTasks(int in, int out, const Work& work) {
  const FinishedPiece finished = [out](std::uint64_t piece, std::string_view facts) {
    return Say(out, fmt::format("piece {} {}", piece, facts));
  };
  std::string received;
  std::array<char, 4096> buffer;
  while (true) {
    for (std::size_t end = 0; (end = received.find('\n')) != std::string::npos;) {
      const std::optional<WorkerTask> task = ParseTask(std::string_view(received).substr(0, end));
      received.erase(0, end + 1);
      Result<std::string> facts =
          Fail(Status::InvalidArgument("a worker received a line that is not a task"));
      if (task) facts = work(*task, finished);
      if (!facts) {
        const Status& status = facts.error();
        static_cast<void>(Say(
            out, fmt::format("error {} {}", static_cast<int>(status.code()), status.message())));
        return status;
      }
      RHIZOME_RETURN_IF_ERROR(Say(out, "done " + *facts));
    }
    const ssize_t got = ::read(in, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "reading a worker's tasks");
    if (got == 0) return Status::Ok();
    received.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace internal
}  // namespace rhizome
