#include "cache/job/work_clock.h"

#include <time.h>

namespace rhizome {
inline namespace internal {
namespace {

double Now(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

WorkClock::WorkClock() : start_(Now(CLOCK_MONOTONIC)), cpu_start_(Now(CLOCK_PROCESS_CPUTIME_ID)) {}
double WorkClock::seconds() const { return Now(CLOCK_MONOTONIC) - start_; }
double WorkClock::cpu_seconds() const { return Now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_; }

}  // namespace internal
}  // namespace rhizome
