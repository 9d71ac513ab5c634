#include <unistd.h>

#include <atomic>
#include <csignal>

#include "tools/cli/cli.h"

namespace rhizome {
namespace {

// Constant-initialised and lock-free, so that the signal handler may read it.
std::atomic<JobControl*> g_control{nullptr};
static_assert(std::atomic<JobControl*>::is_always_lock_free);

extern "C" void HandleSignal(int) {
  JobControl* control = g_control.load(std::memory_order_relaxed);
  if (control == nullptr || control->cancelled()) _exit(130);
  control->Cancel();
}

}  // namespace

void InstallSignalHandlers(JobControl& control) {
  g_control.store(&control, std::memory_order_relaxed);
  struct sigaction action = {};
  action.sa_handler = HandleSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A write beyond `ulimit -f` then returns an error that is reported, instead of killing the
  // process.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace rhizome
