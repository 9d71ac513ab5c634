#include "gnn_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
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
  paths.emplace_back(kLibraryName);
  return paths;
}

/// What the library's function `symbol` returns.
template <typename Door>
Result<const Door*> Load(const char* symbol) {
  // libtorch's OpenMP threads spin while they wait, and on busy cores they take each other's turns
  // (an epoch of 0.7 s took 17 s beside two busy processes). Read when the library is loaded.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads
  setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  std::string reasons;
  for (const std::string& path : Candidates()) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      reasons += fmt::format("\n  {}", dlerror());  // NOLINT(concurrency-mt-unsafe): as above
      continue;
    }
    using Entry = const Door* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(library, symbol));
    if (entry != nullptr) return entry();
    reasons += fmt::format("\n  {}: has no {}", path, symbol);
  }
  return Fail(Status::Unsupported(fmt::format(
      "training and inference need librhizome_gnn and the libtorch that it was built with. If it "
      "was "
      "not built: tools/install_deps.sh installs libtorch, after which the build makes it. If "
      "libtorch is not found: name the folder of libtorch_cpu.so in LD_LIBRARY_PATH, or build with "
      "-DRHIZOME_TORCH= a folder that stays.{}",
      reasons)));
}

}  // namespace

Result<const GnnEntry*> LoadGnnLibrary() { return Load<GnnEntry>(kGnnEntrySymbol); }
Result<const GnnBench*> LoadGnnBench() { return Load<GnnBench>(kGnnBenchSymbol); }
Result<const LinkScores*> LoadLinkScores() { return Load<LinkScores>(kLinkScoresSymbol); }

}  // namespace rhizome
