#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "cache/job/process_memory.h"
#include "index/ingest/edge_pairs.h"
#include "index/input/npy_header.h"
#include "storage/io/files.h"
#include "tools/cli/help.h"
#include "tools/cli/scratch_folder.h"
#include "tools/cli/text.h"
#include "tools/import/layout_flags.h"
#include "tools/import/partition_run.h"
#include "tools/verbs/partition_rows.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers go to files as they are");

struct PartitionFlags {
  IngestOptions input;
  std::vector<std::string> edges;
  PartitionOptions options;
  bool rows = false;
  RowsFlags homes;
  std::uint32_t seeds = 1;
  std::string out;
  std::string dir = ".";
};

Status WriteParts(const std::string& path, const std::vector<PartitionId>& parts) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile out, OutputFile::Create(path));
  const std::string header = NpyHeaderBytes("<u2", parts.size());
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(header))));
  RHIZOME_RETURN_IF_ERROR(out.Append(std::as_bytes(std::span(parts))));
  return out.Commit();
}

// Returns minimum, median and maximum of a field over the runs.
Json Spread(const Json& runs, const char* field) {
  std::vector<double> values;
  for (const Json& run : runs) values.push_back(run[field]);
  std::sort(values.begin(), values.end());
  return {{"min", values.front()}, {"median", values[values.size() / 2]}, {"max", values.back()}};
}

std::string DescribePartition(const Json& f) {
  TextTable table;
  table.Add({"seed", "RF", "V max/mean", "V max/min", "E max/mean", "E max/min", "interior",
             "owners", "seconds", "CPU s", "bytes/edge"});
  for (const Json& run : f["runs"]) {
    const Json& bytes = run["bytes_per_edge"];
    table.Add({WithCommas(run["seed"].get<std::uint64_t>()),
               fmt::format("{:.4f}", run["replication_factor"].get<double>()),
               fmt::format("{:.3f}", run["vertex_balance"].get<double>()),
               MaxOverMinText(run["vertex_max_over_min"]),
               fmt::format("{:.3f}", run["edge_balance"].get<double>()),
               MaxOverMinText(run["edge_max_over_min"]),
               fmt::format("{:.3f}", run["interior_share"].get<double>()),
               fmt::format("{:.3f}", run["owner_balance"].get<double>()),
               fmt::format("{:.2f}", run["seconds"].get<double>()),
               fmt::format("{:.2f}", run["cpu_seconds"].get<double>()),
               bytes.is_null() ? "-" : fmt::format("{:.1f}", bytes.get<double>())});
  }
  return fmt::format("{}, {} partitions: {} edges between {} vertices\n",
                     f["partitioner"].get<std::string>(), f["partitions"].get<std::uint32_t>(),
                     WithCommas(f["edges"].get<std::uint64_t>()),
                     WithCommas(f["vertices"].get<std::uint64_t>())) +
         table.ToString("  ");
}

// Partitions: (1) reads the edge files into a scratch folder; (2) with --rows, delegates to
// PartitionRows; (3) otherwise runs the partitioner once per seed, writes the result of a single
// seed if requested, and reports measurements per run and over all seeds.
Result<Answer> RunPartition(const PartitionFlags& flags, Session& session) {
  if (!flags.out.empty() && flags.seeds != 1) {
    return Fail(Status::InvalidArgument("--out writes the result of one seed; omit --seeds"));
  }
  RHIZOME_RETURN_IF_ERROR(ProbeOutput(flags.out));
  const std::uint64_t base_bytes = StartMemory(session, 0);
  IngestOptions input = flags.input;
  for (const std::string& path : flags.edges) input.edges.emplace_back(path);
  RHIZOME_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create(flags.dir));
  RHIZOME_ASSIGN_OR_RETURN(const EdgePairs pairs, ReadEdgePairs(FileSystem::Posix(), scratch.path(),
                                                                input, session.control));
  if (flags.rows) {
    RowsFlags rows = flags.homes;
    rows.options.homes = flags.options.partitions;
    rows.options.seed = flags.options.seed;
    rows.out = flags.out;
    if (!pairs.ids_are_numbers() && !(rows.seeds + rows.beside + rows.out).empty()) {
      return Fail(Status::InvalidArgument(
          "--train, --beside and --out name vertices by number, but the ids in the edge files are "
          "not 0..n-1; renumber them, or give --vertices if some vertices have no edge"));
    }
    return PartitionRows(pairs.input(), rows, session);
  }
  Json runs = Json::array();
  std::uint64_t peak_bytes = PeakResidentBytes();
  for (std::uint32_t i = 0; i < flags.seeds; ++i) {
    PartitionOptions options = flags.options;
    options.seed += i;
    RHIZOME_ASSIGN_OR_RETURN(const PartitionRun run,
                             RunPartitioner(pairs.input(), options, session.control));
    peak_bytes = std::max(peak_bytes, PeakResidentBytes());
    if (!flags.out.empty()) {
      RHIZOME_RETURN_IF_ERROR(WriteParts(flags.out, run.partition_of_edge));
    }
    Json fields = {{"seed", options.seed}};
    fields.update(PartitionRunFields(run, pairs.edge_count()));
    const auto warning = BalanceWarning(options, run.metrics.vertex_balance, pairs.edge_count(),
                                        pairs.vertex_count());
    if (warning) Tell(session, "warning", *warning);
    fields["balance_warning"] = warning ? Json(*warning) : Json();
    runs.push_back(std::move(fields));
  }
  Json fields = {{"partitioner", PartitionerName(flags.options.kind)},
                 {"partitions", flags.options.partitions},
                 {"vertices", pairs.vertex_count()},
                 {"edges", pairs.edge_count()},
                 {"threads", flags.options.threads}};
  fields.update(runs[0]);
  fields["peak_memory_bytes"] = peak_bytes;
  fields["base_memory_bytes"] = base_bytes;
  fields["bad_lines"] = pairs.bad_lines();
  if (!flags.out.empty()) fields["out"] = flags.out;
  for (const char* name : {"replication_factor", "vertex_balance", "edge_balance", "cpu_seconds"}) {
    fields["over_seeds"][name] = Spread(runs, name);
  }
  fields["runs"] = std::move(runs);
  return Answer{std::move(fields), DescribePartition, {}};
}

