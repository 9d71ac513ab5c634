#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// Where the files of a generation come from. Threads: many at once.
class GenerationFiles {
 public:
  virtual ~GenerationFiles() = default;

  /// A file, by its path within the generation. Errors: those of Store::LoadSectionFile.
  virtual Result<SectionFile> Load(const std::string& path, FileKind kind) = 0;

  /// Nothing of that file is in memory any more.
  virtual void Release(const std::string& /*path*/) {}
};

/// From the store, one by one.
class StoredFiles : public GenerationFiles {
 public:
  explicit StoredFiles(const Store& store) : store_(store) {}
  Result<SectionFile> Load(const std::string& path, FileKind kind) override {
    return store_.LoadSectionFile(path, kind);
  }

 private:
  const Store& store_;
};

/// What is wrong with the external ids, the order and the topology of a generation.
struct TopologyFindings {
  struct Finding {
    std::string file;  ///< within the generation
    std::string what;
  };
  std::vector<Finding> damaged;
  std::vector<std::optional<std::uint64_t>> edges;  ///< of each partition that parsed
};

/// Bytes of topology that are in memory at a time, where no single partition has more.
inline constexpr std::uint64_t kTopologyCheckBytes = std::uint64_t{1} << 30;

/// Checks all that these files say of the graph, on all processors: several partitions at a time,
/// and of each many lists. Memory: kTopologyCheckBytes, or the largest partition; the order and the
/// external ids; see also TopologyVerifier. Errors: kInterrupted; kOutOfMemory; kIoError, a file
/// could not be read, which is no damage.
Result<TopologyFindings> CheckTopology(const Manifest& manifest, GenerationFiles& files,
                                       const JobControl& control);

}  // namespace rhizome::inline internal
