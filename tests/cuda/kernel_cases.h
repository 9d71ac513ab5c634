#pragma once

#include "cuda/gather_cases.h"
#include "cuda/gatv2_cases.h"
#include "cuda/id_map_cases.h"

// One random input for each kernel, run in one schedule and compared with the CPU. A case returns a
// description of what is wrong, or an empty string. Tests run hundreds of cases, which must also
// catch seeded mistakes.

namespace rhizome::simulator {

/// A kernel and its case. Seeded mistakes start with the name of the case that must catch them.
struct KernelCase {
  const char* name;
  std::string (*run)(Random&);
};
inline constexpr KernelCase kKernelCases[] = {
    {"gather", CopyCase},
    {"widening gather", WidenCase},
    {"id map", IdMapCase},
    {"id map", IdMapErrorCase},
    {"three steps", ThreeStepsCase},
    {"fused map", FusedMapCase},
    {"sum", SumCase},
    {"sum", PiecesCase},
    {"max", MaxCase},
    {"shared sums", SharedSumCase},
    {"edge dots", EdgeDotCase},
    {"attention", AttendForwardCase},
    {"attention", AttendGradientCase},
    {"attention v2", AttendV2BothCase},
    {"activate", ActivateCase},
};

}  // namespace rhizome::simulator