/// Adds the flags of --rows, which divides rows instead of edges and excludes the flags for edges.
void AddRowsFlags(CLI::App& verb, PartitionFlags& flags) {
  CLI::Option* const rows = verb.add_flag(
      "--rows", flags.rows,
      "Assign rows to homes with few edges between them (edge cut), instead of partitioning edges");
  for (const char* name : {"--partitioner", "--max-edge-balance", "--max-vertex-balance",
                           "--hdrf-lambda", "--seeds", "--threads"})
    rows->excludes(verb.get_option(name));
  verb.add_option(
          "--max-balance", flags.homes.options.max_balance,
          "--rows: maximum rows, and maximum training vertices, of a home relative to the mean")
      ->needs(rows)
      ->type_name("X")
      ->capture_default_str();
  verb.add_option(
          "--train", flags.homes.seeds,
          "--rows: training vertices, to balance as well: .npy of integers, or one number per line")
      ->needs(rows)
      ->type_name("F");
  verb.add_option("--beside", flags.homes.beside,
                  "--rows: homes from another program to compare with, one per vertex; file "
                  "formats as for --train")
      ->needs(rows)
      ->type_name("F");
}

}  // namespace

void AddPartitionVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<PartitionFlags>();
  PartitionOptions& options = flags->options;
  options.partitions = 8;
  CLI::App* verb =
      AddVerb(root, session, "partition",
              "Partition edges, or rows, and measure the quality, without a store",
              "rhizome partition --edges demo/edges.npy --partitions 4 --out demo/parts.npy", flags,
              RunPartition);
  verb->add_option("--edges", flags->edges,
                   "Edge files: text, Matrix Market, or .npy (integers [m, 2] or [2, m]); plain or "
                   "compressed (gzip, zstd, bzip2, xz); of an undirected graph each pair once")
      ->required()
      ->type_name("F...");
  AddList(*verb, "--columns", flags->input.columns,
          "Columns of text files: src, dst; - skips a column; default: by the names in the "
          "header, or src,dst");
  verb->add_flag_callback(
      "--header", [flags] { flags->input.header = true; },
      "The first line of text files is a header; default: found in each file");
  verb->add_option("--vertices", flags->input.vertices,
                   "Number of vertices, with ids 0..N-1; larger ids are refused")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->type_name("N");
  AddPartitioner(*verb, options.kind);
  verb->add_option("--partitions", options.partitions, "Number of partitions")
      ->check(CLI::Range(std::size_t{1}, kMaxPartitions))
      ->type_name("P")
      ->capture_default_str();
  verb->add_option("--max-edge-balance", options.max_edge_balance,
                   "refined, dne, hdrf: maximum edges of a partition relative to the mean")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--max-vertex-balance", options.max_vertex_balance,
                   "refined: maximum vertices of a partition relative to the mean")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--hdrf-lambda", options.hdrf_lambda, "hdrf: weight of the balance term")
      ->type_name("X")
      ->capture_default_str();
  verb->add_option("--seed", options.seed, "Random seed; equal seeds give equal partitions")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--seeds", flags->seeds, "Number of runs, with consecutive seeds from --seed")
      ->check(CLI::Range(1U, 1000U))
      ->type_name("N")
      ->capture_default_str();
  AddThreads(*verb, options.threads);
  AddRowsFlags(*verb, *flags);
  verb->add_option("--dir", flags->dir, "Folder for a scratch file of 8 bytes per edge")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--out", flags->out,
                   "Write the partition of every input edge (.npy, uint16 [m]); with --rows: the "
                   "home of every vertex (int32 [n])")
      ->type_name("F.npy");
  ArrangeOptions(*verb,
                 {"edges", "partitions", "partitioner", "rows", "out", "columns", "header",
                  "vertices", "threads"},
                 {"seeds", "train", "beside", "dir"});
}

}  // namespace rhizome
