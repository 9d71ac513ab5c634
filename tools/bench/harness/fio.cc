#include "tools/bench/harness/fio.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "storage/io/files.h"
#include "storage/section/untrusted_json.h"
#include "tools/bench/harness/child_process.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxFioReportBytes = std::uint64_t{16} << 20;

/// Escapes a file name: fio separates names by colons and uses a backslash as escape character.
std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> Arguments(const FioJob& job, const Path& report) {
  std::string names;
  for (const std::string& file : job.files) {
    if (!names.empty()) names += ':';
    names += Escape(file);
  }
  std::vector<std::string> arguments = {
      "fio",
      "--name=gather",
      job.sequential ? "--rw=read" : "--rw=randread",
      "--readonly",
      "--norandommap",
      "--time_based",
      job.sequential ? "--file_service_type=sequential" : "--file_service_type=random",
      "--directory=" + Escape(job.folder.string()),
      "--filename=" + names,
      fmt::format("--bs={}", job.block_bytes),
      fmt::format("--direct={}", job.direct ? 1 : 0),
      fmt::format("--runtime={}ms", static_cast<std::uint64_t>(job.seconds * 1000)),
      fmt::format("--randseed={}", job.seed),
      "--output-format=json",
      "--output=" + report.string(),
  };
  if (job.uring) {
    // The reference may use all features of io_uring: registered buffers and files.
    arguments.insert(arguments.end(), {"--ioengine=io_uring", "--fixedbufs", "--registerfiles",
                                       fmt::format("--iodepth={}", job.depth)});
  } else {
    arguments.insert(arguments.end(), {"--ioengine=psync", "--thread", "--group_reporting",
                                       fmt::format("--numjobs={}", job.depth)});
  }
  return arguments;
}

Result<double> ParseReport(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(FileSystem::Posix(), path, kMaxFioReportBytes));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text.remove_prefix(std::min(text.find('{'), text.size()));  // warnings precede the report
  const auto report = ParseUntrustedJson(text);
  const nlohmann::json::json_pointer place("/jobs/0/read/iops");
  if (report.is_discarded() || !report.contains(place) || !report[place].is_number()) {
    return Fail(
        Status::IoError(fmt::format("fio: its report {} has no jobs[0].read.iops", path.string())));
  }
  return report[place].get<double>();
}

}  // namespace

Result<double> RunFio(const FioJob& job, const Path& scratch) {
  const Path report = scratch / "fio.json";
  const std::vector<std::string> arguments = Arguments(job, report);
  RHIZOME_ASSIGN_OR_RETURN(const int exit_code, RunChild(arguments));
  if (exit_code != 0) {
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    return Fail(Status::IoError(
        fmt::format("fio failed with exit code {}; the command was: {}", exit_code, command)));
  }
  return ParseReport(report);
}

}  // namespace rhizome
