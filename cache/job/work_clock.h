#pragma once

#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Measures wall-clock and processor time since its construction.
class WorkClock {
 public:
  WorkClock();
  double seconds() const;
  double cpu_seconds() const;  ///< sum over all threads of the process

 private:
  double start_;
  double cpu_start_;
};

}  // namespace internal
}  // namespace rhizome
