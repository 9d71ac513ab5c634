#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "storage/io/files.h"
#include "storage/io/io_queue.h"
#include "storage/store/library_versions.h"
#include "tools/cli/gnn_library.h"
#include "tools/cli/machine.h"
#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"
#include "tools/verbs/doctor_ranks.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct DoctorFlags {
  std::string store;
  DoctorRankFlags of_ranks;
};

/// Returns the first line of a file of /proc or /sys, or nullopt if there is none.
std::optional<std::string> FirstLine(const Path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

/// Returns a resource limit, in bytes or as a count, or null if there is none.
Json Limit(int resource) {
  rlimit limit = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return nullptr;
  return static_cast<std::uint64_t>(limit.rlim_cur);
}

/// Returns the cgroup of this process in the hierarchy of `controller` (empty: cgroup version 2),
/// from lines such as "4:memory:/rz".
std::string CgroupFolder(std::string_view controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = SplitList(line, ':');
    if (parts.size() >= 3 && parts[1] == controller) return parts[2];
  }
  return {};
}

/// Returns the memory limit of the cgroup, the minimum over it and its ancestors, or null if there
/// is none.
Json CgroupMemory() {
  // version 1 expresses "no limit" as a huge number of bytes
  constexpr std::uint64_t kNone = std::uint64_t{1} << 60;
  std::uint64_t least = kNone;
  const auto look = [&](Path root, const std::string& folder, const char* name) {
    for (Path at = folder;; at = at.parent_path()) {
      const auto text = FirstLine(root / at.relative_path() / name);
      const auto bytes = text ? ParseSize(*text) : std::nullopt;
      if (bytes) least = std::min(least, *bytes);
      if (!at.has_relative_path()) return;
    }
  };
  look("/sys/fs/cgroup", CgroupFolder(""), "memory.max");
  look("/sys/fs/cgroup/memory", CgroupFolder("memory"), "memory.limit_in_bytes");
  return least == kNone ? Json(nullptr) : Json(least);
}

Json UringJson() {
  IoQueueOptions options;
  options.maker = IoMaker::kUring;
  const auto queue = IoQueue::Open(options);
  Json found = {{"allowed", queue.has_value()}};
  if (!queue) found["why_not"] = queue.error().message();
  const auto disabled = FirstLine("/proc/sys/kernel/io_uring_disabled");
  if (disabled) found["sysctl_io_uring_disabled"] = *disabled;
  return found;
}

/// Checks whether O_DIRECT is supported for files in `folder`, and its alignment. Tries `file` or,
/// if that is empty, a temporary file in `folder`.
Json DirectJson(const Path& folder, const Path& file) {
  FileSystem& fs = FileSystem::Posix();
  Json found = {{"folder", folder.string()}, {"granted", false}, {"unit_bytes", nullptr}};
  Path probe = file;
  if (probe.empty()) {
    probe = folder / fmt::format(".rhizome-doctor-{}", getpid());
    const std::vector<std::byte> bytes(4096);
    if (const Status made = WriteWholeFile(fs, probe, bytes); !made.ok()) {
      found["why_not"] = made.message();
      return found;
    }
  }
  const auto opened = fs.OpenRead(probe, {.direct = true});
  if (file.empty()) static_cast<void>(fs.RemoveFile(probe));
  if (!opened) {
    found["why_not"] = opened.error().message();
  } else if ((*opened)->alignment_bytes() > 1) {
    found["granted"] = true;
    found["unit_bytes"] = (*opened)->alignment_bytes();
  } else {
    found["why_not"] = "the file system does not support O_DIRECT";
  }
  return found;
}

/// Returns the I/O method that reads will use, and the reason.
Json PathJson(const Json& f) {
  const bool uring = f["io_uring"]["allowed"].get<bool>();
  const bool direct = f["direct"]["granted"].get<bool>();
  std::string why = uring ? "io_uring is allowed"
                          : "io_uring is not available (" +
                                f["io_uring"]["why_not"].get<std::string>() +
                                "), so threads call pread";
  why += direct ? fmt::format("; O_DIRECT is supported in units of {} bytes",
                              f["direct"]["unit_bytes"].get<std::uint64_t>())
                : "; O_DIRECT is not supported (" + f["direct"]["why_not"].get<std::string>() +
                      "), so reads go through the page cache";
  return {{"maker", uring ? "uring" : "pread"}, {"direct", direct}, {"why", std::move(why)}};
}

