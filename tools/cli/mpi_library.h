#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/status.h"
#include "rhizome/transport.h"
#include "tools/cli/mpi_entry.h"

namespace rhizome {

/// Describes how a launcher started this process as one of several ranks.
struct LaunchedRank {
  std::string launcher;  ///< the launcher whose variables are set: "Open MPI", "PMIx", "PMI"
  std::optional<std::uint32_t> rank;   ///< absent if the launcher does not set it
  std::optional<std::uint32_t> ranks;  ///< likewise
};

/// Returns how an MPI launcher (mpirun, mpiexec, srun) started this process, from the environment
/// variables that it sets, or nullopt.
/// Threads: no thread may change the environment concurrently.
std::optional<LaunchedRank> LaunchedAsRank();

/// Loads librhizome_mpi and with it MPI, to which the binary itself is not linked. Searches the
/// binary's folder, ../lib, and the search path of the dynamic loader.
/// Errors: kUnsupported, the library is missing or of another build; the message says how to
/// install it.
Result<const MpiEntry*> LoadMpi();

/// Opens the transport of this process to the other ranks that the launcher started. At most once
/// per process.
/// Errors: as LoadMpi and MpiEntry::Open; kUnsupported, the launcher belongs to another MPI.
Result<std::unique_ptr<Transport>> OpenRanks(double peer_timeout_seconds);

/// Returns `code`, the exit code that main must return. If MPI could not be finalised, ends the
/// process with `code` at once instead.
int EndProcess(int code);

}  // namespace rhizome
