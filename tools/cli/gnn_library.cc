#include "gnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rhizome {
namespace {

constexpr const char* kLibraryName = "librhizome_gnn.so." RHIZOME_SOVERSION;

/// Paths to try in order; the last is a bare name, which the system's loader looks up.
std::vector<std::string> Candidates() {
  std::vector<std::string> paths;
  std::error_code error;
  const Path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const Path folder = binary.parent_path();
    for (const Path& beside : {folder, folder.parent_path() / "lib"}) {
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

/// Can so much be mapped now? Nothing of it is used.
bool CanMap(std::size_t bytes, int protection) {
  void* const place =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return place != MAP_FAILED && munmap(place, bytes) == 0;
}

/// libtorch takes memory in its static initialisers. What they throw ends the process, and nobody
/// who loads it can catch it: there must be enough before. (It takes 434 MiB of addresses, 62 MiB
/// of them to write to, and as much again with its threads when it works.)
bool HasRoomForTorch() {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  return CanMap(512 * kMiB, PROT_NONE) && CanMap(96 * kMiB, PROT_READ | PROT_WRITE);
}

/// Why the loader gave up, if it was for want of memory or of descriptors: to install something
/// does not help. It has words alone for it, and in some it names no reason, which is memory where
/// that is limited (and else, say, a disk of which nothing may be executed).
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

/// The address of the library's `symbol`.
Result<void*> Find(const char* symbol) {
  // libtorch's OpenMP threads spin while they wait, and on busy cores they take each other's turns
  // (an epoch of 0.7 s took 17 s beside two busy processes). Read when the library is loaded.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  if (!HasRoomForTorch()) return Fail(NoRoom(""));
  std::string reasons;
  for (const std::string& path : Candidates()) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("\n  {}", dlerror());  // NOLINT(concurrency-mt-unsafe): as above
      continue;
    }
    if (void* const entry = dlsym(handle, symbol); entry != nullptr) return entry;
    reasons += fmt::format("\n  {}: has no {}", path, symbol);
  }
  if (auto shortage = ShortageIn(reasons)) return Fail(*std::move(shortage));
  return Fail(Status::Unsupported(fmt::format(
      "training and inference need librhizome_gnn and the libtorch that it was built with. If it "
      "was "
      "not built: tools/install_deps.sh installs libtorch, after which the build makes it. If "
      "libtorch is not found: name the folder of libtorch_cpu.so in LD_LIBRARY_PATH, or build with "
      "-DRHIZOME_TORCH= a folder that stays.{}",
      reasons)));
}

/// What the library's function `symbol` returns.
template <typename Door>
Result<const Door*> Load(const char* symbol) {
  RHIZOME_ASSIGN_OR_RETURN(void* const entry, Find(symbol));
  return reinterpret_cast<const Door* (*)()>(entry)();
}

}  // namespace

Result<const GnnEntry*> LoadGnnLibrary() { return Load<GnnEntry>(kGnnEntrySymbol); }
Result<const LinkScores*> LoadLinkScores() { return Load<LinkScores>(kLinkScoresSymbol); }

}  // namespace rhizome