Json Advice(const Json& f) {
  Json advice = Json::array();
  const Json& limits = f["limits"];
  if (!limits["memlock_bytes"].is_null() && limits["memlock_bytes"] < (8U << 20))
    advice.push_back(
        "ulimit -l is low: io_uring works, but without registered memory; raise it to 64M");
  if (!limits["open_files"].is_null() && limits["open_files"] < 1024)
    advice.push_back(
        "ulimit -n is low: arrays with many chunks and the catalogue need more open files; raise "
        "it to 4096");
  if (!f["io_uring"]["allowed"].get<bool>())
    advice.push_back(
        "random reads are slower with pread: allow io_uring in this container (seccomp profile, "
        "kernel.io_uring_disabled=0)");
  if (!f["direct"]["granted"].get<bool>())
    advice.push_back(
        "put the store on a file system with O_DIRECT (ext4, xfs): then --memory also limits the "
        "memory of reads");
  const std::string filesystem = f["machine"]["filesystem"].get<std::string>();
  if (LocksMayBeLocal(filesystem))
    advice.push_back(
        fmt::format("locks on {} may be visible on this machine only (nfs without a lock manager, "
                    "or mounted with local_lock): write to a store from one machine only, and not "
                    "while ranks on other machines read it",
                    filesystem));
  return advice;
}

/// Describes the device used for training, or the reason why there is none.
Json DeviceOfTraining(const Result<const GnnEntry*>& gnn) {
  Json found = {{"found", false}, {"driver", nullptr}};
  if (const auto driver = FirstLine("/proc/driver/nvidia/version")) found["driver"] = *driver;
  if (!gnn) {
    found["why_not"] = "librhizome_gnn not found";
    return found;
  }
  const Result<DeviceProbe> probe = (*gnn)->ProbeDevice();
  if (!probe) {
    found["why_not"] = probe.error().message();
    return found;
  }
  found["found"] = true;
  found["name"] = probe->name;
  found["sm"] = probe->sm;
  found["driver_cuda"] = probe->driver;
  found["memory_bytes"] = probe->memory_bytes;
  found["free_bytes"] = probe->free_bytes;
  found["copy_bytes_per_second"] = probe->copy_bytes_per_second;
  found["registers_memory"] = probe->registers;
  if (!probe->registers) found["why_not_registered"] = probe->why_not_registered;
  return found;
}

std::string DescribeDeviceOfTraining(const Json& device) {
  if (!device["found"].get<bool>()) return "none: " + device["why_not"].get<std::string>();
  return fmt::format(
      "{} (sm_{}), driver for CUDA {}, {} of {} free, copies at {}/s; host memory {} registered",
      device["name"].get<std::string>(), device["sm"].get<int>(),
      device["driver_cuda"].get<std::string>(), HumanBytes(device["free_bytes"]),
      HumanBytes(device["memory_bytes"]),
      HumanBytes(static_cast<std::uint64_t>(device["copy_bytes_per_second"].get<double>())),
      device["registers_memory"].get<bool>() ? "can be" : "cannot be");
}

Json VersionsJson() {
  Json versions = Json::object();
  for (const auto& [name, version] : LibraryVersions()) versions[name] = version;
  return versions;
}

std::string OrNone(const Json& bytes) {
  return bytes.is_null() ? "none" : HumanBytes(bytes.get<std::uint64_t>());
}

