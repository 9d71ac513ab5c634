#include "tools/cli/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/store/build_id.h"
#include "tools/cli/engine_linkage.h"

namespace rhizome {
namespace {

constexpr const char* kMpiLibraryName = "librhizome_mpi.so";

std::atomic<const MpiEntry*> g_loaded_mpi{nullptr};

/// Names of the environment variables by which a launcher passes the rank and the number of ranks
/// (null if it does not pass the number).
struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* ranks;
};
constexpr std::array<LauncherVariables, 3> kLaunchers = {{
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE"},
    {"PMIx", "PMIX_RANK", nullptr},
}};

const char* Variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets variables
}

/// Returns the value of an environment variable as a number, or nullopt if it is not one.
std::optional<std::uint32_t> NumberOf(const char* name) {
  const std::string_view text = Variable(name) == nullptr ? "" : Variable(name);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Describes a process that a launcher started, such as "rank 1 of 3 (Open MPI started it)".
std::string Describe(const LaunchedRank& launched) {
  const auto number = [](const std::optional<std::uint32_t>& of) {
    return of ? std::to_string(*of) : std::string("?");
  };
  return fmt::format("rank {} of {}, started by {}", number(launched.rank), number(launched.ranks),
                     launched.launcher);
}

std::vector<std::string> MpiCandidates() {
  std::vector<std::string> paths;
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const auto& folder : {binary.parent_path(), binary.parent_path().parent_path() / "lib"}) {
    const std::filesystem::path path = folder / kMpiLibraryName;
    if (!error && std::filesystem::exists(path, error)) paths.push_back(path.string());
  }
  paths.emplace_back(kMpiLibraryName);
  return paths;
}

/// Checks that the module is of the same build as librhizome, because the two share C++ classes.
Status CheckMpiBuild(void* handle, const std::string& path) {
  void* const build = dlsym(handle, kMpiBuildSymbol);
  const std::string_view its =
      build == nullptr ? "another version" : reinterpret_cast<const char* (*)()>(build)();
  if (its == BuildId()) return Status::Ok();
  return Status::Unsupported(
      fmt::format("'{}' and librhizome are from different builds, so they cannot be used together; "
                  "install both from one build (librhizome: {}; librhizome_mpi: {})",
                  path, BuildId(), its));
}

}  // namespace

std::optional<LaunchedRank> LaunchedAsRank() {
  for (const LauncherVariables& names : kLaunchers) {
    if (Variable(names.rank) == nullptr) continue;
    LaunchedRank launched = {
        .launcher = names.launcher, .rank = NumberOf(names.rank), .ranks = std::nullopt};
    if (names.ranks != nullptr) launched.ranks = NumberOf(names.ranks);
    if (launched.ranks == 0U) launched.ranks.reset();
    return launched;
  }
  return std::nullopt;
}

Result<const MpiEntry*> LoadMpi() {
  RHIZOME_RETURN_IF_ERROR(CheckSharesEngine("librhizome_mpi"));
  std::string reasons;
  for (const std::string& path : MpiCandidates()) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reasons += fmt::format("; {}", dlerror());  // NOLINT(concurrency-mt-unsafe): as above
      continue;
    }
    RHIZOME_RETURN_IF_ERROR(CheckMpiBuild(handle, path));
    void* const symbol = dlsym(handle, kMpiEntrySymbol);
    if (symbol == nullptr) {
      reasons += fmt::format("; {}: the symbol {} is missing", path, kMpiEntrySymbol);
      continue;
    }
    const MpiEntry* const entry = reinterpret_cast<const MpiEntry* (*)()>(symbol)();
    g_loaded_mpi = entry;
    return entry;
  }
  return Fail(Status::Unsupported(
      fmt::format("ranks that are processes need librhizome_mpi and the MPI that it was built "
                  "with. If it was not built, install Open MPI with tools/install_deps.sh --mpi "
                  "and build again. If libmpi is not found, add its folder to LD_LIBRARY_PATH{}",
                  reasons)));
}

Result<std::unique_ptr<Transport>> OpenRanks(double peer_timeout_seconds) {
  const std::optional<LaunchedRank> launched = LaunchedAsRank();
  Result<const MpiEntry*> mpi = LoadMpi();
  if (!mpi)
    return Fail(launched ? mpi.error().WithContext(fmt::format(
                               "{} started this process as one of several", launched->launcher))
                         : mpi.error());
  auto opened =
      (*mpi)->Open(std::chrono::nanoseconds(static_cast<std::int64_t>(peer_timeout_seconds * 1e9)));
  if (!opened && launched) return Fail(opened.error().WithContext(Describe(*launched)));
  RHIZOME_ASSIGN_OR_RETURN(auto transport, std::move(opened));
  if (launched && launched->ranks.value_or(transport->ranks()) != transport->ranks())
    return Fail(Status::Unsupported(fmt::format(
        "this process is one of {}, started by {}, but {} reports {}: start the ranks with the "
        "mpirun of that MPI",
        *launched->ranks, launched->launcher, (*mpi)->facts().library, transport->ranks())));
  return transport;
}

int EndProcess(int code) {
  const MpiEntry* const mpi = g_loaded_mpi;
  if (mpi == nullptr || !mpi->unfinished()) return code;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace rhizome
