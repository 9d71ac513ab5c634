#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/storage/result.h"
#include "rhizome/storage/transport.h"

namespace rhizome {

/// Describes the MPI that ranks go by.
struct MpiFacts {
  std::string library;       ///< name and version, as it says itself
  std::string standard;      ///< "3.1"
  std::string thread_level;  ///< granted: "serialized" or "multiple"
};

/// The door of the module librhizome_mpi, which alone links MPI.
class MpiEntry {
 public:
  virtual ~MpiEntry() = default;

  /// Starts MPI and opens the transport of this process, together with all other processes of the
  /// job; once in a process. The transport ends MPI when it is destroyed, with those of all others.
  /// A rank may be silent for `peer_timeout`.
  /// Errors: kUnsupported, MPI does not grant threads that take turns; kIoError, it cannot start,
  /// or a rank does not come in time; kInvalidArgument, opened before.
  virtual Result<std::unique_ptr<Transport>> Open(std::chrono::nanoseconds peer_timeout) const = 0;

  /// Describes the MPI, once Open has succeeded.
  virtual MpiFacts facts() const = 0;

  /// Returns whether MPI could not be ended, because a rank is lost: this process must then end by
  /// _exit, since what MPI has registered for its end could wait for ever.
  virtual bool unfinished() const = 0;
};

inline constexpr const char* kMpiEntrySymbol = "rhizome_mpi_entry_v1";
inline constexpr const char* kMpiBuildSymbol = "rhizome_mpi_build_v1";

}  // namespace rhizome
