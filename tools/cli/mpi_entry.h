#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/status.h"
#include "rhizome/transport.h"

namespace rhizome {

/// Describes the MPI library in use.
struct MpiFacts {
  std::string library;       ///< name and version, as the library reports them
  std::string standard;      ///< "3.1"
  std::string thread_level;  ///< thread support that MPI granted: "serialized" or "multiple"
};

/// Entry point of the module librhizome_mpi, the only one that is linked to MPI.
class MpiEntry {
 public:
  virtual ~MpiEntry() = default;

  /// Starts MPI and opens the transport of this process; all processes of the job call it together,
  /// each at most once. When the transport is destroyed, MPI is finalised together with all other
  /// ranks. A rank that is silent for longer than `peer_timeout` counts as lost.
  /// Errors: kUnsupported, MPI does not grant at least MPI_THREAD_SERIALIZED; kIoError, MPI cannot
  /// start, or a rank does not arrive in time; kInvalidArgument, Open was called before.
  virtual Result<std::unique_ptr<Transport>> Open(std::chrono::nanoseconds peer_timeout) const = 0;

  /// Describes the MPI library. Valid once Open has succeeded.
  virtual MpiFacts facts() const = 0;

  /// Returns whether MPI could not be finalised because a rank is lost. This process must then end
  /// with _exit: the exit handlers that MPI has registered could block forever.
  virtual bool unfinished() const = 0;
};

inline constexpr const char* kMpiEntrySymbol = "rhizome_mpi_entry_v1";
inline constexpr const char* kMpiBuildSymbol = "rhizome_mpi_build_v1";

}  // namespace rhizome
