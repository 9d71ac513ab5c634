#include "gnn_library.h"

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

#include "rhizome/storage/build_id.h"

namespace rhizome {
namespace {

constexpr const char* kLibraryName = "librhizome_gnn.so." RHIZOME_SOVERSION;

/// Returns the paths to try, in order. The last is a bare name, which the system's loader looks up.
std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  std::error_code error;
  const Path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const Path folder = binary.parent_path();
    // In a folder of Python packages the program is rhizome/bin/rhizome, and the library is in the
    // package beside it.
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
  return Status::OutOfMemory(fmt::format(
      "there is not enough memory to load librhizome_gnn and libtorch: allow more addresses "
      "(ulimit -v), 1 GiB for a small graph.{}",
      reasons));
}

/// Returns whether so many bytes can be mapped now. None of them is used.
bool CanMap(std::size_t bytes, int protection) {
  void* const place =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place != MAP_FAILED && munmap(place, bytes) == 0;
}

/// libtorch allocates memory in its static initialisers. An exception there ends the process and
/// cannot be caught, so memory is checked beforehand. (Loading takes 434 MiB of addresses, 62 MiB
/// of them writable, and its threads take as much again when it works.)
bool HasRoomForTorch() {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return CanMap(512 * kMiB, PROT_NONE) && CanMap(96 * kMiB, PROT_READ | PROT_WRITE);
}

/// Returns the loader's reason if it failed for lack of memory or of descriptors, where installing
/// something would not help. The loader reports it in words alone. Some messages name no reason;
/// then it is memory if that is limited (else, for example, a disk mounted noexec).
std::optional<Status> ShortageIn(const std::string& reasons) {
  const auto says = [&](const char* what) { return reasons.find(what) != std::string::npos; };
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (says("annot allocate memory") || (limited && says("failed to map segment")))
    return NoRoom(reasons);
  if (says("Too many open files"))
    return Status::IoError(fmt::format(
        "librhizome_gnn cannot be loaded with so few descriptors: allow more (ulimit -n).{}",
        reasons));
  return std::nullopt;
}

/// Checks that a library that was found is of the same build as librhizome, whose classes it
/// shares.
Status CheckBuild(void* handle, const std::string& path) {
  void* const build = dlsym(handle, kGnnBuildSymbol);
  const std::string_view its =
      build == nullptr ? "another version" : reinterpret_cast<const char* (*)()>(build)();
  if (its == BuildId()) return Status::Ok();
  return Status::Unsupported(
      fmt::format("'{}' is not of the build of this librhizome, so they cannot work together; "
                  "install both from one build (librhizome: {}; librhizome_gnn: {})",
                  path, BuildId(), its));
}

/// Returns the address of the library's `symbol`.
Result<void*> Find(const char* symbol) {
  // libtorch's OpenMP threads spin while they wait, and on busy cores they steal each other's time
  // (an epoch of 0.7 s took 17 s beside two busy processes). The variable is read when the library
  // is loaded.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  if (!HasRoomForTorch()) return Fail(NoRoom(""));
  std::string reasons;
  for (const std::string& path : Candidates()) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("; {}", dlerror());  // NOLINT(concurrency-mt-unsafe): as above
      continue;
    }
    RHIZOME_RETURN_IF_ERROR(CheckBuild(handle, path));
    if (void* const entry = dlsym(handle, symbol); entry != nullptr) return entry;
    reasons += fmt::format("; {}: has no {}", path, symbol);
  }
  if (auto shortage = ShortageIn(reasons)) return Fail(*std::move(shortage));
  return Fail(Status::Unsupported(fmt::format(
      "training and inference need librhizome_gnn and the libtorch that it was built with. If "
      "rhizome came by pip: install the wheel rhizome-gnn of its version. If it was not built: "
      "tools/install_deps.sh installs libtorch, after which the build makes it. If "
      "libtorch is not found: name the folder of libtorch_cpu.so in LD_LIBRARY_PATH, or build with "
      "-DRHIZOME_TORCH= a folder that stays{}",
      reasons)));
}

/// Returns what the library's function `symbol` returns.
template <typename Door>
Result<const Door*> Load(const char* symbol) {
  RHIZOME_ASSIGN_OR_RETURN(void* const entry, Find(symbol));
  return reinterpret_cast<const Door* (*)()>(entry)();
}

}  // namespace

Result<const GnnEntry*> LoadGnnLibrary() { return Load<GnnEntry>(kGnnEntrySymbol); }
Result<const LinkScores*> LoadLinkScores() { return Load<LinkScores>(kLinkScoresSymbol); }

}  // namespace rhizome
