#include <algorithm>

#include "storage/io/files.h"
#include "tools/bench/harness/results_page.h"
#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxReportBytes = std::uint64_t{16} << 20;

struct ReportFlags {
  std::string results = "docs/results";
  std::string out = "docs/RESULTS.md";
  bool check = false;
};

/// Returns OK if the file `flags.out` is the generated page. Errors: as CompareResultsPages; errors
/// of the file system.
Status CheckPage(const ReportFlags& flags, const ResultsPage& page) {
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes,
                           ReadWholeFile(FileSystem::Posix(), flags.out, kMaxReportBytes));
  const std::string_view there(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return CompareResultsPages(flags.out, there, flags.results, page.text);
}

Result<Answer> RunBenchReport(const ReportFlags& flags, Session& /*session*/) {
  RHIZOME_ASSIGN_OR_RETURN(const ResultsPage page,
                           MakeResultsPage(FileSystem::Posix(), flags.results));
  if (flags.check) {
    RHIZOME_RETURN_IF_ERROR(CheckPage(flags, page));
  } else {
    RHIZOME_RETURN_IF_ERROR(ProbeOutput(flags.out));
    RHIZOME_RETURN_IF_ERROR(WriteText(flags.out, page.text));
  }
  const std::ptrdiff_t lines = std::count(page.text.begin(), page.text.end(), '\n');
  Json fields = {{"workload", "report"},
                 {"page", flags.out},
                 {"sections", page.sections},
                 {"lines", static_cast<std::uint64_t>(lines)}};
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddReportBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench report --results docs/results --out RESULTS.md",
               flags, RunBenchReport);
  verb->add_option("--results", flags->results, "Folder with setup.json and the sections")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--out", flags->out, "Page to write")->type_name("FILE")->capture_default_str();
  verb->add_flag("--check", flags->check,
                 "Write nothing; exit with 1 and print the first line that differs if the page is "
                 "not up to date");
}

}  // namespace rhizome
