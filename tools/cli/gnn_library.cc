#include "tools/cli/gnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/store/build_id.h"
#include "tools/cli/engine_linkage.h"

namespace rhizome {
namespace {

constexpr const char* kLibraryName = "librhizome_gnn.so." RHIZOME_SOVERSION;

/// Returns the paths to try, in order. The last is a bare file name, which dlopen searches for on
/// its own path.
std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  std::error_code error;
  const Path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const Path folder = binary.parent_path();
    // In a Python installation the binary is rhizome/bin/rhizome in the folder of packages, and the
    // library is in the package rhizome_gnn next to it.
    for (const Path& beside : {folder, folder.parent_path() / "lib",
                               folder.parent_path().parent_path() / "rhizome_gnn"}) {
      const Path path = beside / kLibraryName;
      if (std::filesystem::exists(path, error)) paths.push_back(path.string());
    }
  }
  paths.push_back(kLibraryName);
  return paths;
}

Status NoRoom(const std::string& reasons) {
  return Status::OutOfMemory(
      fmt::format("not enough memory to load librhizome_gnn and libtorch: raise the limit on "
                  "address space (ulimit -v), for a small graph by 1 GiB.{}",
                  reasons));
}

/// Returns whether `bytes` of address space can be mapped now. The mapping is removed without being
/// touched.
bool CanMap(std::size_t bytes, int protection) {
  void* const place =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place != MAP_FAILED && munmap(place, bytes) == 0;
}

/// Checks that there is enough memory to load libtorch. Its static initialisers allocate memory,
/// and an exception in them ends the process and cannot be caught. Loading takes 434 MiB of address
/// space, 62 MiB of it writable; its threads take about the same again once it runs.
bool HasMemoryForTorch() {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return CanMap(512 * kMiB, PROT_NONE) && CanMap(96 * kMiB, PROT_READ | PROT_WRITE);
}

/// Returns an error if the dynamic loader failed for lack of memory or of file descriptors, in
/// which case installing a package would not help. The loader reports the cause only in its
/// message. Some messages name no cause; they are taken to mean memory if the address space is
/// limited (otherwise the cause may be, for example, a disk mounted noexec).
std::optional<Status> ShortageIn(const std::string& reasons) {
  const auto says = [&](const char* what) { return reasons.find(what) != std::string::npos; };
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (says("annot allocate memory") || (limited && says("failed to map segment")))
    return NoRoom(reasons);
  if (says("Too many open files"))
    return Status::IoError(
        fmt::format("librhizome_gnn cannot be loaded because the process has too many open files: "
                    "raise the limit (ulimit -n).{}",
                    reasons));
  return std::nullopt;
}

/// Checks that a library is of the same build as librhizome, because the two share C++ classes.
Status CheckBuild(void* handle, const std::string& path) {
  void* const build = dlsym(handle, kGnnBuildSymbol);
  const std::string_view its =
      build == nullptr ? "another version" : reinterpret_cast<const char* (*)()>(build)();
  if (its == BuildId()) return Status::Ok();
  return Status::Unsupported(
      fmt::format("'{}' and librhizome are from different builds, so they cannot be used together; "
                  "install both from one build (librhizome: {}; librhizome_gnn: {})",
                  path, BuildId(), its));
}

/// Loads the library and returns the address of its `symbol`.
Result<void*> Find(const char* symbol) {
  RHIZOME_RETURN_IF_ERROR(CheckSharesEngine("librhizome_gnn"));
  // The OpenMP threads of libtorch spin while they wait, and take processor time from each other on
  // busy cores: an epoch of 0.7 s took 17 s next to two busy processes. The variable is read when
  // the library is loaded.
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  if (!HasMemoryForTorch()) return Fail(NoRoom(""));
  std::string reasons;
  for (const std::string& path : Candidates()) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("; {}", dlerror());  // NOLINT(concurrency-mt-unsafe): as above
      continue;
    }
    RHIZOME_RETURN_IF_ERROR(CheckBuild(handle, path));
    if (void* const entry = dlsym(handle, symbol); entry != nullptr) return entry;
    reasons += fmt::format("; {}: the symbol {} is missing", path, symbol);
  }
  if (auto shortage = ShortageIn(reasons)) return Fail(*std::move(shortage));
  return Fail(Status::Unsupported(fmt::format(
      "training and inference need librhizome_gnn and the libtorch that it was built with. If "
      "rhizome was installed with pip, install the wheel rhizome-store-gnn of the same version, "
      "which tools/wheel.sh gnn builds. If it was built from source, install libtorch with "
      "tools/install_deps.sh and build again. If libtorch is "
      "not found, add the folder of libtorch_cpu.so to LD_LIBRARY_PATH, or build with "
      "-DRHIZOME_TORCH set to a permanent folder{}",
      reasons)));
}

/// Calls the library's function `symbol` and returns its result.
template <typename Door>
Result<const Door*> Load(const char* symbol) {
  RHIZOME_ASSIGN_OR_RETURN(void* const entry, Find(symbol));
  return reinterpret_cast<const Door* (*)()>(entry)();
}

}  // namespace

Result<const GnnEntry*> LoadGnnLibrary() { return Load<GnnEntry>(kGnnEntrySymbol); }
Result<const LinkScores*> LoadLinkScores() { return Load<LinkScores>(kLinkScoresSymbol); }

}  // namespace rhizome
