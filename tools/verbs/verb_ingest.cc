// `ingest`. Files are ingested as Sniff finds; a folder of a known data set is imported; --dry-run
// prints the plan only.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "rhizome/ingest.h"
#include "tools/cli/help.h"
#include "tools/import/hold_out_flags.h"
#include "tools/import/ingest_flags.h"
#include "tools/import/input_plan.h"
#include "tools/verbs/import_run.h"
#include "tools/verbs/verbs.h"

namespace rhizome {
namespace {

struct IngestVerbFlags {
  IngestFlags input;
  bool dry_run = false;
};

/// Checks that no flag says how to read files: the folder of a data set says it.
Status CheckAlone(const IngestVerbFlags& verb, const std::string& folder) {
  const IngestFlags& flags = verb.input;
  const IngestOptions& options = flags.options;
  const bool more = flags.inputs.size() > 1 || !flags.edges.empty() || !flags.nodes.empty() ||
                    !flags.arrays.empty() || !flags.edge_arrays.empty() || flags.dtype ||
                    !options.columns.empty() || !options.node_columns.empty() ||
                    !options.split_column.empty() || options.header || options.delimiter ||
                    !options.end_types.empty() || !options.feature_columns.empty() ||
                    !options.random_split.empty() || options.id_type != IdType::kAuto ||
                    options.vertices || options.max_bad_lines > 0 || !options.types.empty();
  if (!more) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("'{}' is the folder of a data set, which says how its files are read; leave out "
                  "the other inputs and the options of columns",
                  folder));
}

std::string DescribeDataSet(const Json& f) {
  return fmt::format(
      "'{}' is a data set of {}: its own files say their columns and types, and all of them are "
      "read\n",
      f["folder"].get<std::string>(), f["data_set"].get<std::string>());
}

/// Ingests the folder of a data set.
Result<Answer> IngestFolder(const IngestVerbFlags& flags, const std::string& folder,
                            const std::string& kind, Session& session) {
  RHIZOME_RETURN_IF_ERROR(CheckAlone(flags, folder));
  if (HasHoldOutFlags(flags.input.options.hold_out))
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' is the folder of a data set, which has sets of its own; omit --hold-out", folder)));
  if (flags.dry_run)
    return Answer{{{"store", flags.input.store}, {"folder", folder}, {"data_set", kind}},
                  DescribeDataSet,
                  {}};
  Tell(session, "note", fmt::format("'{}' is imported as a data set of {}", folder, kind));
  return RunImport({.name = kind,
                    .store = flags.input.store,
                    .from = folder,
                    .split = "",
                    .undirected = flags.input.options.undirected,
                    .spill = flags.input.options.spill,
                    .scratch = flags.input.options.scratch,
                    .layout = flags.input.layout},
                   session);
}

Result<Answer> RunIngest(const IngestVerbFlags& flags, Session& session) {
  const IngestFlags& input = flags.input;
  for (const std::string& folder : input.inputs) {
    const std::string kind = KindOfFolder(folder);
    // The engine reads a folder of `export --store` as any other input.
    if (kind == "export")
      RHIZOME_RETURN_IF_ERROR(CheckAlone(flags, folder));
    else if (!kind.empty())
      return IngestFolder(flags, folder, kind, session);
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t base_memory_bytes,
                           StartLimited(session, input.layout));
  RHIZOME_ASSIGN_OR_RETURN(const IngestOptions options, input.ToOptions());
  if (flags.dry_run) {
    RHIZOME_ASSIGN_OR_RETURN(InputPlan plan, Sniff(FileSystem::Posix(), options));
    for (std::string& note : plan.notes) note = SpellFor(session, note);
    return Answer{InputPlanJson(plan, input.store), DescribeInputPlan, {}};
  }
  RHIZOME_ASSIGN_OR_RETURN(const IngestReport report,
                           Ingest(FileSystem::Posix(), input.store, options, session.control));
  return IngestAnswer(session, input.store, report, options.build.partition, base_memory_bytes);
}

}  // namespace

void AddIngestVerb(CLI::App& root, Session& session) {
  auto flags = std::make_shared<IngestVerbFlags>();
  CLI::App* verb =
      AddVerb(root, session, "ingest", "Create a store from edge lists, node lists and array files",
              "rhizome ingest demo.rz --edges demo/edges.npy --nodes demo/nodes.tsv "
              "--node-columns id,label,split --array feat=demo/features.npy --partitions 4",
              flags, RunIngest);
  verb->add_option("STORE", flags->input.store, "Folder to create")->required();
  verb->add_option("INPUT", flags->input.inputs,
                   "Files whose kind is found: edges, nodes, .npy arrays; or the folder of a data "
                   "set (OGB, GraphBolt), or one that export --store wrote");
  AddIngestFlags(*verb, flags->input);
  AddHoldOutFlags(*verb, flags->input.options.hold_out);
  verb->add_flag("--dry-run", flags->dry_run,
                 "Print how the files would be read, and the command that says so; write nothing");
  ArrangeOptions(*verb,
                 {"edges", "nodes", "node-columns", "feature-columns", "random-split", "array",
                  "columns", "header", "dry-run", "undirected", "partitions", "memory", "threads"},
                 {"types", "edge-array", "no-header", "delimiter", "end-types", "split-column",
                  "id-type", "vertices", "hold-out", "hold-out-by", "inverse", "max-bad-lines",
                  "dtype", "partitioner", "homes", "directions", "layout", "codec", "scratch"});
}

}  // namespace rhizome
