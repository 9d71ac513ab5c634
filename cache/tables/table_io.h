#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "cache/tables/row_table.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

/// Copies of rows that are to be written.
struct RowCopies {
  std::vector<Row> rows;
  std::vector<std::byte> bytes;  ///< row_bytes for each row

  void Add(Row row, std::span<const std::byte> row_bytes) {
    rows.push_back(row);
    bytes.insert(bytes.end(), row_bytes.begin(), row_bytes.end());
  }
};

/// Reads and writes rows of a table on one background thread, in the order of the calls. A row that
/// is read after it was written therefore has the written content.
/// After an error nothing more is read or written, and every wait returns the error.
/// Threads: one at a time. Ownership: the table must outlive it, and is not used by others except
/// after WaitForAll.
class TableIo {
 public:
  /// `most_bytes` bounds the bytes of waiting writes, unless a single call has more.
  TableIo(RowTable& table, std::size_t most_bytes) : table_(table), most_bytes_(most_bytes) {}
  ~TableIo();

  /// Errors: kOutOfMemory, no more threads.
  Status Start();

  /// Queues a write of distinct rows. Waits while too many bytes are queued.
  void Write(RowCopies copies);

  /// Queues a read. Returns the ticket to wait for; the memory of the targets must live until then.
  std::uint64_t Read(std::vector<RowTarget> targets);

  /// Waits until everything up to a ticket is done. Errors: as RowTable::Read and Write.
  Status WaitFor(std::uint64_t ticket);
  Status WaitForAll();

  /// Seconds in which WaitFor and Write waited.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Job {
    RowCopies write;
    std::vector<RowTarget> read;
  };
  std::uint64_t Push(Job job);
  void Run();
  Status Do(Job& job);

  RowTable& table_;
  const std::size_t most_bytes_;
  double wait_seconds_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t pushed_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool stopped_ RHIZOME_GUARDED_BY(mutex_) = false;
  Status status_ RHIZOME_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace internal
}  // namespace rhizome
