#include "bench_library.h"

#include "gnn_library.h"

namespace rhizome {

Result<const GnnBench*> LoadGnnBench() {
  RHIZOME_ASSIGN_OR_RETURN(void* const entry,
                           FindInTorchLibrary(kGnnBenchLibrary, kGnnBenchSymbol));
  return reinterpret_cast<const GnnBench* (*)()>(entry)();
}

}  // namespace rhizome
