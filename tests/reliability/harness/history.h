#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reliability/harness/rocks_disk.h"
#include "rhizome/store.h"

namespace rhizome::testing {

/// The path of the store in every history.
inline const Path kStorePath = "/data/g.rz";

/// A recorded history of a store, which serves as the oracle: state i is what a reader saw after
/// step i had returned (0: before the first).
struct History {
  std::string name;
  std::vector<std::string> states;     ///< descriptions
  std::vector<FakeCrashPoint> points;  ///< before each operation, and at the end
  /// Numbers of states after which an unfinished step may leave a commit with rows of an array that
  /// does not exist yet.
  std::set<int> unused_rows;
};

/// Runs the steps of a history and records the states.
class Recorder {
 public:
  /// From now on, operations of the disk are recorded as crash points.
  Recorder(std::string name, StoreDisk& disk);

  /// Creates a recorder that only counts steps.
  Recorder() = default;

  /// Runs a step, which is acknowledged when it returns OK: from then on, it and all earlier steps
  /// must survive. A step that is not `durable` (sync = false) may be lost, but only together with
  /// all later ones.
  Status Step(const std::function<Status()>& step, bool durable = true);

  /// Runs a step that puts rows into the delta before it adds their array: if it does not finish,
  /// the rows may be there, unused.
  Status StepWithRows(const std::function<Status()>& step) {
    history_.unused_rows.insert(done_);
    return Step(step);
  }

  Result<History> Finish();

  /// Returns what a new reader saw after the last step; empty if the recorder only counts.
  std::string seen() const { return history_.states.empty() ? "" : history_.states.back(); }

  /// Returns the number of steps that must survive a power cut now.
  int acknowledged() const { return acknowledged_; }

  /// Requires that a failed step is the last one of its handle, if `expected` returns true after
  /// the failure: scenarios try another step and complain if it succeeds.
  void ExpectFailStop(std::function<bool()> expected) { fail_stop_ = std::move(expected); }
  bool expects_fail_stop() const { return fail_stop_ && fail_stop_(); }
  void Complain(std::string what) { complaint_ = std::move(what); }
  const std::string& complaint() const { return complaint_; }

  /// Numbers of steps that returned OK, and that were begun.
  int done() const { return done_; }
  int begun() const { return begun_; }

 private:
  Status Look();
  StoreDisk* disk_ = nullptr;
  History history_;
  Status broken_;
  int acknowledged_ = 0;
  int begun_ = 0;
  int done_ = 0;
  std::function<bool()> fail_stop_;
  std::string complaint_;
};

/// A history that can be run any number of times.
struct Scenario {
  std::string name;

  /// Creates the state before the first recorded operation.
  std::function<Status(StoreDisk&)> prepare;

  /// Runs the steps on any disk, including one with faults.
  std::function<Status(StoreDisk&, Recorder&)> run;
};

Result<History> Record(const Scenario& scenario);

/// Returns all scenarios: ingestion, updates, arrays, compaction, attributes, publishing, texts,
/// arrays of one vertex type.
const std::vector<Scenario>& Scenarios();

/// Ingests the small graph that every scenario begins with.
Status IngestSmall(FileSystem& fs);

/// Adds one vertex durably, which the leftovers of a crash must not prevent.
Status WriteOneMore(Store& store);

/// Checks the guarantees for concurrent processes: a second writer is refused, and a reader
/// continues to see the same state while writers change and drop arrays and compact. Returns what
/// is wrong.
std::optional<std::string> CheckSharing();

}  // namespace rhizome::testing
