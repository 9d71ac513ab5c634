#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/manifest.h"
#include "rhizome/store.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// The source of a generation's files.
/// Threads: many at once.
class GenerationFiles {
 public:
  virtual ~GenerationFiles() = default;

  /// Loads a file by its path within the generation.
  /// Errors: as Store::LoadSectionFile.
  virtual Result<SectionFile> Load(const std::string& path, FileKind kind) = 0;

  /// Called when no part of that file is in memory any more.
  virtual void Release(const std::string& /*path*/) {}
};

/// Reads the files from the store, one by one.
class StoredFiles : public GenerationFiles {
 public:
  explicit StoredFiles(const Store& store) : store_(store) {}
  Result<SectionFile> Load(const std::string& path, FileKind kind) override {
    return store_.LoadSectionFile(path, kind);
  }

 private:
  const Store& store_;
};

/// The faults of the external ids, the order and the topology of a generation.
struct TopologyFindings {
  struct Finding {
    std::string file;  ///< path within the generation
    std::string what;
  };
  std::vector<Finding> damaged;
  std::vector<std::optional<std::uint64_t>> edges;  ///< by partition; nullopt if it did not parse
  std::set<std::string> homes_seen;  ///< home arrays that were checked while they were read
};

/// Maximum bytes of topology in memory at a time, unless a single partition is larger.
inline constexpr std::uint64_t kTopologyCheckBytes = std::uint64_t{1} << 30;

/// Checks all data on the graph in these files, on all processors: several partitions at a time,
/// and many lists of each.
/// Memory: kTopologyCheckBytes, or the largest partition; the order and the external ids; see also
/// TopologyVerifier.
/// Errors: kInterrupted; kOutOfMemory; kIoError, a file could not be read, which does not count as
/// damage.
Result<TopologyFindings> CheckTopology(const Manifest& manifest, GenerationFiles& files,
                                       const JobControl& control);

}  // namespace internal
}  // namespace rhizome
