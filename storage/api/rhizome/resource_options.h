#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

struct ReadRequest;

/// The implementations of a queue.
enum class IoMaker : std::uint8_t {
  kAuto = 0,  ///< io_uring if the kernel allows it, else pread
  kUring,
  kPread,
  kMapped,  ///< copies out of mapped files: a baseline for benchmarks, no protection from damage
};
std::string_view IoMakerName(IoMaker maker);

struct IoQueueOptions {
  IoMaker maker = IoMaker::kAuto;

  /// Requests in flight at once. Range [1, 4096].
  std::uint32_t depth = 64;

  /// Threads of the pread queue. Range [1, 256].
  std::uint32_t pread_threads = 8;

  /// For tests: receives the raw outcome of every read (bytes, or -errno) of io_uring and pread,
  /// and returns the outcome that the queue uses instead. May be called from several threads. A
  /// failed ReadableFile::ReadAt (pread, and files without a descriptor) appears as -EIO.
  std::function<std::int64_t(const ReadRequest&, std::int64_t)> fault_hook = {};
};

struct RowReaderOptions {
  IoQueueOptions io;

  /// Reads with O_DIRECT if the file system supports it.
  bool direct = true;

  /// Two requested ranges that are at most this far apart, in bytes, are read as one. The cost of a
  /// read is a fixed time plus bytes divided by bandwidth (ReadCost), so reading a small gap is
  /// cheap compared with another read.
  std::uint64_t gap_bytes = 4096;

  /// Max size of a single read, in bytes; a longer row is still read at once.
  std::uint64_t max_read_bytes = 256 << 10;

  /// Size, in bytes, of the staging memory into which reads go before the rows are checked and
  /// copied out. None is allocated with IoMaker::kMapped, which reads nothing. Must hold the
  /// longest read and 8 KiB.
  std::size_t staging_bytes = std::size_t{16} << 20;
};

/// Counts since the reader was opened.
struct RowReaderStats {
  std::uint64_t rows = 0;        ///< rows delivered
  std::uint64_t reads = 0;       ///< reads issued
  std::uint64_t read_bytes = 0;  ///< bytes of those reads
  double mean_depth = 0;         ///< requests in flight, averaged over reads
  IoMaker maker = IoMaker::kAuto;
  bool direct = false;  ///< whether any file was read with O_DIRECT
};

/// The cost of reads on a disk with a full queue: a fixed time per read, plus bytes divided by
/// bandwidth. The defaults are from one NVMe drive.
struct ReadCost {
  double seconds_per_read = 4.8e-6;
  double bytes_per_second = 4.4e9;
  std::optional<std::uint64_t> fixed_gap_bytes = {};  ///< replaces the computed gap_bytes()

  double SecondsFor(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / bytes_per_second;
  }

  /// Two ranges at most this far apart, in bytes, are read as one. It is a third of the gap beyond
  /// which one read takes longer than two: between these two gaps the time is about the same, but
  /// more bytes are read.
  std::uint64_t gap_bytes() const {
    if (fixed_gap_bytes) return *fixed_gap_bytes;
    return static_cast<std::uint64_t>(seconds_per_read * bytes_per_second / 3);
  }
};

/// The resources that a job may use.
struct ResourceOptions {
  std::uint32_t threads = 1;

  /// Memory limit of the whole process beyond its bare footprint, in bytes; 0: no limit.
  std::uint64_t memory_bytes = 0;

  /// How files are read in many small pieces: rows of features, and adjacency lists on disk.
  IoMaker io = IoMaker::kAuto;
};

}  // namespace rhizome
