#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/metrics.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// A folder of scratch files of a job on a store.
struct JobScratchFolder {
  Path path;
  std::uint64_t bytes = 0;  ///< total size of its files

  enum class State : std::uint8_t {
    kEnded,    ///< the job ended without removing it, for example because it was killed
    kRunning,  ///< the job is running
    kForeign,  ///< no job created it: it is never removed
  };
  State state = State::kEnded;
};

struct CleanOptions {
  bool dry_run = false;  ///< remove nothing
  Path scratch = {};     ///< also the store's folder below this one (StoreOptions::scratch)
};

struct CleanReport {
  std::vector<JobScratchFolder> folders;  ///< all that were found
  std::uint64_t removed = 0;              ///< number of folders that were removed
  std::uint64_t removed_bytes = 0;
};

/// Removes the scratch files of jobs that ended. A killed job cannot be resumed afterwards. Opening
/// a store for writing does the same; this function needs no lock of the store, so that readers,
/// a writer, and running jobs, whose files remain, are not affected.
/// Errors: kNotFound, there is no store; kCorruption, a folder contains links, pipes or devices;
/// kIoError, also if another store replaces this one in the meantime.
Result<CleanReport> CleanScratch(FileSystem& fs, const Path& store,
                                 const CleanOptions& options = {});

class JobControl;

enum class LogLevel : std::uint8_t {
  kDebug,    ///< details for developers of the engine
  kInfo,     ///< rare events: opened, compacted, a new generation
  kWarning,  ///< the operation continues, but the user should investigate
  kError,    ///< an operation failed in a way that its caller alone cannot repair
};

/// Returns "debug", "info", "warning" or "error".
std::string_view LogLevelName(LogLevel level);

/// One named value of a log line.
struct LogField {
  std::string key;
  Variant<std::int64_t, double, std::string> value;
};

/// One event in machine-readable form. `component` ("store", "graph", "catalogue") and `message`
/// are constant texts; `fields` holds the values that vary.
struct LogLine {
  std::chrono::system_clock::time_point time;
  LogLevel level = LogLevel::kInfo;
  std::string component;
  std::string message;
  std::vector<LogField> fields;
};

/// Formats a line as "2026-11-22T03:34:25.120Z info store: opened generation=3 path=\"a b.rz\"".
/// Values that are empty or contain blanks, quotes or control characters are quoted as in JSON.
std::string ToText(const LogLine& line);

/// Receives log lines. The logger calls it from its own thread, in order, shortly after the event
/// and without holding a lock of the engine. A slow callback delays no operation: if more than
/// Logger::kMaxWaiting lines are queued, further lines are dropped, and a later line reports their
/// number. A callback that throws loses only the current line. It may call the engine, but must not
/// release the last handle of the store that the line comes from.
using LogCallback = std::function<void(const LogLine&)>;

/// Access to a store. At most one process has it open for writing.
enum class Mode : std::uint8_t { kRead, kWrite };

/// Time to wait for the writer's lock of a store while another process or handle holds it.
struct LockWait {
  double seconds = 0;  ///< 0: do not wait

  /// If set, receives the progress of the wait; a cancellation ends it with kInterrupted. Borrowed
  /// for the call.
  const JobControl* control = nullptr;
};

/// Settings that are fixed when a Store opens. The defaults do not log and suit a laptop-sized
/// store. In a service, GraphService (rhizome/graph_service.h) derives them from its single memory
/// budget.
struct StoreOptions {
  /// Memory for blocks that were read from the catalogue, mostly rows of the delta, in bytes.
  std::uint64_t catalog_cache_bytes = std::uint64_t{8} << 20;

  /// Memory for data that was written to the catalogue and is not yet in its sorted files
  /// (memtables), in bytes. For a reader it limits how much of the writer's unflushed data it
  /// keeps. At least 1 MiB.
  std::uint64_t catalog_write_bytes = std::uint64_t{16} << 20;

  /// A folder for the scratch files of jobs, for example on another disk; it is created if needed.
  /// This store uses a subfolder named by the store's id. Empty: scratch/ in the store.
  std::filesystem::path scratch = {};

  /// The writes of this handle free space. On a full disk it may use, from its opening on, the
  /// blocks that the store sets aside for this purpose (storage/FORMAT.md, "Store directory").
  bool frees_space = false;

  /// Time to wait for the writer's lock; kBusy is returned after that.
  LockWait wait = {};

  /// The id that the store must have. A caller that opens the path of a store again sets it,
  /// because the path may lead to another store, which is not touched. Unset: any.
  std::optional<StoreId> id = {};

  /// Receives log lines of at least `log_level`, including the catalogue's warnings; empty: no log.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// Opens the store, for reading, at a point that a reader of that state holds: in any process, by
  /// a snapshot or handle that must live until this one is open. The new handle never changes its
  /// state, and holds the point itself. Unset: the last commit.
  std::optional<StorePoint> at = {};

  /// Counts the work of the store, its graphs and their look-ups; null: nothing is counted. Use one
  /// object per store; otherwise the counts of several stores are summed.
  std::shared_ptr<Metrics> metrics = {};
};

}  // namespace rhizome
