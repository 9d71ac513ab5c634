#include "tools/bench/harness/verb_bench.h"

namespace rhizome {
namespace {

struct NothingFlags {
  int rounds = 1;
};

Result<Answer> RunNothing(const NothingFlags& flags, Session&) {
  return Answer{{{"workload", "nothing"}, {"figure", flags.rounds - 1}}, DescribeBench, {}};
}

}  // namespace

void AddNothingBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<NothingFlags>();
  CLI::App* verb =
      AddBench(bench, root, session, "rhizome bench nothing --rounds 1", flags, RunNothing);
  verb->add_option("--rounds", flags->rounds, "How often");
}

}  // namespace rhizome
