#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_verify.h"

namespace rhizome {
namespace {

struct VerifyFlags {
  BenchVerifyOptions options;
  std::string store;
  std::string dir = ".";
};

Result<Answer> RunBenchVerify(const VerifyFlags& flags, Session& session) {
  BenchVerifyOptions options = flags.options;
  if (!flags.store.empty()) options.store = flags.store;
  options.dir = flags.dir;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchVerify(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

}  // namespace

void AddVerifyBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<VerifyFlags>();
  BenchVerifyOptions& options = flags->options;
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench verify --bytes 32M --rounds 1 --seconds 0.2",
               flags, RunBenchVerify);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  AddSize(*verb, "--bytes", options.bytes, "Size of the features of the temporary store")
      ->default_str("2G");
  AddSize(*verb, "--row-bytes", options.row_bytes, "Bytes per feature row")->default_str("1024");
  verb->add_option("--edge-factor", options.edge_factor, "Edges per vertex")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option(
          "--rounds", options.rounds,
          "Number of rounds, in which every competitor is measured; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seconds", options.fio_seconds, "Duration in seconds of a run of fio")
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("X")
      ->capture_default_str();
}

}  // namespace rhizome
