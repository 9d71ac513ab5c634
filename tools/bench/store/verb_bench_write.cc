#include "tools/bench/harness/verb_bench.h"
#include "tools/bench/store/bench_write.h"

namespace rhizome {
namespace {

struct WriteFlags {
  BenchWriteOptions options;
  std::string dir = ".";
};

Result<Answer> RunWrite(const WriteFlags& flags, Session& session) {
  BenchWriteOptions options = flags.options;
  options.dir = flags.dir;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchWrite(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

template <typename T>
void AddWriteCount(CLI::App& verb, const std::string& name, T& count, T most,
                   const std::string& what) {
  verb.add_option(name, count, what)
      ->check(CLI::Range(T{1}, most))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void AddWriteBench(const Bench& bench, CLI::App& root, Session& session) {
  auto flags = std::make_shared<WriteFlags>();
  BenchWriteOptions& options = flags->options;
  CLI::App* verb = AddBench(bench, root, session,
                            "rhizome bench write --scale 8 --puts 50 --batches 5", flags, RunWrite);
  verb->add_option("--dir", flags->dir,
                   "Folder for the store and the database, on the disk to measure")
      ->type_name("FOLDER")
      ->capture_default_str();
  AddWriteCount(*verb, "--scale", options.scale, 24U,
                "Generate a graph with 2^N vertices of 16 edges each");
  AddWriteCount(*verb, "--dim", options.dim, 65536U, "Floats per feature row");
  AddWriteCount(*verb, "--puts", options.puts, 10000000U, "Single puts per competitor");
  AddWriteCount(*verb, "--batches", options.batches, 1000000U, "Number of batches of 1,000 edges");
  AddWriteCount(*verb, "--threads", options.threads, 1024U, "Threads that put concurrently");
}

}  // namespace rhizome