std::string DescribeDoctor(const Json& f) {
  TextTable table;
  const Json& machine = f["machine"];
  table.Add({"kernel", machine["kernel"].get<std::string>()});
  table.Add({"processor", fmt::format("{}, {} threads", machine["cpu"].get<std::string>(),
                                      machine["cpus"].get<unsigned>())});
  table.Add({"file system", fmt::format("{} on {}", machine["filesystem"].get<std::string>(),
                                        machine["device"].get<std::string>())});
  table.Add({"reads", fmt::format("{}, {}", f["path"]["maker"].get<std::string>(),
                                  f["path"]["direct"].get<bool>() ? "direct" : "buffered")});
  table.Add({"reason", f["path"]["why"].get<std::string>()});
  const Json& limits = f["limits"];
  table.Add({"locked memory", OrNone(limits["memlock_bytes"])});
  table.Add(
      {"open files", limits["open_files"].is_null() ? "no limit" : limits["open_files"].dump()});
  table.Add({"memory limit of the control group", OrNone(limits["cgroup_memory_bytes"])});
  table.Add({"free on disk", OrNone(f["free_bytes"])});
  std::string versions;
  for (const auto& [name, version] : f["versions"].items())
    versions += (versions.empty() ? "" : ", ") + name + " " + version.get<std::string>();
  table.Add({"libraries", versions});
  table.Add({"training and inference",
             f["gnn_library"].get<bool>() ? "librhizome_gnn found" : "librhizome_gnn not found"});
  table.Add({"device", DescribeDeviceOfTraining(f["device"])});
  std::string text = table.ToString();
  for (const Json& line : f["advice"]) text += "hint: " + line.get<std::string>() + "\n";
  return text;
}

// Examines the machine: (1) opens the store, if one is given; (2) tries io_uring and O_DIRECT; (3)
// reads the limits of the process and its cgroup, and the free space; (4) checks for a device; (5)
// derives the I/O method of reads, and advice. With --ranks, examines the ranks of a job instead.
Result<Answer> RunDoctor(const DoctorFlags& flags, Session& session) {
  if (flags.of_ranks.ranks.ranked) {
    DoctorRankFlags of_ranks = flags.of_ranks;
    of_ranks.store = flags.store;
    return ExamineRanks(of_ranks, session);
  }
  FileSystem& fs = FileSystem::Posix();
  const Path folder = flags.store.empty() ? Path(".") : Path(flags.store);
  Json fields;
  if (!flags.store.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(fs, folder, Store::Mode::kRead));
    fields["store"] = flags.store;
    fields["generation"] = store->manifest().generation;
  }
  fields["format"] = StoreFormatVersion();
  fields["machine"] = DescribeMachine(folder);
  fields["io_uring"] = UringJson();
  fields["direct"] = DirectJson(folder, flags.store.empty() ? Path() : folder / "FORMAT");
  fields["limits"] = {{"memlock_bytes", Limit(RLIMIT_MEMLOCK)},
                      {"open_files", Limit(RLIMIT_NOFILE)},
                      {"address_space_bytes", Limit(RLIMIT_AS)},
                      {"cgroup_memory_bytes", CgroupMemory()}};
  const auto free = fs.FreeBytes(folder);
  fields["free_bytes"] = free ? Json(*free) : Json(nullptr);
  fields["versions"] = VersionsJson();
  const auto gnn = LoadGnnLibrary();
  fields["gnn_library"] = gnn.has_value();
  fields["device"] = DeviceOfTraining(gnn);
  fields["path"] = PathJson(fields);
  fields["advice"] = Advice(fields);
  return Answer{std::move(fields), DescribeDoctor, {}};
}

}  // namespace

void AddDoctorVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* verb = AddVerb(root, session, "doctor",
                           "Report what this machine supports, which read method is used, and why",
                           "rhizome doctor", flags, RunDoctor);
  verb->add_option("STORE", flags->store, "The store's folder; default: the current folder");
  AddRankFlags(*verb, flags->of_ranks.ranks,
               "Examine the ranks of a job instead, and the connections between them: the "
               "processes that mpirun started, or N threads of this process; with STORE, also how "
               "fast they serve its rows");
  verb->add_option("--features", flags->of_ranks.features,
                   "With --ranks: array whose rows are served")
      ->type_name("NAME")
      ->default_val("feat");
  AddBaselineIoFlag(*verb, flags->of_ranks.io,
                    "With --ranks: I/O method for reading the served rows");
}

}  // namespace rhizome
