#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mpi_entry.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome {

/// Says how a process was started as one of several.
struct LaunchedRank {
  std::string launcher;                ///< whose variables say so: "Open MPI", "PMIx", "PMI"
  std::optional<std::uint32_t> rank;   ///< where the launcher says it
  std::optional<std::uint32_t> ranks;  ///< likewise
};

/// Returns how this process was started, if a launcher of MPI (mpirun, mpiexec, srun) did it, by
/// the variables that it sets. Threads: none may change the environment meanwhile.
std::optional<LaunchedRank> LaunchedAsRank();

/// Loads librhizome_mpi, which brings MPI, from the binary's folder, from ../lib, or from where the
/// system's loader finds it. The binary itself links no MPI.
/// Errors: kUnsupported, it is not there or does not match; the message says how to get it.
Result<const MpiEntry*> LoadMpi();

/// Opens the transport of this process among those that the launcher has started; once in a
/// process. Errors: those of LoadMpi and MpiEntry::Open; kUnsupported, the launcher is of another
/// MPI.
Result<std::unique_ptr<Transport>> OpenRanks(double peer_timeout_seconds);

/// Returns `code`, with which main is to return, or ends the process with it at once if MPI could
/// not be ended.
int EndProcess(int code);

}  // namespace rhizome
