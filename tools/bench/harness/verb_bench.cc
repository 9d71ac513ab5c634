#include "tools/bench/harness/verb_bench.h"

#include <fmt/format.h>

#include "tools/cli/text.h"
#include "tools/cli/topology_flags.h"

namespace rhizome {
namespace {

std::string Scalar(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return WithCommas(value.get<std::uint64_t>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.dump();
}

/// Formats the fields of a bench: a line per number, a table per list of objects.
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
  verb.add_option("--store", store, "Read this store instead of one created for the run")
      ->type_name("STORE");
  verb.add_option("--dir", dir, "Folder for the temporary store, on the disk to measure")
      ->type_name("DIR")
      ->capture_default_str();
}

void AddQueueFlags(CLI::App& verb, std::uint32_t& depth, IoMaker& maker, const std::string& what) {
  verb.add_option("--depth", depth, "Requests in flight")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  AddIoFlag(verb, maker, "I/O method for reading " + what);
}

void AddTurnFlags(CLI::App& verb, std::uint32_t& rounds, double& seconds, const std::string& turn) {
  verb.add_option("--rounds", rounds,
                  "Number of rounds, in which every competitor is measured; the median is reported")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seconds", seconds, "Duration in seconds of " + turn)
      ->check(CLI::Range(0.01, 3600.0))
      ->type_name("X")
      ->capture_default_str();
}

void AddGraphFlags(CLI::App& verb, BenchGraphOptions& graph) {
  verb.add_option("--scale", graph.scale, "Generate an R-MAT graph with 2^N vertices")
      ->check(CLI::Range(1U, 40U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--edge-factor", graph.edge_factor, "Edges per vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--partitions", graph.partitions, "Number of partitions")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  AddFanouts(verb, graph.fanouts, "Neighbours to sample in each hop")->default_str("10,10,10");
  verb.add_option("--batch-size", graph.batch_size, "Seeds per minibatch")
      ->check(CLI::Range(1U, 1U << 30))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--seed", graph.seed, "Random seed; equal seeds give equal traces")
      ->type_name("N")
      ->capture_default_str();
  AddThreads(verb, graph.threads);
}

void AddMadeGraphFlags(CLI::App& verb, std::string& dir, std::uint32_t& scale,
                       std::uint32_t& edge_factor) {
  verb.add_option("--dir", dir, "Folder for files, on the disk to measure")
      ->type_name("DIR")
      ->capture_default_str();
  verb.add_option("--scale", scale, "Generate an R-MAT graph with 2^N vertices")
      ->check(CLI::Range(1U, 32U))
      ->type_name("N")
      ->capture_default_str();
  verb.add_option("--edge-factor", edge_factor, "Edges per vertex")
      ->check(CLI::Range(1U, 4096U))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace rhizome
