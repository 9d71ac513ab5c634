#include <time.h>

#include <algorithm>

#include "rhizome/gnn/bench_aggregate.h"

namespace rhizome {
namespace {

double Now(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

BenchClock::BenchClock()
    : start_(Now(CLOCK_MONOTONIC)), cpu_start_(Now(CLOCK_PROCESS_CPUTIME_ID)) {}
double BenchClock::seconds() const { return Now(CLOCK_MONOTONIC) - start_; }
double BenchClock::cpu_seconds() const { return Now(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_; }

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace rhizome
