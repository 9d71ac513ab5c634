#include "verb_bench.h"

#include <fmt/format.h>

#include "text.h"
#include "topology_flags.h"
#include "verbs.h"

namespace rhizome {
namespace {

std::string Scalar(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return WithCommas(value.get<std::uint64_t>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

/// A benchmark's fields as they are: a line for each number, a table for a list of objects.
std::string DescribeFields(const Json& fields, const std::string& indent) {
  TextTable lines;
  std::string nested;
  for (const auto& [key, value] : fields.items()) {
    if (value.is_object()) {
      nested += indent + key + "\n" + DescribeFields(value, indent + "  ");
    } else if (value.is_array() && !value.empty() && value[0].is_object()) {
      TextTable table;
      std::vector<std::string> head;
      for (const auto& [name, _] : value[0].items()) head.push_back(name);
      table.Add(std::move(head));
      for (const Json& item : value) {
        std::vector<std::string> row;
        for (const auto& [_, cell] : item.items()) row.push_back(Scalar(cell));
        table.Add(std::move(row));
      }
      nested += indent + key + "\n" + table.ToString(indent + "  ");
    } else {
      lines.Add({key, Scalar(value)});
    }
  }
  return lines.ToString(indent) + nested;
}

}  // namespace

std::string DescribeBench(const Json& fields) { return DescribeFields(fields, "  "); }

void AddPlaceFlags(CLI::App& verb, std::string& store, std::string& dir) {
  verb.add_option("--store", store, "Read this store instead of one made for the run")
      ->type_name("STORE");
  verb.add_option("--dir", dir, "Where the temporary store goes: the disk to be measured")
      ->type_name("DIR")
      ->capture_default_str();
}

void AddQueueFlags(CLI::App& verb, std::uint32_t& depth, IoMaker& maker, const std::string& what) {
  verb.add_option("--depth", depth, "Requests in flight")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  AddIoFlag(verb, maker, "How " + what + " are read");
}

void AddTurnFlags(CLI::App& verb, std::uint32_t& rounds, double& seconds, const std::string& turn) {
  verb.add_option("--rounds", rounds, "Turns of each contestant; the median counts")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seconds", seconds, "Length of " + turn)
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("X")
      ->capture_default_str();
}

void AddGraphFlags(CLI::App& verb, BenchGraphOptions& graph) {
  verb.add_option("--scale", graph.scale, "R-MAT of 2^N vertices")
      ->check(CLI::Range(1U, 40U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--edge-factor", graph.edge_factor, "Edges a vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--partitions", graph.partitions, "Parts of the graph")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  AddFanouts(verb, graph.fanouts, "Neighbours in each hop")->default_str("10,10,10");
  verb.add_option("--batch-size", graph.batch_size, "Seeds of a minibatch")
      ->check(CLI::Range(1U, 1U << 30))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seed", graph.seed, "Same seed, same trace")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(verb, graph.threads);
}

namespace {

struct GatherFlags {
  BenchGatherOptions options;
  std::string store;
  std::string dir = ".";
  bool buffered = false;
};

Result<Answer> RunGather(const GatherFlags& flags, Session& session) {
  BenchGatherOptions options = flags.options;
  if (!flags.store.empty()) options.store = flags.store;
  if (options.store && options.array.empty()) {
    return Fail(Status::InvalidArgument("--store needs --array, the array to read"));
  }
  options.dir = flags.dir;
  options.direct = !flags.buffered;
  RHIZOME_ASSIGN_OR_RETURN(Json fields, BenchGather(options, session.control));
  return Answer{std::move(fields), DescribeBench, {}};
}

void AddGather(CLI::App& bench, Session& session) {
  auto flags = std::make_shared<GatherFlags>();
  BenchGatherOptions& options = flags->options;
  CLI::App* verb =
      AddVerb(bench, session, "gather", "Cold random rows, against fio on the same files",
              "rhizome bench gather --bytes 64M --rounds 1 --seconds 0.2", flags, RunGather);
  AddPlaceFlags(*verb, flags->store, flags->dir);
  verb->add_option("--array", options.array, "Array of --store, in layout row")->type_name("NAME");
  AddSize(*verb, "--bytes", options.bytes, "Size of the temporary array")->default_str("4G");
  AddSize(*verb, "--row-bytes", options.row_bytes, "Bytes of its rows; a multiple of 4")
      ->default_str("1024");
  AddQueueFlags(*verb, options.depth, options.maker, "rows");
  verb->add_flag("--buffered", flags->buffered, "Through the page cache, not O_DIRECT");
  AddTurnFlags(*verb, options.rounds, options.seconds, "one turn");
  verb->add_option("--seed", options.seed, "Of the rows drawn")
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void AddMadeGraphFlags(CLI::App& verb, std::string& dir, std::uint32_t& scale,
                       std::uint32_t& edge_factor) {
  verb.add_option("--dir", dir, "Where files go: the disk to be measured")
      ->type_name("DIR")
      ->capture_default_str();
  verb.add_option("--scale", scale, "R-MAT of 2^N vertices")
      ->check(CLI::Range(1U, 32U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--edge-factor", edge_factor, "Edges a vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
}

void AddBenches(CLI::App& root, Session& session) {
  AddGather(root, session);
  AddBenchSample(root, session);
  AddBenchPool(root, session);
  AddBenchPartition(root, session);
  AddBenchTopology(root, session);
  AddBenchIngest(root, session);
  AddBenchVerify(root, session);
  AddBenchLookup(root, session);
  AddBenchWrite(root, session);
  AddBenchCompact(root, session);
  AddBenchAggregate(root, session);
  AddBenchStep(root, session);
  AddBenchInfer(root, session);
  AddBenchTrain(root, session);
}

}  // namespace rhizome
